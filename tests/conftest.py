from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.numpy_backend import NumpyBackend
from tests.problems import cpu_backend


@pytest.fixture(params=["numpy", "cpu"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Every backend in turn."""
    with NumpyBackend() if request.param == "numpy" else cpu_backend() as opened:
        yield opened
