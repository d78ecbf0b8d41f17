"""The pictures are drawn for files: no window, and settings that nobody may change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def untouched_matplotlib() -> Iterator[None]:
    """Draw with Agg, and check that neither the settings nor the backend have changed."""
    matplotlib = pytest.importorskip("matplotlib")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with matplotlib.rc_context():
        matplotlib.use("agg")
        before = dict(matplotlib.rcParams)
        yield
        assert dict(matplotlib.rcParams) == before
        assert matplotlib.get_backend().lower() == "agg"
        pyplot.close("all")
