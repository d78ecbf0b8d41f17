"""Skip tests where kernels cannot run, unless somebody insists that they do."""

from __future__ import annotations

import os

import pytest


def require(reason: str | None) -> None:
    """Skip the test that runs if there is a reason to; with REQUIRE_EMULATOR=1 let it fail."""
    if reason is None:
        return
    if os.environ.get("REQUIRE_EMULATOR") == "1":
        pytest.fail(f"REQUIRE_EMULATOR=1, but {reason}")
    pytest.skip(reason)
