"""A stand-in for NCCL between emulated devices, which are threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import Part

LOOK_SECONDS = 0.01


@dataclass
class Group:
    """The devices that have met under one name.

    Attributes
    ----------
    queued : dict
        By the number of a group of sums, what each rank has given to it.
    """

    changed: threading.Condition = field(default_factory=threading.Condition)
    ranks: set[int] = field(default_factory=set)
    queued: dict[int, dict[int, list[NDArray[np.generic]]]] = field(default_factory=dict)


GROUPS: dict[bytes, Group] = {}
MEETING = threading.Lock()


class LinkedDevice:
    """See `gpuboost.backends.cuda.gpu.Communicator`. A worker that does not come is waited for until ``check`` raises."""

    def __init__(self, group: bytes, rank: int, size: int, check: Callable[[], None]) -> None:
        with MEETING:
            self._group = GROUPS.setdefault(group, Group())
        self._rank, self._size = rank, size
        self._number = 0
        self._waiting: list[tuple[int, Sequence[Part]]] = []
        with self._group.changed:
            self._group.ranks.add(rank)
            self._group.changed.notify_all()
            self._wait_for(lambda: len(self._group.ranks) == size, check)

    def reduce(self, parts: Sequence[Part]) -> None:
        given = []
        for array, root, into in parts:
            assert array.flags.c_contiguous
            assert array.dtype in (np.int32, np.int64)
            assert (into is None) == (root != self._rank)
            assert into is None or (into.flags.c_contiguous and into.size == array.size and into.dtype == array.dtype)
            given.append(array.memory.reshape(-1).copy())
        with self._group.changed:
            self._group.queued.setdefault(self._number, {})[self._rank] = given
            self._group.changed.notify_all()
        self._waiting.append((self._number, parts))
        self._number += 1

    def wait(self, check: Callable[[], None]) -> None:
        with self._group.changed:
            for number, parts in self._waiting:
                queued = self._group.queued[number]
                self._wait_for(lambda queued=queued: len(queued) == self._size, check)  # type: ignore[misc]
                assert len({tuple(len(one) for one in given) for given in queued.values()}) == 1  # NCCL would wait, or worse
                for place, part in enumerate(parts):
                    if part.into is not None:
                        total = sum(given[place] for given in queued.values())
                        part.into.memory.reshape(-1)[:] = total
            self._waiting.clear()

    def _wait_for(self, is_so: Callable[[], bool], check: Callable[[], None]) -> None:
        while not is_so():
            self._group.changed.wait(LOOK_SECONDS)
            check()

    def close(self) -> None:
        """Nothing is held."""
