"""What a cut is worth: every criterion once, for all backends on the host.

The functions take sequences of integers and use float64 operations one by one, in the order in which they stand here. The
reference backend calls them as they are, and the CPU backend compiles them; the kernels repeat them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from gpuboost.exactmath import minus_log2

Criterion: TypeAlias = Literal["edge", "gini", "newton", "rebel", "entropy"]
"""The name of a criterion, see `Backend.find_splits`."""

Integers: TypeAlias = Sequence[int]

EDGE, GINI, NEWTON, REBEL, ENTROPY = range(5)
"""The numbers of the criteria, for compiled code."""


@dataclass(frozen=True)
class Traits:
    """What is known of a criterion.

    Attributes
    ----------
    number : int
    score : callable
        ``score(left, total, sum_abs)`` of the channel sums of a cut's left side and of the node, and of the root's sums of
        abs(quantised); without the counts. Negative for a cut that is no candidate.
    votes : bool
        Whether a node's children inherit a baseline from its votes; then scores are integers, else float64.
    needs_sum_abs : bool
        Whether a score depends on ``sum_abs``.
    has_bound : bool
        Whether the score of some rows bounds that of more rows, so that growth can be pruned.
    """

    number: int
    score: Callable[[Integers, Integers, Integers], float]
    votes: bool = False
    needs_sum_abs: bool = False
    has_bound: bool = False


# ---- edge --------------------------------------------------------------------------------------------------------------------


def edge(left: Integers, total: Integers) -> int:
    """Return the sum of the magnitudes of a cut's edges."""
    score = 0
    for c in range(len(total)):
        score += abs(total[c] - 2 * left[c])
    return score


# ---- gini --------------------------------------------------------------------------------------------------------------------


def purity(sums: Integers, n_classes: int) -> float:
    """Return the sum of the squares over the sum, or 0 if that is 0."""
    squares, weight = 0.0, 0
    for c in range(n_classes):
        s = float(sums[c])
        squares += s * s
        weight += sums[c]
    return squares / float(weight) if weight > 0 else 0.0


def gini(left: Integers, total: Integers, n_classes: int, whole: float) -> float:
    """Return what it adds to the `purity` ``whole`` of a node with the sums ``total`` to have ``left`` apart."""
    left_squares, right_squares = 0.0, 0.0
    left_weight, right_weight = 0, 0
    for c in range(n_classes):
        a, b = left[c], total[c] - left[c]
        x, y = float(a), float(b)
        left_squares += x * x
        right_squares += y * y
        left_weight += a
        right_weight += b
    one = left_squares / float(left_weight) if left_weight > 0 else 0.0
    other = right_squares / float(right_weight) if right_weight > 0 else 0.0
    return one + other - whole


# ---- newton ------------------------------------------------------------------------------------------------------------------


def newton_gain(gradient: int, curvature: int) -> float:
    """Return the gain of a node: 0 without curvature."""
    g = float(gradient)
    return g * g / float(curvature) if curvature != 0 else 0.0


def newton(left_gradient: int, left_curvature: int, gradient: int, curvature: int, whole: float) -> float:
    """Return what a cut adds to the gain ``whole`` of a node; both sides have curvature."""
    x, y = float(left_gradient), float(gradient - left_gradient)
    return x * x / float(left_curvature) + y * y / float(curvature - left_curvature) - whole


# ---- rebel -------------------------------------------------------------------------------------------------------------------


def exponential_loss(edges: Integers, sum_abs: Integers, roots: list[float]) -> float:
    """Return the loss of the best coefficients of a classifier with these edges. ``roots`` is scratch.

    Without the sum, which has to be taken in order, the loop over the classes is vector code.
    """
    for c in range(len(roots)):
        roots[c] = math.sqrt(float(sum_abs[c] + edges[c]) * float(sum_abs[c] - edges[c]))
    loss = 0.0
    for c in range(len(roots)):
        loss += roots[c]
    return loss


# ---- entropy -----------------------------------------------------------------------------------------------------------------


def weighted_entropy(sums: Integers, n_classes: int) -> float:
    """Return the entropy of the classes in bits, times their weight."""
    weight = 0
    for c in range(n_classes):
        weight += sums[c]
    bits = 0.0
    for c in range(n_classes):
        if sums[c] > 0:
            bits += float(sums[c]) * minus_log2(float(sums[c]) / float(weight))
    return bits


def entropy(left: Integers, total: Integers, n_classes: int, whole: float) -> float:
    """Return what it takes from the `weighted_entropy` ``whole`` of a node with the sums ``total`` to have ``left`` apart."""
    left_weight, right_weight = 0, 0
    for c in range(n_classes):
        left_weight += left[c]
        right_weight += total[c] - left[c]
    left_bits, right_bits = 0.0, 0.0
    for c in range(n_classes):
        a, b = left[c], total[c] - left[c]
        if a > 0:
            left_bits += float(a) * minus_log2(float(a) / float(left_weight))
        if b > 0:
            right_bits += float(b) * minus_log2(float(b) / float(right_weight))
    return whole - left_bits - right_bits


# ---- the table ---------------------------------------------------------------------------------------------------------------


def _edge(left: Integers, total: Integers, sum_abs: Integers) -> float:
    return edge(left, total)


def _gini(left: Integers, total: Integers, sum_abs: Integers) -> float:
    return max(gini(left, total, len(total), purity(total, len(total))), 0.0)


def _newton(left: Integers, total: Integers, sum_abs: Integers) -> float:
    (g, h), (all_g, all_h) = left[:2], total[:2]
    return max(newton(g, h, all_g, all_h, newton_gain(all_g, all_h)), 0.0) if 0 < h < all_h else -1.0


def _rebel(left: Integers, total: Integers, sum_abs: Integers) -> float:
    edges, roots = [p - 2 * a for p, a in zip(total, left, strict=True)], [0.0] * len(total)
    return max(exponential_loss(total, sum_abs, roots) - exponential_loss(edges, sum_abs, roots), 0.0)


@lru_cache(maxsize=16)
def _whole_entropy(total: tuple[int, ...]) -> float:
    """Return the same for all cuts of a node."""
    return weighted_entropy(total, len(total))


def _entropy(left: Integers, total: Integers, sum_abs: Integers) -> float:
    return max(float(entropy(left, total, len(total), _whole_entropy(tuple(total)))), 0.0)


CRITERIA: dict[Criterion, Traits] = {
    "edge": Traits(EDGE, _edge, votes=True, has_bound=True),
    "gini": Traits(GINI, _gini, has_bound=True),
    "newton": Traits(NEWTON, _newton),
    "rebel": Traits(REBEL, _rebel, needs_sum_abs=True, has_bound=True),
    "entropy": Traits(ENTROPY, _entropy),
}
