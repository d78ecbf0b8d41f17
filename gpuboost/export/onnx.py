"""ONNX: the model as a graph of operators that runtimes of many languages execute.

ONNX sums the trees of a TreeEnsemble in an order of the runtime's choice, one number a leaf and partly in float32. Here it
only finds the leaves: in an ensemble of one target a tree, every leaf "adds" its own number, which float32 holds exactly. A
scan over the trees then adds the leaves' vectors in float64 and in the order of the model.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpuboost.export.onnx_graph import Graph, Tensor
from gpuboost.export.onnx_math import independent, log_probabilities, normalised
from gpuboost.export.trees import Model, RealTree, feature_names, real_trees
from gpuboost.extras import load
from gpuboost.inputs.label_values import python_labels
from gpuboost.registry import __version__

OPSETS = {"": 18, "ai.onnx.ml": 3}
"""The first ones that have all that is needed; any ONNX Runtime from 1.14 on executes them."""


def to_onnx(model: Model, input_dtype: Literal["float64", "float32"] = "float64") -> Any:
    """Return a fitted classifier as an ONNX model: see `gpuboost.export.methods.Exports.to_onnx`."""
    load("onnx", "to_onnx")
    from onnx import helper

    if input_dtype not in ("float64", "float32"):
        raise ValueError(f'input_dtype must be "float64" or "float32", got {input_dtype!r}')
    trees = real_trees(model)
    labels = onnx_labels(model.classes_)
    graph, n_classes = Graph(), len(labels)
    scores = _scores(graph, trees, graph.input("X").cast(np.float64) if input_dtype == "float32" else graph.input("X"))
    outputs = _predictions(graph, model, labels, scores)
    shapes: dict[str, list[int | None]] = {"label": [None, n_classes] if model.multi_label_ else [None]}
    body = helper.make_graph(
        graph.nodes,
        type(model).__name__,
        [_value("X", np.dtype(input_dtype), [None, model.n_features_in_])],
        [_value(name, dtype, shapes.get(name, [None, n_classes])) for name, dtype in outputs.items()],
        graph.constants,
    )
    proto = helper.make_model(
        body,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS.items()],
        producer_name="gpuboost",
        producer_version=__version__,
        ir_version=8,
    )
    helper.set_model_props(proto, {"feature_names": json.dumps(feature_names(model))})
    return proto


def onnx_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels in a dtype that ONNX has: strings as objects, integers in an object array as int64.

    Raises
    ------
    TypeError
        If there is none.
    ValueError
        If a string has no UTF-8: it has a lone surrogate.
    """
    labels = python_labels(classes)
    if all(isinstance(label, str) for label in labels):
        for label in labels:
            if any("\ud800" <= character <= "\udfff" for character in label):
                raise ValueError(f"labels must be valid Unicode to be exported to ONNX, got {label!r} with half of a character")
        return np.array(labels, object)
    if (classes.dtype.kind in "iuf" and classes.dtype.itemsize <= 8) or classes.dtype.kind == "b":
        return classes
    if all(type(label) is int and abs(label) < 2**63 for label in labels):
        return np.array(labels, np.int64)
    kind = type(labels[0]).__name__ if classes.dtype.kind == "O" else classes.dtype
    raise TypeError(f"labels must be strings, integers, real numbers or booleans to be exported to ONNX, got {kind}")


def _value(name: str, dtype: np.dtype[Any], shape: list[int | None]) -> Any:
    """Return the description of an input or output."""
    from onnx import TensorProto, helper

    kind = TensorProto.STRING if dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_value_info(name, kind, ["n_rows" if n is None else n for n in shape])


