"""Divisions of the classes into two colours, one for each round (AdaBoost.OC, AdaBoost.ECC, FilterBoost.OC)."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Colouring: TypeAlias = NDArray[np.int8]
"""The colour -1 or +1 of each class, shape (n_classes,)."""


class Colourings(NamedTuple):
    """The colourings of all rounds.

    Attributes
    ----------
    n_classes : int
    seed : int
        Of random colourings, half of the classes each.
    given : sequence of ndarray of int8
        What the rounds take in turns in place of random ones, if there are any.
    """

    n_classes: int
    seed: int
    given: tuple[Colouring, ...] = ()

    def of_round(self, t: int) -> Colouring:
        """Return the colouring of round t, counted from 1."""
        if self.given:
            return self.given[(t - 1) % len(self.given)]
        order = np.random.default_rng([self.seed, t]).permutation(self.n_classes)
        return np.where(order < self.n_classes // 2, np.int8(-1), np.int8(1))
