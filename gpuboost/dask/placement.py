"""Which worker gets which partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar


class Sized(Protocol):
    """A part of a set: a partition, or a row group of a file."""

    @property
    def first_row(self) -> int:
        """The number of its first row."""

    @property
    def n_rows(self) -> int:
        """How many rows it has, at least one."""


Part = TypeVar("Part", bound=Sized)


def by_holders(parts: Sequence[Part], holders: Sequence[Iterable[str]], workers: Iterable[str]) -> dict[str, list[Part]]:
    """Give every part to a worker that holds it; of several, and if none does, to the one with the fewest rows so far.

    Parameters
    ----------
    parts : sequence
        In the order of rows.
    holders : sequence
        The addresses of the workers that hold each part.
    workers : iterable of str
        All that may get a part.

    Returns
    -------
    dict
        The parts of every worker that has some, in the order of rows; workers in the order of their first row.
    """
    rows = dict.fromkeys(sorted(workers), 0)
    chosen: dict[str, list[Part]] = {}
    for part, those in zip(parts, holders, strict=True):
        candidates = [worker for worker in those if worker in rows] or list(rows)
        worker = min(candidates, key=lambda one: (rows[one], one))
        rows[worker] += part.n_rows
        chosen.setdefault(worker, []).append(part)
    return chosen


def in_stretches(parts: Sequence[Part], workers: Sequence[str]) -> dict[str, list[Part]]:
    """Divide the parts between the workers in the order of rows, so that all have about as many rows; some may get none."""
    total, before = sum(part.n_rows for part in parts), 0
    chosen: dict[str, list[Part]] = {}
    for part in parts:
        middle = before + part.n_rows / 2
        chosen.setdefault(workers[min(int(middle * len(workers) / total), len(workers) - 1)], []).append(part)
        before += part.n_rows
    return chosen


def holders_of(client: Any, futures: Sequence[Any]) -> list[tuple[str, ...]]:
    """Return the addresses of the workers that hold each future."""
    known = client.who_has(futures)
    return [tuple(known.get(future.key, ())) for future in futures]
