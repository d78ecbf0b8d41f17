"""The page "Add a paper": its code runs here, or is compared with the file that it is taken from.

The blocks run in this module, in their order, as if they were written here: pytest finds the test that one of them defines.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpuboost
from gpuboost.boosters.samme import SAMME
from gpuboost.estimators.parameters import TrainingParameters
from gpuboost.registry import Algorithm
from tests.cli.tables import QUICK, flowers, told, write
from tests.problems import blobs, fit

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "gpuboost/boosters/README.md"
SECTION = PAGE.read_text(encoding="utf-8")
LOOP, TEST, ESTIMATOR, USE, CRITERION = re.findall(r"^```python\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)


def run(block: str) -> None:
    lines_above = SECTION[: SECTION.index(block)].count("\n")  # so that tracebacks show the page
    exec(compile("\n" * lines_above + block, PAGE, "exec"), globals())


SHARED = inspect.signature(TrainingParameters).parameters

run(TEST)
run(ESTIMATOR)
Gentle: Any = globals()["GentleAdaBoostClassifier"]


def test_the_test_is_one_of_this_module() -> None:
    assert "candidate" in inspect.signature(globals()["test_every_backend_makes_the_same_model"]).parameters


def test_the_loop_is_that_of_the_template() -> None:
    source = (ROOT / "gpuboost/boosters/example.py").read_text(encoding="utf-8")
    methods = source[source.index("    def row_state") : source.index("def gentle_values")]
    assert textwrap.dedent(methods).split() == LOOP.split()
    assert [int(n) for n in re.findall(r"# (\d)\. ", LOOP)] == [1, 2, 3, 4, 5]
    assert [int(n) for n in re.findall(r"^\| (\d) \|", SECTION, re.MULTILINE)] == [1, 2, 3, 4, 5]


def test_the_names_are_right() -> None:
    """Files exist, and what the section calls by name stands somewhere in them."""
    words = re.findall(r"`([\w./-]+)`", re.sub(r"^```.*?^```$", "", SECTION, flags=re.MULTILINE | re.DOTALL))
    paths = [word for word in words if "/" in word]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []
    files = [path for folder in ("gpuboost", "kernels", "tests") for path in (ROOT / folder).rglob("*.*")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".cu", ".cuh"))
    names = {part for word in words if word not in paths for part in word.split(".")}
    assert [name for name in names - {"py", "np", "add"} if not re.search(rf"\b{name}\b", sources)] == []


# Stumps: larger trees fit the rows of a class that one check weighs down by 10**7 and wants to be forgotten.
@pytest.mark.slow
@parametrize_with_checks([Gentle(n_estimators=20, max_leaf_nodes=2, device="cpu")])
def test_the_estimator_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore:device=.auto. trains on the CPU")
def test_the_estimator_learns() -> None:
    run(USE)
    model, X, y = (globals()[name] for name in ("model", "X", "y"))
    assert model.score(X[1200:], y[1200:]) == pytest.approx(1 - model.history_["valid_error"][-1])
    assert model.score(X[1200:], y[1200:]) > 0.9
    assert (model.predict_proba(X).argmax(axis=1) == model.predict(X)).all()
    assert len(model.history_["train_loss"]) == 50


def test_the_estimator_has_the_parameters_that_all_have() -> None:
    X, y = load_iris(return_X_y=True)
    model = Gentle(n_estimators=3, device="cpu").fit(X, np.eye(3, dtype=int)[y])  # many labels a row
    assert model.predict(X).shape == (150, 3)
    assert set(model.get_params()) == {"max_leaf_nodes", *SHARED}
    digests = {Gentle(n_estimators=3, device=device).fit(X, y).ensemble_.digest() for device in ("cpu", "numpy")}
    assert len(digests) == 1
    with pytest.raises(ValueError, match="max_leaf_nodes must be an integer of at least 2, got 1"):
        Gentle(max_leaf_nodes=1).fit(X, y)


def test_a_registered_algorithm_is_one_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm = Algorithm("GentleAdaBoostClassifier", "gpuboost.estimators", "Friedman et al. 2000", "gentle steps")
    monkeypatch.setitem(gpuboost.ALGORITHMS, "gentle", algorithm)
    monkeypatch.setattr("gpuboost.estimators.GentleAdaBoostClassifier", Gentle, raising=False)
    assert told("algorithms")["gentle"] == {
        "estimator": "GentleAdaBoostClassifier",
        "paper": "Friedman et al. 2000",
        "use": "gentle steps",
    }
    names, rows = flowers()
    data, out = write(tmp_path / "t.csv", names, rows), tmp_path / "m.safetensors"
    fit = ("fit", data, "--target", "kind", "--algorithm", "gentle", "--jobs", "1", *QUICK)
    digest = told(*fit, "--out", out, "--checkpoint", "2")["digest"]
    model: Any = gpuboost.load(out, device="cpu", n_jobs=1)
    assert type(model) is Gentle
    assert model.get_params() == Gentle(n_estimators=4, random_state=0, device="cpu", n_jobs=1).get_params()
    assert told("inspect", out)["parameters"].items() >= {"n_estimators": 4, "max_leaf_nodes": 8}.items()
    X, y = np.array([row[:-1] for row in rows], float), [row[-1] for row in rows]
    same = gpuboost.fit(X, y, algorithm="gentle", n_estimators=4, device="numpy")
    assert model.ensemble_.digest() == same.ensemble_.digest() == digest
    same.save(tmp_path / "same")
    loaded: Any = gpuboost.load(tmp_path / "same", device="cpu")
    assert loaded.predict(X).tolist() == same.predict(X).tolist()
    longer = Gentle(n_estimators=6, device="cpu").fit(X, y)
    loaded.set_params(warm_start=True, n_estimators=6)
    assert loaded.fit(X, y).ensemble_.digest() == longer.ensemble_.digest()
    bench = ("bench", "--algorithm", "gentle", "--device", "numpy", "--rounds", "2", "--rows", "40", "--jobs", "1")
    assert told(*bench)["runs"][0]["algorithm"] == "gentle"


def test_the_shares_of_the_classes_without_a_column() -> None:
    with pytest.warns(UserWarning, match="no column of X tells rows apart"):
        model = Gentle(device="cpu").fit(np.zeros((10, 1)), [0, 0, 0, 0, 0, 1, 1, 1, 2, 2])
    assert model.predict_proba([[0.0]])[0] == pytest.approx([0.5, 0.3, 0.2])


@pytest.mark.slow
def test_the_criterion_is_entropy() -> None:
    run(CRITERION)
    assert len(globals()["training"].trees) == 3
    # Without ties scikit-learn makes the same cuts: the same rows arrive in the same leaves.
    data, backend = blobs(60, 2, 3, seed=1), globals()["ByEntropy"]()
    assert data.mapper().n_bins.tolist() == [61, 61]  # every cut that there is
    tree = fit(SAMME(5), data, backend, 1).trees[0]
    leaf = backend.apply(tree, data.on(backend).data)
    theirs = DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=5).fit(data.X, data.signs.argmax(axis=1)).apply(data.X)
    assert len(set(zip(leaf.tolist(), theirs.tolist(), strict=True))) == tree.n_leaves == 5
