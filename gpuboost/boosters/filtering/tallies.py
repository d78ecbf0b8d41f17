"""What drawn rows say about the model that they were drawn with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.label_weights import LOSS_BITS
from gpuboost.boosters.filtering.draw import ONE, Part


class Tally(NamedTuple):
    """What drawn rows say about the model that they were drawn with: weighted means.

    Attributes
    ----------
    label_weight : float
        The mean of ``p'``, the sum of a row's label weights; twice that bounds the error (theorem 8).
    error : float
        The share of the rows that are predicted wrong.
    loss : float
        The mean logistic loss of a row and a wrong label, in bits: 1 for an empty model.
    """

    label_weight: float
    error: float
    loss: float


@dataclass
class Sums:
    """Sums over rows, by the scores that they were drawn with. They are exact: the same however the rows are cut.

    Attributes
    ----------
    n_rows : int
        Rows that were read, those of weight 0 included.
    terms : list of list of float
        For the weights, the label weights, the wrong rows and the losses: few numbers whose sum is that of all rows.
    """

    n_rows: int = 0
    terms: list[list[float]] = field(default_factory=lambda: [[], [], [], []])

    def add(self, parts: Sequence[Part]) -> Self:
        """Take in rows; nothing is kept of them."""
        self.n_rows += sum(part.end - part.begin for part in parts)
        weight, *columns = (np.concatenate(pieces) for pieces in zip(*map(_of_rows, parts), strict=True))
        for terms, numbers in zip(self.terms, (None, *columns), strict=True):
            if not (weight == 1.0).all():
                new = (weight if numbers is None else weight * numbers).tolist()
            else:
                total = len(weight) if numbers is None else int(numbers.sum())
                new = [float(total), float(total - int(float(total)))]
            terms[:] = _expansion([*terms, *new])
        return self

    def tally(self, n_classes: int) -> Tally:
        """Return the means."""
        total, label_weight, wrong, loss = map(math.fsum, self.terms)
        others = max(n_classes - 1, 1)
        return Tally(label_weight / total / ONE, wrong / total, loss / total / (others << LOSS_BITS))


def _expansion(numbers: list[float]) -> list[float]:
    """Return few numbers with exactly the same sum: its rounded value, that of the rest, and so on."""
    found: list[float] = []
    while rest := math.fsum([*numbers, *(-x for x in found)]):
        found.append(rest)
    return found


def _of_rows(part: Part) -> tuple[Floats, IntArray, NDArray[np.bool_], IntArray]:
    exists = part.exists
    return part.weight[exists], part.label_weight[exists], part.wrong[exists], part.loss[exists]
