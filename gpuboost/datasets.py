"""Data sets that are made rather than downloaded."""

from __future__ import annotations

import itertools
import numbers

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["POKER_HANDS", "label_poker_hands", "make_poker_hands"]

POKER_HANDS = (
    "nothing in hand",
    "one pair",
    "two pairs",
    "three of a kind",
    "straight",
    "flush",
    "full house",
    "four of a kind",
    "straight flush",
    "royal flush",
)
"""Names of the ten classes of poker hands, by label."""

# The class by the number of pairs of cards (of ten) that have the same rank; 5 cannot occur.
_CLASS_BY_EQUAL_PAIRS = np.array([0, 1, 2, 3, 6, -1, 7])


def make_poker_hands(
    n_samples: int, *, random_state: int | np.random.Generator | None = None
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw hands of five cards and say what each is worth, as in the Poker Hand data set of UCI.

    The cards of a hand are drawn from one deck without replacement and stay in the order in which they were
    drawn, so each of the 311,875,200 ordered hands is equally likely; the hands are independent.

    Parameters
    ----------
    n_samples : int
        Number of hands, at least 1.
    random_state : int, np.random.Generator or None
        Seed, or the generator to draw from; None gives different hands every time.

    Returns
    -------
    X : ndarray of uint8, shape (n_samples, 10)
        Columns S1, C1, ..., S5, C5: suit (1 to 4) and rank (1 to 13, the ace is 1, the king 13) of each card.
    y : ndarray of int64, shape (n_samples,)
        Labels 0 to 9, which index `POKER_HANDS`. The classes are very unequal: half of the hands are worth
        nothing, and 1 in 649,740 is a royal flush.

    Raises
    ------
    ValueError
        If n_samples is not an integer of at least 1.

    References
    ----------
    Cattral and Oppacher (2002), Poker Hand, UCI Machine Learning Repository, https://doi.org/10.24432/C5KW38.
    """
    if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
        raise ValueError(f"n_samples must be an integer of at least 1, got {n_samples!r}")
    rng = np.random.default_rng(random_state)
    X = np.empty((n_samples, 10), np.uint8)
    cards = np.empty((n_samples, 5), np.uint8)
    for i in range(5):
        # The d-th of the 52 - i cards that are left: step over each card that has gone, from the lowest up.
        card = rng.integers(52 - i, size=n_samples, dtype=np.uint8)
        for gone in np.sort(cards[:, :i], axis=1).T:
            card += card >= gone
        cards[:, i] = card
        X[:, 2 * i] = card // 13 + 1
        X[:, 2 * i + 1] = card % 13 + 1
    return X, label_poker_hands(X)


def label_poker_hands(X: ArrayLike) -> NDArray[np.int64]:
    """Return the class (0 to 9, an index into `POKER_HANDS`) of each hand.

    The ace is the lowest card of a straight (A 2 3 4 5) or the highest (10 J Q K A), never one in between.

    Parameters
    ----------
    X : array_like of int, shape (n_samples, 10)
        Columns S1, C1, ..., S5, C5 as returned by `make_poker_hands`; five different cards in any order.

    Returns
    -------
    ndarray of int64, shape (n_samples,)

    Raises
    ------
    ValueError
        If X has another shape, or holds a suit outside of 1 to 4 or a rank outside of 1 to 13.
    """
    hands = np.asarray(X)
    if hands.ndim != 2 or hands.shape[1] != 10:
        raise ValueError(f"X must have the shape (n_samples, 10), got {hands.shape}")
    for name, values, most in (("suits", hands[:, 0::2], 4), ("ranks", hands[:, 1::2], 13)):
        if values.size and not (values.min() >= 1 and values.max() <= most):
            raise ValueError(f"{name} must be 1 to {most}, got {values.min()} to {values.max()}")
    suits, ranks = hands[:, 0::2].T.astype(np.uint8), hands[:, 1::2].T.astype(np.uint8)

    equal_pairs = np.zeros(len(hands), np.uint8)
    for i, j in itertools.combinations(range(5), 2):
        equal_pairs += ranks[i] == ranks[j]
    ranks_ace_high = np.where(ranks == 1, np.uint8(14), ranks)
    lowest_ace_high = ranks_ace_high.min(axis=0)
    straight = (equal_pairs == 0) & (
        (ranks.max(axis=0) - ranks.min(axis=0) == 4) | (ranks_ace_high.max(axis=0) - lowest_ace_high == 4)
    )
    flush = (suits == suits[0]).all(axis=0)

    labels = _CLASS_BY_EQUAL_PAIRS.astype(np.int64)[equal_pairs]
    labels[straight] = 4
    labels[flush] = 5
    labels[straight & flush] = 8
    labels[straight & flush & (lowest_ace_high == 10)] = 9
    return labels