def _predictions(graph: Graph, model: Model, labels: NDArray[Any], scores: Tensor) -> dict[str, np.dtype[Any]]:
    """Add what is made of the scores. Return the dtypes of all outputs."""
    double, n_classes = np.dtype(np.float64), len(labels)
    link = model._fitted_link(n_classes)
    outputs = {"label": np.dtype(np.int64) if model.multi_label_ else labels.dtype}
    if model.multi_label_:
        predicted = graph.node("Greater", scores, 0.0)
        graph.node("Identity", predicted.cast(np.int64), output="label")
    else:
        predicted = graph.node("ArgMax", scores, axis=1, keepdims=1)  # the first of equals
        graph.node("Gather", labels, graph.node("Squeeze", predicted, np.array([1])), output="label")
    if link is not None:
        log_p = log_probabilities(link, scores)
        p = independent(log_p, predicted) if model.multi_label_ else normalised(log_p, predicted, n_classes)
        graph.node("Identity", p, output="probabilities")
        outputs["probabilities"] = double
    graph.node("Identity", scores, output="scores")
    return {**outputs, "scores": double}


def _scores(graph: Graph, trees: list[RealTree], X: Tensor) -> Tensor:
    """Add the ensemble that finds the leaves and the loop that adds their values: float64 (n_rows, n_classes)."""
    from onnx import helper

    node = graph.node
    values = np.concatenate([tree.values for tree in trees])
    first_leaf = np.cumsum([0, *(len(tree.values) for tree in trees[:-1])])
    attributes = _ensemble_attributes(trees)
    local = node("TreeEnsembleRegressor", X, domain="ai.onnx.ml", n_targets=len(trees), **attributes)
    leaves = node("Transpose", local.cast(np.int64) + first_leaf[None, :], perm=[1, 0])
    step = Graph("tree_")
    total = step.input("tree_sum") + step.node("Gather", graph.constant(values), step.input("tree_leaves"))
    body = helper.make_graph(
        step.nodes,
        "add_the_values_of_a_tree",
        [
            _value("tree_sum", np.dtype(np.float64), [None, values.shape[1]]),
            _value("tree_leaves", np.dtype(np.int64), [None]),
        ],
        [_value(total.name, np.dtype(np.float64), [None, values.shape[1]])],
        step.constants,
    )
    n_rows = node("Shape", X, start=0, end=1)
    zeros = node("Expand", np.zeros((1, 1)), node("Concat", n_rows, np.array([values.shape[1]]), axis=0))
    return node("Scan", zeros, leaves, body=body, num_scan_inputs=1)


def _ensemble_attributes(trees: list[RealTree]) -> dict[str, Any]:
    """Return the attributes of a TreeEnsembleRegressor that finds the number of a row's leaf in every tree."""
    from onnx import numpy_helper

    n_leaves = np.array([len(tree.values) for tree in trees])
    n_nodes = 2 * n_leaves - 1

    def join(field: str, of_leaf: Any) -> NDArray[Any]:
        return np.concatenate([part for t in trees for part in (getattr(t, field), np.full(t.n_inner + 1, of_leaf))])

    numbers = {"nodes_featureids": "feature", "nodes_truenodeids": "left", "nodes_falsenodeids": "right"}
    attributes: dict[str, Any] = {name: join(field, 0).tolist() for name, field in numbers.items()}
    of_leaf = np.concatenate([np.arange(n) for n in n_leaves])
    return attributes | {
        "nodes_treeids": np.repeat(np.arange(len(trees)), n_nodes).tolist(),
        "nodes_nodeids": np.concatenate([np.arange(n) for n in n_nodes]).tolist(),
        "nodes_modes": [mode for t in trees for mode in ["BRANCH_LT"] * t.n_inner + ["LEAF"] * (t.n_inner + 1)],
        "nodes_values_as_tensor": numpy_helper.from_array(join("threshold", 0.0), "thresholds"),
        "nodes_missing_value_tracks_true": join("missing_left", False).astype(int).tolist(),
        "target_treeids": np.repeat(np.arange(len(trees)), n_leaves).tolist(),
        "target_ids": np.repeat(np.arange(len(trees)), n_leaves).tolist(),
        "target_nodeids": (of_leaf + np.repeat(n_leaves - 1, n_leaves)).tolist(),
        "target_weights_as_tensor": numpy_helper.from_array(of_leaf.astype(np.float64), "leaves"),
    }
