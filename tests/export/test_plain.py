from __future__ import annotations

import datetime
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from gpuboost import AdaBoostMHClassifier, GambleClassifier, extras
from gpuboost.export.plain import to_dict
from tests.export.models import KINDS, X, model, rows, scores


def predict(told: dict[str, Any], row: list[float]) -> tuple[list[float], Any, list[float] | None]:
    """Scores, label and probabilities of a row, from the dict alone and as its "reading" says."""
    total = [0.0] * len(told["classes"])
    for trees in told["rounds"]:
        for tree in trees:
            node = tree["nodes"][0]
            while "leaf" not in node:
                value = row[node["feature"]]
                less = node["missing"] == "left" if math.isnan(value) else value < float(node["less_than"])
                node = tree["nodes"][node["left" if less else "right"]]
            total = [a + b for a, b in zip(total, node["leaf"], strict=True)]
    label = [int(s > 0) for s in total] if told["multi_label"] else told["classes"][total.index(max(total))]
    if told["probabilities"] is None:
        return total, label, None
    link = told["probabilities"]
    if link["link"] == "softmax":
        p = [math.exp((s - max(total)) / link["divisor"]) for s in total]
    else:
        n = len(total)
        scales, offsets = link.get("scales", [link.get("scale")] * n), link.get("offsets", [link.get("offset")] * n)
        p = [1 / (1 + math.exp(min(o - a * s, 700))) for s, a, o in zip(total, scales, offsets, strict=True)]
        if not told["multi_label"]:
            p = [min(one, p[total.index(max(total))]) for one in p]
    return total, label, p if told["multi_label"] else [one / sum(p) for one in p]


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_interpreter_predicts_the_same(kind: str) -> None:
    fitted = model(kind)
    told = json.loads(json.dumps(fitted.to_dict(), allow_nan=False))
    Z = rows(fitted, 100)[:1500]
    predicted = [predict(told, row) for row in Z.tolist()]
    assert np.array_equal([total for total, _, _ in predicted], scores(fitted, Z))
    assert [label for _, label, _ in predicted] == fitted.predict(Z).tolist()
    if kind != "costs":
        np.testing.assert_allclose([p for _, _, p in predicted], fitted.predict_proba(Z), rtol=1e-12, atol=1e-300)


def test_what_stands_in_the_dict() -> None:
    frame = pd.DataFrame({"age": [1.0, 2.0, np.nan, np.inf], "size": [1.0, 1.0, 1.0, 1.0]})
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-02", "2024-01-01"], "datetime64[D]")
    told = to_dict(AdaBoostMHClassifier(n_estimators=2, learner="stump", device="cpu", n_jobs=1).fit(frame, days))
    assert told["classes"] == [str(datetime.date(2024, 1, day)) for day in (1, 2)]
    assert told["class_dtype"] == "datetime64[D]"
    assert told["features"] == ["age", "size"]
    assert told["estimator"] == "AdaBoostMHClassifier"
    assert told["probabilities"] == {"link": "sigmoid", "scale": 2.0, "offset": 0.0}
    assert len(told["rounds"]) == 2
    ((tree,), _) = told["rounds"]
    first, *leaves = tree["nodes"]
    assert first["name"] == "age"
    assert first["less_than"] == 1.5
    assert (first["left"], first["right"]) == (1, 2)
    assert all(len(leaf["leaf"]) == 2 for leaf in leaves)


def test_thresholds_that_are_no_finite_numbers() -> None:
    nodes = [
        node for kind in ("adaboost.mh", "multi-label") for one in model(kind).to_dict()["rounds"]
        for tree in one for node in tree["nodes"] if "feature" in node
    ]  # fmt: skip
    of_constant = [node for node in nodes if node["feature"] == 5]
    assert of_constant
    assert {node["less_than"] for node in of_constant} == {"-Infinity"}
    assert "-Infinity" not in {node["less_than"] for node in nodes if node["feature"] == 3 and node["missing"] == "right"}


@pytest.mark.parametrize("method", ["to_dict", "to_onnx", "to_treelite", "to_shap"])
def test_models_without_trees_are_refused(method: str) -> None:
    if method != "to_dict":
        pytest.importorskip(method.removeprefix("to_"))
    arguments = [X] if method == "to_shap" else []
    ridge = GambleClassifier(n_estimators=1, regressor=Ridge()).fit(np.nan_to_num(X[:, :3]), KINDS["samme"][1])
    with pytest.raises(TypeError, match=r"only models of trees.*Ridge"):
        getattr(ridge, method)(*arguments)
    with pytest.raises(NotFittedError):
        getattr(AdaBoostMHClassifier(), method)(*arguments)


def test_other_things_are_refused() -> None:
    with pytest.raises(TypeError, match="must be a fitted classifier of gpuboost, got Ridge"):
        to_dict(Ridge())  # type: ignore[arg-type]


@pytest.mark.parametrize("package", ["onnx", "treelite", "shap"])
def test_a_missing_package_is_named_with_how_to_install_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(extras.importlib, "import_module", missing)
    with pytest.raises(ImportError, match=rf"to_{package} needs the package {package}: pip install {package}$"):
        getattr(model("mart"), f"to_{package}")(*([X] if package == "shap" else []))
