from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import Team
from gpuboost.backends.reference.backend import NumpyBackend
from tests.candidates import SLOW, VARIANTS, candidates
from tests.problems import cpu_backend

APART = "tests/backends/cuda/test_kernels_sanitized.py"
"""Its tests are long and share nothing: each may run in any process."""
FIRST = (
    "tests/backends/test_conformance.py",
    APART,
    "tests/backends/cuda/test_kernel_mutants.py",
    "tests/cuda_on_cpu/",
    "tests/backends/cpu/test_pruning.py",
)
"""The long work comes first: while one process compiles most of the loops for all, others find what needs none."""
BUT_EXHAUSTIVE = "not exhaustive"
"""What pytest is told by `addopts` in pyproject.toml, which another ``-m`` on the command line takes the place of."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        choices=["cuda"],
        help="compare this device with the reference, in place of the CPU backend and the emulated device; "
        "skips without a card, and fails with REQUIRE_GPU=1",
    )
    parser.addoption(
        "--mutations",
        type=int,
        default=300,
        help="damaged model files that are loaded (tests/persistence/test_model_damage.py)",
    )
    parser.addoption(
        "--odd-files", type=int, metavar="N", help="how many odd tables the command line is given, in place of 100"
    )
    parser.addoption("--kills", type=int, metavar="N", help="how often a training is killed and resumed, in place of 2")


def pytest_configure(config: pytest.Config) -> None:
    """Leave nothing out of what is asked for by its name, nor on a card, which is quick."""
    asked_for = config.getoption("--device") or any("::" in argument for argument in config.args)
    if config.option.markexpr == BUT_EXHAUSTIVE and asked_for:
        config.option.markexpr = ""


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and config.option.markexpr == BUT_EXHAUSTIVE:
        terminalreporter.write_line("Exhaustive tests were left out: -m exhaustive runs them, see tests/README.md.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With pytest-xdist, which may be missing on a machine with a card, the tests of a file stay in one process.

    So what it compiles is compiled once, and what its tests share is made once.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let every test that asks for a ``candidate`` meet all backends but the reference."""
    if "candidate" in metafunc.fixturenames:
        metafunc.parametrize("candidate", candidates(metafunc.config.getoption("--device")), indirect=True)


def backend_of(item: pytest.Item) -> str:
    """The backend that a test is parametrized with, or an empty string."""
    params: dict[str, Any] = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(params.get("candidate") or params.get("place") or "")


def case_of(item: pytest.Item) -> str:
    """The name of a test without its candidate."""
    return item.nodeid.replace(backend_of(item), "")


def variants_in_turn(cases: Iterable[str]) -> dict[str, str]:
    """Return the variant of the emulated device that each case meets by default; if a test has few cases, they meet all."""
    of_test: dict[str, list[str]] = {}
    for case in cases:
        of_test.setdefault(case.partition("[")[0], []).append(case)
    n = len(VARIANTS)
    many = [found for found in of_test.values() if len(found) >= n]
    # One turn later after every round, so that a variant meets all values of a parameter.
    return {case: VARIANTS[(i + i // n) % n] for found in many for i, case in enumerate(found)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the backend that they are parametrized with; bring those together that share an oracle."""
    cases: dict[str, int] = {}
    items.sort(key=lambda item: cases.setdefault(case_of(item), len(cases)))  # the candidates of a case in succession
    items.sort(key=lambda item: [not item.nodeid.startswith(place) for place in FIRST])
    in_turn = variants_in_turn(dict.fromkeys(case_of(item) for item in items if not item.get_closest_marker("exhaustive")))
    for item in items:
        backend = backend_of(item)
        if backend in VARIANTS and in_turn.get(case_of(item), backend) != backend:
            item.add_marker("exhaustive")
        fixtures = getattr(item, "fixturenames", ())
        if backend.startswith("emulated") or "emulated" in fixtures or "tests/cuda_on_cpu/" in item.nodeid:
            item.add_marker("emulator")
        if backend == "cuda":
            item.add_marker("gpu")
        if backend in SLOW or item.get_closest_marker("exhaustive"):
            item.add_marker("slow")


class Shared:
    """What the candidates of the current case share."""

    case = ""
    results: dict[int, Any]


@pytest.fixture
def once(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Call a function that does not depend on the candidate once for all candidates of a case; they run in succession.

    The calls of a test are told apart by their order.
    """
    case, calls = case_of(request.node), itertools.count()
    if Shared.case != case:
        Shared.case, Shared.results = case, {}

    def result(function: Callable[..., Any], *arguments: Any) -> Any:
        call = next(calls)
        if call not in Shared.results:
            Shared.results[call] = function(*arguments)
        return Shared.results[call]

    return result


@pytest.fixture
def share_all_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loop is worth sharing, so that threads meet on small data too."""
    monkeypatch.setattr(Team, "WORTH_SHARING", 4)


@pytest.fixture
def candidate(request: pytest.FixtureRequest, share_all_loops: None) -> Iterator[Backend]:
    """A backend that must give what the reference gives."""
    with candidates(request.config.getoption("--device"))[request.param]() as backend:
        yield backend


@pytest.fixture(params=["numpy", "cpu"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Every backend of the host in turn."""
    with NumpyBackend() if request.param == "numpy" else cpu_backend() as opened:
        yield opened
