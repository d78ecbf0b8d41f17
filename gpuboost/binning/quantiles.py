"""Where the bins of a feature start: quantiles of weighted distinct values, exact in integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray

MAX_VALUE_BINS = 255  # so that codes fit in uint8

_INT64_MAX = 2**63 - 1


def midpoint(a: Floats, b: Floats) -> Floats:
    """The cuts between float64 values a < b: halfway, never NaN, and always with ``a < cut <= b``.

    Infinities count as the largest finite numbers, and the sum cannot overflow. The cut is b where rounding
    would give a (neighbouring floats, denormals, the largest finite number and infinity), and never -0.0.
    """
    largest = np.finfo(np.float64).max
    middle = np.clip(a, -largest, largest) / 2 + np.clip(b, -largest, largest) / 2
    return np.where(middle > a, middle, b) + 0.0  # middle <= b: rounding is monotone, also of subnormal halves


def quantile_starts(weights: IntArray, max_bins: int) -> NDArray[np.intp]:
    """Where bins start, 0 left out, among more than max_bins distinct values of the given positive weights.

    A heavy value gets a bin of its own. The light ones are divided at equal steps of their cumulative weight,
    whatever heavy values lie between them, into the largest number r of shares that keeps within max_bins. A
    light value weighs less than a share, so no share is empty and no bin of light values weighs two shares.
    """
    is_heavy, n_left = _heavy(weights, max_bins)
    is_start = _beside_heavy(is_heavy)
    n_spare = max_bins - int(np.count_nonzero(is_start))
    if n_spare < 0:
        _join_lightest(is_start, is_heavy, weights, -n_spare)
    else:
        light = np.flatnonzero(~is_heavy)
        before, targets = _shares(weights[light], np.diff(light) > 1, n_left, n_spare)
        is_start[light[np.searchsorted(before, targets)]] = True
    return np.flatnonzero(is_start)[1:]


def undecided(weights: IntArray, is_group: NDArray[np.bool_], max_bins: int) -> NDArray[np.bool_]:
    """Which groups must be looked into before `quantile_starts` is right about a column that is known in groups.

    A group is some neighbouring values that are taken for one, of their total weight. There are more than max_bins groups
    and single values. Where no group is undecided, bins start at groups and values, never within a group:

    - Heavy is no group, so no value within one: what counts as heavy never rises in `_heavy`.
    - No share starts within a group: its target is not strictly between the weights before and after the group.
    - The shares are as many as among the values. In front of heavy values `_shares` takes the weight before a group for that
      before its last value. This can only add shares that start in the gap. Where it adds one, that starts within the group.
    """
    is_heavy, n_left = _heavy(weights, max_bins)
    found = is_group & is_heavy
    n_spare = max_bins - int(np.count_nonzero(_beside_heavy(is_heavy)))
    if found.any() or n_spare < 0:  # all else depends on what is heavy, or nothing does
        return found
    light = np.flatnonzero(~is_heavy)
    before, targets = _shares(weights[light], np.diff(light) > 1, n_left, n_spare)
    starts = np.searchsorted(before, targets)
    found[light[starts[before[starts] != targets] - 1]] = True
    return found & is_group


def _beside_heavy(is_heavy: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where bins start if only heavy values have bins of their own."""
    is_start = is_heavy.copy()
    is_start[1:] |= is_heavy[:-1]
    is_start[0] = True
    return is_start


def _heavy(weights: IntArray, max_bins: int) -> tuple[NDArray[np.bool_], int]:
    """Which values are heavy, and how many bins that leaves to the light ones.

    Heavy is what weighs at least an equal part of what heavier values leave, in weight and in bins. Of more
    than max_bins values, at least two stay light, and at least one bin is left.
    """
    is_heavy = np.zeros(weights.size, dtype=np.bool_)
    while True:
        n_left = max_bins - int(np.count_nonzero(is_heavy))
        part = -(-int(weights[~is_heavy].sum()) // n_left)  # weight >= ceil(left / n) <=> weight * n >= left
        more = weights >= part
        if not (more & ~is_heavy).any():
            return is_heavy, n_left
        is_heavy |= more


def _shares(weights: IntArray, is_gap: NDArray[np.bool_], max_shares: int, n_spare: int) -> tuple[IntArray, IntArray]:
    """Divide the light values into the most shares that add at most n_spare bins.

    ``is_gap[i]`` says that heavy values lie between the light values i and i + 1. A new bin starts there
    anyhow, so r shares add r - 1 bins, less the gaps in which a share starts too.

    Returns
    -------
    before : int64 (n_light,)
        The weight before each light value.
    targets : int64 (n_shares - 1,)
        A share, all but the first, starts at the first value that has at least so much weight before it.
    """
    before = np.cumsum(weights) - weights
    total = int(weights.sum())
    gaps = np.flatnonzero(is_gap)
    r = np.arange(max(1, max_shares - gaps.size), max_shares + 1)
    ends: NDArray[Any] = before[[gaps, gaps + 1]]
    if total > _INT64_MAX // MAX_VALUE_BINS:
        ends = ends.astype(object)  # Python integers, as int64 could overflow in the next line
    left, right = ends[..., np.newaxis] * r // total  # the shares of both ends of every gap, for every r
    n_added = r - 1 - np.count_nonzero(left != right, axis=0)
    n_shares = int(r[n_added <= n_spare][-1])
    return before, np.array([-(-total * j // n_shares) for j in range(1, n_shares)], dtype=np.int64)


def _join_lightest(is_start: NDArray[np.bool_], is_heavy: NDArray[np.bool_], weights: IntArray, n: int) -> None:
    """Join the n lightest runs of light values to the heavy value before them (the first run: after it)."""
    starts = np.flatnonzero(is_start)
    runs = np.flatnonzero(~is_heavy[starts])
    lightest = runs[np.argsort(np.add.reduceat(weights, starts)[runs], kind="stable")[:n]]
    is_start[starts[np.maximum(lightest, 1)]] = False
