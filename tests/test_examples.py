"""The examples of the docstrings run, each in a folder of its own."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import warnings
from pathlib import Path

import pytest

import gpuboost


def examples() -> list[doctest.DocTest]:
    found = []
    for module in pkgutil.walk_packages(gpuboost.__path__, "gpuboost."):
        path = Path(importlib.util.find_spec(module.name).origin or "")  # type: ignore[union-attr]
        if ">>> " in path.read_text(encoding="utf-8"):
            tests = doctest.DocTestFinder().find(importlib.import_module(module.name))
            found += [test for test in tests if test.examples]
    return [*found, *(test for test in doctest.DocTestFinder(recurse=False).find(gpuboost, "gpuboost") if test.examples)]


EXAMPLES = examples()
OPTIONAL = ("onnxruntime", "treelite")
"""Packages without which the examples that import them are skipped."""


def test_the_estimators_have_examples() -> None:
    names = {example.name for example in EXAMPLES}
    public = set(gpuboost.estimators.__all__) - {"BoostingClassifier"}  # the base class of the others
    assert public <= {name.rpartition(".")[2] for name in names}


def test_the_exports_say_what_they_return() -> None:
    names = {example.name.rpartition(".")[2] for example in EXAMPLES}
    assert {"to_dict", "to_onnx", "to_treelite"} <= names
    said = gpuboost.AdaBoostMHClassifier.to_onnx.__doc__ or ""
    assert [word for word in ("ModelProto", '"X"', '"label"', '"probabilities"', '"scores"', "shape") if word not in said] == []


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example(example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for package in OPTIONAL:
        if any(re.search(rf"\bimport\b.*\b{package}\b", line.source) for line in example.examples):
            pytest.importorskip(package)
    report: list[str] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", 'device="auto" trains on the CPU')
        result = doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert result.failed == 0, "".join(report)
