"""What may know what: the layers, the rules that keep devices out of the algorithms, sizes, and an import that stays light.

A rule is a function from the sources, as a dict of names and texts, to the offences that it finds. So each is tried on planted
sources as well.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import gpuboost
from gpuboost.backends.cuda.kernels import KERNELS

PACKAGE = Path(gpuboost.__file__).parent
SOURCES = {
    ".".join(["gpuboost", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__"): path.read_text("utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}

# From the top: a module may import modules of lower lines, and of its own package. Modules of one line do not know each other.
LAYERS = """
gpuboost.__main__
gpuboost.cli
gpuboost
gpuboost.demo gpuboost.doctor
gpuboost.dask
gpuboost.active gpuboost.features
gpuboost.estimators
gpuboost.code_files
gpuboost.export gpuboost.persistence gpuboost.plotting
gpuboost.training
gpuboost.progress gpuboost.stopping
gpuboost.streams
gpuboost.costs gpuboost.codes gpuboost.calibration gpuboost.early_exit
gpuboost.inputs
gpuboost.boosters
gpuboost.learners
gpuboost.devices
gpuboost.backends.reference gpuboost.backends.cpu gpuboost.backends.cuda
gpuboost.backends
gpuboost.datasets gpuboost.ensemble gpuboost.similarities gpuboost.links gpuboost.rectangle_matrix
gpuboost.tree gpuboost.binning gpuboost.rectangles
gpuboost.by_name gpuboost.fixedpoint gpuboost.exactmath gpuboost.exactsum
gpuboost.extras gpuboost.messages gpuboost.registry gpuboost.peers
gpuboost.errors gpuboost.array_types gpuboost.streams.contract
"""
ORDER = {name: number for number, line in enumerate(LAYERS.split("\n")) for name in line.split()}
DEVICE_WORDS = {"cuda", "cupy", "gpu", "nvrtc", "numba"}
KNOW_DEVICES = tuple(f"gpuboost.{name}" for name in ("backends", "estimators", "cli", "devices", "doctor", "inputs.arrays"))
ALGORITHMS = ("gpuboost.boosters", "gpuboost.learners")
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_BOOSTER, MOST_PARAMETERS = 400, 60, 150, 10


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def layer(name: str) -> str:
    """The line of `LAYERS` that a module belongs to: its package or the nearest one around it."""
    while name not in ORDER:
        name = name.rpartition(".")[0]
    return name


@cache
def parse(source: str) -> ast.Module:
    return ast.parse(source)


def docstrings(tree: ast.Module) -> list[ast.Expr]:
    """Docstrings, those that follow an assignment included: all strings that stand alone as a statement."""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    return [node for node in statements if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)]


def imported(tree: ast.Module) -> Iterator[str]:
    """Full names of everything imported, at the top level, inside functions, or for types only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports(sources: dict[str, str]) -> dict[str, set[str]]:
    """The modules of the package that each module imports."""
    graph: dict[str, set[str]] = {}
    for name, source in sources.items():
        full = [one for one in imported(parse(source)) if one.split(".")[0] == "gpuboost"]
        graph[name] = {one if one in sources else one.rpartition(".")[0] for one in full} - {name}
    return graph


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


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


# ---- the rules ---------------------------------------------------------------------------------------------------------------


def upward_imports(sources: dict[str, str]) -> list[str]:
    """Imports of a higher layer, or of another package of the same one."""
    return [
        f"{name} imports {other}"
        for name, others in imports(sources).items()
        for other in sorted(others)
        if layer(name) != layer(other) and ORDER[layer(other)] <= ORDER[layer(name)]
    ]


def circles(sources: dict[str, str]) -> list[str]:
    """Modules that import themselves through others: what is left without those that import none, or that none imports."""
    graph = imports(sources)
    while True:
        used = set().union(*graph.values()) if graph else set()
        kept = {name: others & graph.keys() for name, others in graph.items() if others & graph.keys() and name in used}
        if kept.keys() == graph.keys():
            return [f"{name} imports {', '.join(sorted(others & graph.keys()))}" for name, others in graph.items()]
        graph = kept


