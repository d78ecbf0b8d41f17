from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gpuboost import AdaBoostMHClassifier, MartClassifier
from gpuboost.exactmath import exp, log_sigmoid
from gpuboost.export import onnx_math
from gpuboost.export.onnx import OPSETS, onnx_labels
from gpuboost.export.onnx_graph import Graph
from tests.export.models import KINDS, X, model, rows, scores

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def session(proto: Any) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(proto: Any, Z: Any) -> dict[str, Any]:
    opened = session(proto)
    return dict(zip([output.name for output in opened.get_outputs()], opened.run(None, {"X": Z}), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_the_runtime_predicts_the_same_bit_for_bit(kind: str) -> None:
    fitted = model(kind)
    proto = fitted.to_onnx()
    onnx.checker.check_model(proto, full_check=True)
    Z = rows(fitted, 10_000)
    got = run(proto, Z)
    assert list(got) == ["label", *(["probabilities"] if kind != "costs" else []), "scores"]
    assert np.array_equal(got["scores"], scores(fitted, Z))
    labels = fitted.predict(Z)
    assert np.array_equal(got["label"], labels)
    assert got["label"].dtype == (object if labels.dtype.kind in "UO" else labels.dtype)
    if kind != "costs":
        assert np.array_equal(got["probabilities"], fitted.predict_proba(Z))


@pytest.mark.parametrize("kind", ["adaboost.mh", "multi-label", "abc"])
def test_float32_input_is_compared_as_float64(kind: str) -> None:
    fitted = model(kind)
    with np.errstate(over="ignore"):
        Z = rows(fitted, 2_000).astype(np.float32)
    for proto, given in ((fitted.to_onnx("float32"), Z), (fitted.to_onnx(), Z.astype(np.float64))):
        got = run(proto, given)
        assert np.array_equal(got["scores"], scores(fitted, Z))
        assert np.array_equal(got["probabilities"], fitted.predict_proba(Z))


@pytest.mark.parametrize("name", ["exp", "log_sigmoid"])
def test_functions_are_those_of_exactmath(name: str) -> None:
    graph = Graph()
    graph.node("Identity", getattr(onnx_math, name)(graph.input("X")), output="y")
    double, helper = onnx.TensorProto.DOUBLE, onnx.helper
    body = helper.make_graph(
        graph.nodes,
        name,
        [helper.make_tensor_value_info("X", double, ["n"])],
        [helper.make_tensor_value_info("y", double, ["n"])],
        graph.constants,
    )
    proto = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSETS[""])], ir_version=8)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1, 1, 20_000), rng.uniform(-800, 800, 20_000), [0.0, -0.0, 1e-300, 2000, -2000]])
    assert np.array_equal(run(proto, x)["y"], {"exp": exp, "log_sigmoid": log_sigmoid}[name](x))


def test_a_reversed_last_bit_is_repaired() -> None:
    """The step to the next float, at all the mantissas that matter: ends, middles, and random ones."""
    p = np.concatenate([np.ldexp([1.0, 1.5, np.nextafter(2, 1)], -3), np.random.default_rng(0).uniform(0.01, 1, 10_000)])
    assert np.array_equal(p + p * onnx_math.ONE_STEP, np.nextafter(p, 1.0))


def test_feature_names_are_kept() -> None:
    assert json.loads({p.key: p.value for p in model("mart").to_onnx().metadata_props}["feature_names"]) == [
        f"x{i}" for i in range(6)
    ]


def test_bad_requests() -> None:
    with pytest.raises(ValueError, match=r"input_dtype must be .*, got 'float16'"):
        model("mart").to_onnx("float16")
    dates = MartClassifier(n_estimators=1, device="cpu", n_jobs=1).fit(
        X, np.array(["2024-01-01", "2025-01-01"] * 200, "datetime64[D]")
    )
    with pytest.raises(TypeError, match=r"labels must be strings.*datetime64"):
        dates.to_onnx()
    with pytest.raises(TypeError, match="got int"):
        onnx_labels(np.array([1, 2**70], object))


def test_labels_of_all_types() -> None:
    for labels in ([True, False], [1.5, 2.5], np.array([3, 4], object), np.array([3, 4], np.int16), ["a", ""]):
        y = np.asarray(labels)[[0, 1] * 200]
        fitted = AdaBoostMHClassifier(n_estimators=2, device="cpu", n_jobs=1).fit(X, y)
        assert run(fitted.to_onnx(), X)["label"].tolist() == fitted.predict(X).tolist()
