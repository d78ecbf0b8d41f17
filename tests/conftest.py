from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import Team
from gpuboost.backends.reference.backend import NumpyBackend
from tests.candidates import candidates
from tests.problems import cpu_backend


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
    parser.addoption("--kills", type=int, metavar="N", help="how often a training is killed and resumed, in place of 3")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let every test that asks for a ``candidate`` meet all backends but the reference."""
    if "candidate" in metafunc.fixturenames:
        metafunc.parametrize("candidate", candidates(metafunc.config.getoption("--device")), indirect=True)


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