def device_words(sources: dict[str, str]) -> list[str]:
    """Only backends, and what opens and shows them, know what a device is."""
    found = {name: words(parse(source)) & DEVICE_WORDS for name, source in sources.items() if not within(name, KNOW_DEVICES)}
    return [f"{name} says {', '.join(sorted(said))}" for name, said in found.items() if said]


def opened_backends(sources: dict[str, str]) -> list[str]:
    """Only devices and the doctor know more of the backends than their contract and a few functions of no device."""
    neutral = (
        "cpu.threads",
        "cpu.compiling",
        "cuda.device_arrays",
        "base",
        "early_exit",
        "statistics",
        "frontier",
        "criteria",
        "label_weights",
        "points",
    )
    allowed = tuple(f"gpuboost.backends.{part}" for part in neutral)
    return [
        f"{name} imports {full}"
        for name, source in sources.items()
        if not within(name, ("gpuboost.backends", "gpuboost.devices", "gpuboost.doctor"))
        for full in imported(parse(source))
        if full.startswith("gpuboost.backends") and not full.startswith(allowed)
    ]


def outside_of_algorithms(sources: dict[str, str]) -> list[str]:
    """Boosters and learners use the standard library's small parts and NumPy."""
    allowed = {
        "__future__",
        "abc",
        "collections",
        "dataclasses",
        "functools",
        "itertools",
        "math",
        "numpy",
        "typing",
        "gpuboost",
    }
    return [
        f"{name} imports {full}"
        for name, source in sources.items()
        if within(name, ALGORITHMS)
        for full in imported(parse(source))
        if full.split(".")[0] not in allowed
    ]


def inexact_functions(sources: dict[str, str]) -> list[str]:
    """Only `gpuboost.exactmath` may compute exponentials and logarithms: those of libraries differ between machines."""
    inexact = {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "pow", "power", "tanh"}
    return [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, source in sources.items()
        if within(name, (*ALGORITHMS, "gpuboost.backends"))
        for node in ast.walk(parse(source))
        if isinstance(node, ast.Attribute) and node.attr in inexact and getattr(node.value, "id", "") in ("np", "math", "numpy")
    ]


def excesses(sources: dict[str, str]) -> list[str]:
    """Files, functions, boosters and parameter lists that are too long.

    A file may be longer if its docstring has a sentence that says why: "This file is long because ...".
    """
    found = []
    for name, source in sources.items():
        tree, lines = parse(source), source.splitlines()
        if len(lines) > LONGEST_FILE and "This file is long because" not in (ast.get_docstring(tree) or ""):
            found.append(f"{name} has {len(lines)} lines")
        documented = {n for node in docstrings(tree) for n in range(node.lineno, (node.end_lineno or 0) + 1)}
        code = len([n for n, line in enumerate(lines, start=1) if line.strip() and n not in documented])
        if name.startswith("gpuboost.boosters.") and code > LONGEST_BOOSTER:  # it can be read beside its paper
            found.append(f"{name} has {code} lines of code")
        for node in functions(tree):
            length = len(set(range(node.lineno, (node.end_lineno or 0) + 1)) - documented)
            if length > LONGEST_FUNCTION:
                found.append(f"{name}.{node.name} has {length} lines")
            compiled = any(ast.unparse(decorator).startswith("compiled") for decorator in node.decorator_list)
            if compiled and len(node.args.args) > MOST_PARAMETERS:
                found.append(f"{name}.{node.name} has {len(node.args.args)} parameters")
    return found


RULES = (upward_imports, circles, device_words, opened_backends, outside_of_algorithms, inexact_functions, excesses)


@pytest.mark.parametrize("rule", RULES)
def test_the_package_keeps_the_rule(rule: object) -> None:
    assert callable(rule)
    assert rule(SOURCES) == []


