"""A plain dict: everything that predictions need, in lists, numbers and text that a reader understands without this package."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gpuboost.export.trees import Model, RealTree, exported_ensemble, feature_names, real_trees
from gpuboost.inputs.label_values import python_labels
from gpuboost.links import ClassSigmoids, Link, Softmax
from gpuboost.registry import __version__

READING = [
    "A row starts at node 0 of every tree. At a node with a feature it goes to the node number 'left' if its value is less "
    "than 'less_than', else to 'right'; a missing value (NaN) goes where 'missing' says. Values are compared in float64.",
    "A node with a leaf ends the way. The scores of the classes are the sums of these lists over all trees, "
    "added in their order in float64, beginning with 0.",
    "The label is the class with the largest score, the first of equals; if multi_label is true, every class with a score "
    "above 0.",
    "less_than may be the text Infinity (all finite values are less, infinity is not) or -Infinity (only 'missing' matters).",
]


def to_dict(model: Model) -> dict[str, Any]:
    """Return a fitted classifier as a dict: see `gpuboost.export.methods.Exports.to_dict`."""
    offsets = exported_ensemble(model).round_offset.tolist()
    names = feature_names(model)
    trees = [_tree(tree, names) for tree in real_trees(model)]
    return {
        "reading": READING,
        "estimator": type(model).__name__,
        "gpuboost": __version__,
        "classes": [label if isinstance(label, (str, int, float)) else _text(label) for label in python_labels(model.classes_)],
        "class_dtype": str(model.classes_.dtype),
        "multi_label": bool(model.multi_label_),
        "features": names,
        "probabilities": _link(model._fitted_link(len(model.classes_))),
        "rounds": [trees[first:stop] for first, stop in pairwise(offsets)],
    }


def _text(label: Any) -> str:
    return label.decode("utf-8", "backslashreplace") if isinstance(label, bytes) else str(label)


def _link(link: Link | None) -> dict[str, Any] | None:
    if link is None:
        return None
    if isinstance(link, Softmax):
        return {"link": "softmax", "divisor": link.divisor}
    if isinstance(link, ClassSigmoids):
        return {"link": "class-sigmoids", "scales": list(link.scales), "offsets": list(link.offsets)}
    return {"link": "sigmoid", "scale": link.scale, "offset": link.offset}


def _tree(tree: RealTree, names: list[str]) -> dict[str, Any]:
    """Return a tree as a dict."""
    columns = (tree.feature, tree.threshold, tree.missing_left, tree.left, tree.right)
    inner = [
        {
            "feature": feature,
            "name": names[feature],
            "less_than": threshold if np.isfinite(threshold) else "Infinity" if threshold > 0 else "-Infinity",
            "missing": "left" if missing_left else "right",
            "left": left,
            "right": right,
        }
        for feature, threshold, missing_left, left, right in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return {"nodes": [*inner, *({"leaf": values} for values in tree.values.tolist())]}
