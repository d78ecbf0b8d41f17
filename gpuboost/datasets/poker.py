"""Poker hands: uniform random ones, and what a hand is worth."""

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

# Hands of five cards in the order in which they are drawn, and the 32-bit numbers that map onto them evenly.
_N_DEALS = 52 * 51 * 50 * 49 * 48
_N_EVEN = 2**32 // _N_DEALS * _N_DEALS


def make_poker_hands(
    n_samples: int, random_state: int | np.random.Generator | None = None
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw hands of five cards and say what each is worth, as in the Poker Hand data set of UCI.

    The cards of a hand are drawn from one deck without replacement and stay in the order in which they were
    drawn, so each of the 311,875,200 ordered hands is equally likely; the hands are independent.

    A seed gives the same hands with every version of NumPy: they come from the raw bits of a bit generator, whose
    stream is fixed (NEP 19), not from methods of `numpy.random.Generator`, whose streams may change. The first m of
    n hands are the m hands that the same seed gives.

    Parameters
    ----------
    n_samples : int
        Number of hands, at least 1.
    random_state : int, np.random.Generator or None
        Seed of a PCG64, at least 0, or a generator whose bits to use; None gives different hands every time.

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
        If n_samples is not an integer of at least 1, or the seed is negative.
    TypeError
        If random_state is something else.

    References
    ----------
    Cattral and Oppacher (2002), Poker Hand, UCI Machine Learning Repository, https://doi.org/10.24432/C5KW38.
    """
    if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
        raise ValueError(f"n_samples must be an integer of at least 1, got {n_samples!r}")
    deals = _draw_deals(int(n_samples), _bit_generator(random_state))
    X = np.empty((len(deals), 10), np.uint8)
    cards = np.empty((len(deals), 5), np.uint8)
    for i in range(5):
        deals, place = np.divmod(deals, 52 - i)
        # The card at this place of the 52 - i that are left: step over each that has gone, from the lowest up.
        card = place.astype(np.uint8)
        for gone in np.sort(cards[:, :i], axis=1).T:
            card += card >= gone
        cards[:, i] = card
        X[:, 2 * i] = card // 13 + 1
        X[:, 2 * i + 1] = card % 13 + 1
    return X, label_poker_hands(X)


def _bit_generator(random_state: object) -> np.random.BitGenerator:
    """Return the bit generator that a seed or a generator stands for."""
    if isinstance(random_state, np.random.Generator):
        return random_state.bit_generator
    if random_state is None:
        return np.random.PCG64()
    if not isinstance(random_state, numbers.Integral):
        raise TypeError(f"random_state must be None, an integer or a numpy.random.Generator, got {random_state!r}")
    if random_state < 0:
        raise ValueError(f"random_state must be at least 0, got {random_state}")
    return np.random.PCG64(int(random_state))


def _draw_deals(n: int, bits: np.random.BitGenerator) -> NDArray[np.uint32]:
    """Draw numbers below `_N_DEALS`: each is one word's low 32 bits, and words that would favour some are skipped.

    All bit generators of NumPy give at least 32 bits a word. No word is drawn that is not looked at, so several
    calls on one generator give what one call would.
    """
    deals = np.empty(n, np.uint32)
    done = 0
    while done < n:
        words = (bits.random_raw(n - done) & 0xFFFFFFFF).astype(np.uint32)
        words = words[words < _N_EVEN] % _N_DEALS
        deals[done : done + len(words)] = words
        done += len(words)
    return deals


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