def test_no_kernel_has_many_parameters() -> None:
    assert [name for name, kernel in KERNELS.items() if len(kernel.parameters) > MOST_PARAMETERS] == []


LONG = "def f(x):\n" + "    x += 1\n" * 60
PLANTED = [
    (upward_imports, {"gpuboost.tree": "def f():\n    from gpuboost.training import train", "gpuboost.training": ""}),
    (upward_imports, {"gpuboost.links": "from gpuboost.ensemble import Ensemble", "gpuboost.ensemble": ""}),
    (upward_imports, {"gpuboost.tree": "if TYPE_CHECKING:\n    import gpuboost.cli", "gpuboost.cli": ""}),
    (circles, {"gpuboost.cli.a": "import gpuboost.cli.b", "gpuboost.cli.b": "if T:\n    from gpuboost.cli import a"}),
    (device_words, {"gpuboost.tree": '"""cuda"""\nx = f"{a.cudaStream}"'}),
    (device_words, {"gpuboost.training": "def f(use_nvrtc): pass"}),
    (opened_backends, {"gpuboost.estimators.base": "from gpuboost.backends.cpu.backend import CpuBackend"}),
    (outside_of_algorithms, {"gpuboost.boosters.new": "import sklearn.tree"}),
    (inexact_functions, {"gpuboost.learners.new": "x = np.exp(1.0)"}),
    (excesses, {"gpuboost.tree": "\n" * 401}),
    (excesses, {"gpuboost.tree": LONG}),
    (excesses, {"gpuboost.boosters.new": "x = 1\n" * 151}),
    (excesses, {"gpuboost.backends.cpu.loops.new": "@compiled\ndef f(a, b, c, d, e, f, g, h, i, j, k): pass"}),
]


@pytest.mark.parametrize(("rule", "sources"), PLANTED)
def test_the_rule_finds_planted_offences(rule: object, sources: dict[str, str]) -> None:
    assert callable(rule)
    assert len(rule(sources)) in (1, 2)  # a circle has two members


def test_every_module_has_a_layer() -> None:
    assert [name for name in SOURCES if name.count(".") == 1 and name not in ORDER] == []


# ---- what is loaded ----------------------------------------------------------------------------------------------------------


def loaded_by(code: str) -> set[str]:
    """Top-level names of the modules that a fresh process has loaded after ``code``."""
    script = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert out.stderr == ""
    return {name.split(".")[0] for name in out.stdout.split()}


def test_import_is_light() -> None:
    loaded = loaded_by("import gpuboost; dir(gpuboost)")
    assert "gpuboost" in loaded
    heavy = "numba llvmlite sklearn scipy pandas polars pyarrow matplotlib joblib tqdm cupy torch difflib"
    assert loaded & set(heavy.split()) == set()


def test_what_is_loaded_on_use_is_listed() -> None:
    names = dir(gpuboost)
    assert names == sorted({*gpuboost.__all__, *gpuboost.MODULES})
    assert all(hasattr(gpuboost, name) for name in names)


@pytest.mark.slow
def test_modules_are_loaded_by_their_attribute() -> None:
    assert loaded_by("import gpuboost; gpuboost.datasets.make_poker_hands") & {"sklearn", "numba"} == set()
    for name in gpuboost.MODULES:
        assert "gpuboost" in loaded_by(f"import gpuboost; assert gpuboost.{name}.__name__ == 'gpuboost.{name}'")
    with pytest.raises(AttributeError, match="has no attribute 'dataset'"):
        gpuboost.dataset  # noqa: B018


def test_engine_loads_numpy_only() -> None:
    engine = (*ALGORITHMS, "gpuboost.training", "gpuboost.ensemble", "gpuboost.backends.reference")
    loaded = loaded_by("\n".join(f"import {name}" for name in SOURCES if within(name, engine)))
    assert loaded - set(sys.stdlib_module_names) - loaded_by("import numpy") == {"gpuboost"}
