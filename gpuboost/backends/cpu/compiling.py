"""Who wants to know that loops are being compiled: that takes seconds, but happens once on a machine."""

from __future__ import annotations

from collections.abc import Callable

waiting: list[Callable[[], object]] = []
"""Called, each once, before the next loop is compiled."""


def notify_once() -> None:
    """Call those who wait."""
    while waiting:
        waiting.pop()()
