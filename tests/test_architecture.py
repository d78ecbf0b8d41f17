"""What may know what: the rules that keep devices out of the algorithms, and the import light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpuboost

PACKAGE = Path(gpuboost.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
BOOSTERS = [name for name in MODULES if name.startswith("boosters/")]
LEARNERS = [name for name in MODULES if name.startswith("learners/")]
DEVICE_WORDS = {"cuda", "cupy", "gpu", "nvrtc", "numba"}


def parse(name: str) -> ast.Module:
    return ast.parse((PACKAGE / name).read_text(encoding="utf-8"), name)


def docstrings(tree: ast.Module) -> list[ast.Expr]:
    """Docstrings, those that follow an assignment included: all strings that stand alone as a statement."""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    return [node for node in statements if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)]


def imported(tree: ast.Module) -> Iterator[str]:
    """Full names of everything imported, at the top level or inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def words(tree: ast.Module) -> set[str]:
    """The words of all identifiers and of all strings that are not documentation, in lower case."""
    documentation = {id(node.value) for node in docstrings(tree)}
    texts = set(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            texts.add(node.value)
        for field in ("id", "attr", "arg", "name", "asname"):
            text = getattr(node, field, None)
            texts |= {text} if isinstance(text, str) else set()
    return {word.lower() for text in texts for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", text)}


def knows_devices(name: str) -> bool:
    return name.startswith(("backends/", "estimators/", "cli/")) or name in ("devices.py", "doctor.py")


def test_words_are_found() -> None:
    source = '''
"""cuda in documentation"""
import cupy as cp
gpu_count = 1
def f(use_nvrtc): "gpu"; return f"numba {x.cudaStream}"
'''
    assert words(ast.parse(source)) & DEVICE_WORDS == {"cupy", "gpu", "nvrtc", "numba", "cuda"}
    assert "gpu" not in words(ast.parse('import gpuboost\n"""gpu"""\n'))


@pytest.mark.parametrize("name", [name for name in MODULES if not knows_devices(name)])
def test_only_backends_know_devices(name: str) -> None:
    assert words(parse(name)) & DEVICE_WORDS == set()


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith("backends/")])
def test_only_devices_open_a_backend(name: str) -> None:
    names = [full for full in imported(parse(name)) if full.startswith("gpuboost.backends")]
    if name not in ("devices.py", "doctor.py"):
        allowed = tuple(f"gpuboost.backends.{part}" for part in ("base.", "threads.", "adopt.", "compiling"))
        assert [full for full in names if not full.startswith(allowed)] == []


@pytest.mark.parametrize("name", BOOSTERS + LEARNERS)
def test_algorithms_know_neither_files_nor_progress_nor_estimators(name: str) -> None:
    own = {full.split(".")[1] for full in imported(parse(name)) if full.startswith("gpuboost.")}
    layers = {"backends", "binning", "boosters", "exactmath", "fixedpoint", "learners", "tree"}
    assert own <= (layers if name in BOOSTERS else layers - {"boosters"})
    outside = {full.split(".")[0] for full in imported(parse(name))} - {"gpuboost"}
    assert outside <= {"__future__", "abc", "collections", "dataclasses", "functools", "itertools", "math", "numpy", "typing"}


@pytest.mark.parametrize("name", MODULES)
def test_lower_layers_do_not_know_higher_ones(name: str) -> None:
    layers = [
        "errors",
        "label_values",
        "exactmath",
        "fixedpoint",
        "binning",
        "tree",
        "ensemble",
        "backends",
        "learners",
        "boosters",
        "costs",
        "stopping",
        "training",
    ]
    layer = name.removesuffix(".py").split("/")[0]
    if layer in layers:
        own = {full.split(".")[1] for full in imported(parse(name)) if full.startswith("gpuboost.")}
        assert own <= set(layers[: layers.index(layer) + 1])


@pytest.mark.parametrize("name", BOOSTERS)
def test_boosters_are_short(name: str) -> None:
    """A booster can be read beside its paper: at most 150 lines, documentation and blank lines not counted."""
    tree = parse(name)
    documentation = {n for node in docstrings(tree) for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = (PACKAGE / name).read_text(encoding="utf-8").splitlines()
    assert len([n for n, line in enumerate(lines, start=1) if line.strip() and n not in documentation]) <= 150


def test_decisions_use_no_library_exponentials() -> None:
    """Only `gpuboost.exactmath` may compute exponentials and logarithms: those of libraries differ between machines."""
    inexact = {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "pow", "power", "tanh"}
    found = [
        f"{name}:{node.lineno}"
        for name in BOOSTERS + LEARNERS + [name for name in MODULES if name.startswith("backends/")]
        for node in ast.walk(parse(name))
        if isinstance(node, ast.Attribute) and node.attr in inexact and getattr(node.value, "id", "") in ("np", "math", "numpy")
    ]
    assert found == []


def loaded_by(code: str) -> set[str]:
    """Top-level names of the modules that a fresh process has loaded after ``code``."""
    script = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert out.stderr == ""
    return {name.split(".")[0] for name in out.stdout.split()}


def test_import_is_light() -> None:
    loaded = loaded_by("import gpuboost")
    assert "gpuboost" in loaded
    heavy = {
        "numba",
        "llvmlite",
        "sklearn",
        "scipy",
        "pandas",
        "polars",
        "pyarrow",
        "matplotlib",
        "joblib",
        "tqdm",
        "cupy",
        "torch",
    }
    assert loaded & heavy == set()


def test_what_is_loaded_on_use_is_listed() -> None:
    names = dir(gpuboost)
    assert names == sorted({*gpuboost.__all__, *gpuboost.MODULES, "ALGORITHMS", "__version__"})
    assert all(hasattr(gpuboost, name) for name in names)
    assert loaded_by("import gpuboost; dir(gpuboost)") & {"sklearn", "numba", "difflib"} == set()


def test_modules_are_loaded_by_their_attribute() -> None:
    assert loaded_by("import gpuboost; gpuboost.datasets.make_poker_hands") & {"sklearn", "numba"} == set()
    for name in gpuboost.MODULES:
        assert "gpuboost" in loaded_by(f"import gpuboost; assert gpuboost.{name}.__name__ == 'gpuboost.{name}'")
    with pytest.raises(AttributeError, match="has no attribute 'dataset'"):
        gpuboost.dataset  # noqa: B018


def test_engine_loads_numpy_only() -> None:
    engine = [
        name for name in MODULES if name.split("/")[0].removesuffix(".py") in ("learners", "boosters", "training", "ensemble")
    ]
    names = {"gpuboost." + name.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for name in engine}
    loaded = loaded_by("\n".join(f"import {name}" for name in sorted(names)) + "\nimport gpuboost.backends.reference.backend")
    assert loaded - set(sys.stdlib_module_names) - loaded_by("import numpy") == {"gpuboost"}
