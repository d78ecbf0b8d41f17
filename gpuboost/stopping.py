"""Early-stopping rules: given the validation errors of the rounds so far, when to stop and which round to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Stopping(Protocol):
    """An early-stopping rule. Rounds count from 1."""

    def should_stop(self, errors: Sequence[float]) -> bool:
        """Whether to stop after ``len(errors)`` rounds."""

    def best(self, errors: Sequence[float]) -> int:
        """Return the number of rounds to keep."""


@dataclass(frozen=True)
class Patience:
    """Keep the first round with the lowest error; stop when ``n_iter_no_change`` rounds have not lowered it."""

    n_iter_no_change: int

    def best(self, errors: Sequence[float]) -> int:
        return int(np.argmin(errors)) + 1

    def should_stop(self, errors: Sequence[float]) -> bool:
        return len(errors) - self.best(errors) >= self.n_iter_no_change


@dataclass(frozen=True)
class SmoothedError:
    """The stopping time of eq. 15 of Kegl (2014): the T with the lowest mean error over the rounds ``floor(0.8 T) .. T``.

    The first ``min_rounds`` rounds are no candidates, unless there are no others. (The paper divides by the number of terms
    minus one, which would favour long windows; this is the mean.) The paper runs all rounds and then looks back; with
    ``n_iter_no_change`` the training stops when that many rounds have not lowered the smoothed error.
    """

    n_iter_no_change: int | None = None
    min_rounds: int = 50

    def smoothed(self, errors: Sequence[float]) -> NDArray[np.float64]:
        """Return the smoothed error of T = 1, 2, ..., len(errors)."""
        sums = np.concatenate([[0.0], np.cumsum(errors)])
        last = np.arange(1, len(errors) + 1)
        first = np.maximum(8 * last // 10, 1)
        smoothed: NDArray[np.float64] = (sums[last] - sums[first - 1]) / (last - first + 1)
        return smoothed

    def first_candidate(self, n_rounds: int) -> int:
        """Return the first of ``n_rounds`` rounds that may be kept."""
        return self.min_rounds + 1 if n_rounds > self.min_rounds else 1

    def best(self, errors: Sequence[float]) -> int:
        first = self.first_candidate(len(errors))
        return first + int(np.argmin(self.smoothed(errors)[first - 1 :]))

    def should_stop(self, errors: Sequence[float]) -> bool:
        if self.n_iter_no_change is None or len(errors) <= self.min_rounds + self.n_iter_no_change:
            return False
        return len(errors) - self.best(errors) >= self.n_iter_no_change
