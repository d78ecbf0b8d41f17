"""How an edge is estimated from rows that are filtered one after another, and the rule by which a target error is proven."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.exactmath import log

GROWTH = 1.5
"""A check of `EmpiricalBernstein` has this many times the numbers of the one before."""

POWER = 1.1
"""Its k-th check may be wrong with a probability that falls with this power of k."""


class MeanEstimate(ABC):
    """A mean of bounded random numbers that is estimated within a relative error, from as many as that takes."""

    @abstractmethod
    def add(self, numbers: Floats) -> int | None:
        """Take in numbers in order. Return how many of them were needed, None if more are."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """The estimate."""


@dataclass
class EmpiricalBernstein(MeanEstimate):
    """EGBStop: empirical Bernstein stopping with geometric checks (Mnih, Szepesvari and Audibert 2008).

    Attributes
    ----------
    tau : float
        The relative error, in (0, 1), that is exceeded with a probability of at most ``delta``.
    delta : float
    spread : float
        The numbers lie in an interval of this length.
    """

    tau: float
    delta: float
    spread: float = 1.0
    lower: float = 0.0
    upper: float = math.inf
    sign: float = 1.0
    n_checks: int = 0
    last_check: int = 1
    next_check: int = 2
    numbers: list[Floats] = field(default_factory=list)
    count: int = 0

    def add(self, numbers: Floats) -> int | None:
        before = self.count
        self.numbers.append(numbers)
        self.count += len(numbers)
        while self.next_check <= self.count:
            n = self.next_check
            self.numbers = [np.concatenate(self.numbers)]  # checks grow, so that all of them copy a few times what is there
            if self.check(self.numbers[0][:n]):
                return n - before
            self.last_check, self.next_check = n, math.ceil(GROWTH * n)
        return None

    def check(self, numbers: Floats) -> bool:
        """Narrow the bounds by the numbers so far; return whether they lie close enough."""
        n = len(numbers)
        self.n_checks += 1
        grown = n / self.last_check
        share = self.delta * (POWER - 1) / (POWER * self.n_checks**POWER)  # d_k: they sum to at most delta
        x = -grown * float(log(share / 3))
        mean = float(np.add.accumulate(numbers)[-1]) / n
        variance = float(np.add.accumulate((numbers - mean) ** 2)[-1]) / n
        width = math.sqrt(2 * variance * x / n) + 3 * self.spread * x / n
        self.lower, self.upper = max(self.lower, abs(mean) - width), min(self.upper, abs(mean) + width)
        self.sign = math.copysign(1.0, mean)
        return (1 + self.tau) * self.lower >= (1 - self.tau) * self.upper

    @property
    def mean(self) -> float:
        return self.sign * ((1 + self.tau) * self.lower + (1 - self.tau) * self.upper) / 2


@dataclass
class NonmonotonicSampling(MeanEstimate):
    """NAS, nonmonotonic adaptive sampling (Watanabe 2000), as the first FilterBoost used it (Bradley and Schapire 2007)."""

    tau: float
    delta: float
    spread: float = 1.0
    count: int = 0
    total: float = 0.0
    mean_so_far: float = 0.0

    def add(self, numbers: Floats) -> int | None:
        if not len(numbers):
            return None
        n = self.count + np.arange(1, len(numbers) + 1)
        sums = np.add.accumulate(np.concatenate([[self.total], numbers]))[1:]
        means = sums / n
        width = self.spread * np.sqrt(log(n * (n + 1.0) / self.delta) / (2 * n))
        close = np.flatnonzero(np.abs(means) >= width * (1 + 1 / self.tau))
        last = int(close[0]) if len(close) else len(numbers) - 1
        self.count, self.total, self.mean_so_far = int(n[last]), float(sums[last]), float(means[last])
        return last + 1 if len(close) else None

    @property
    def mean(self) -> float:
        return self.mean_so_far


def share_of_round(delta: float, t: int) -> float:
    """Return ``delta_t = delta / (3 t (t + 1))`` of round t, counted from 1 (line 2 of algorithm 1)."""
    return delta / (3 * t * (t + 1))


@dataclass
class TargetError:
    """The end of algorithm 3: so many rejections in a row that the error is at most ``epsilon``, but for ``delta_t``.

    Attributes
    ----------
    epsilon : float
        The error that is to be reached.
    delta : float
        ``delta_t`` of the round.
    n_classes : int
        A row is accepted with the probability ``p' / (n_classes - 1)``, and the error is at most ``2 E[p']`` (theorem 8).
    """

    epsilon: float
    delta: float
    n_classes: int
    calls: int = 1
    rejections: int = 0

    def limits(self, calls: IntArray) -> IntArray:
        """Return how many rejections in a row end each of these calls of the filter, counted from 1 in every round."""
        scale = 2 * (self.n_classes - 1) / self.epsilon
        return np.ceil(scale * log(calls * (calls + 1.0) / self.delta)).astype(np.int64)  # delta'_t = delta_t / (r (r + 1))

    def is_proven(self, accepted: IntArray, n_rows: int) -> bool:
        """Take in the next ``n_rows`` rows, of which those at ``accepted`` passed the filter."""
        ends = np.concatenate([accepted, [n_rows]])
        runs = np.diff(ends, prepend=-1) - 1
        runs[0] += self.rejections
        (shortest,) = self.limits(np.array([self.calls]))  # later calls have higher limits
        proven = bool(runs.max() >= shortest and (runs >= self.limits(self.calls + np.arange(len(runs)))).any())
        self.calls, self.rejections = self.calls + len(accepted), int(runs[-1])
        return proven


def coefficient(edge: float) -> float:
    """Return ``alpha = 1/2 ln((1/2 + edge) / (1/2 - edge))`` (line 5 of algorithm 1)."""
    return 0.5 * float(log((0.5 + edge) / (0.5 - edge)))
