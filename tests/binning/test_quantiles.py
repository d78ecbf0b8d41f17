"""Quantiles of a column that is known in groups: what must be looked into, and that the rest does not matter."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.binning.quantiles import quantile_starts, undecided

some_weights = st.lists(
    st.one_of(st.integers(1, 4), st.integers(1, 4), st.integers(1, 40), st.sampled_from([300, 2000])), min_size=3, max_size=60
)


def in_groups(weights: list[int], cuts: list[bool]) -> list[list[int]]:
    """The weights of neighbours that no cut divides."""
    groups = [[weights[0]]]
    for weight, is_cut in zip(weights[1:], cuts, strict=False):
        if is_cut:
            groups.append([weight])
        else:
            groups[-1].append(weight)
    return groups


@settings(deadline=None, max_examples=400)
@given(some_weights, st.lists(st.booleans(), min_size=60, max_size=60), st.integers(2, 14), st.integers(0, 2**32))
def test_where_no_group_is_undecided_bins_start_as_they_do_among_the_values(
    weights: list[int], cuts: list[bool], max_bins: int, seed: int
) -> None:
    """Undecided groups are divided at random until there are none."""
    groups = in_groups(weights, cuts)
    rng = np.random.default_rng(seed)
    while len(groups) > max_bins:
        sums, sizes = np.array(list(map(sum, groups))), np.array(list(map(len, groups)))
        found = undecided(sums, sizes > 1, max_bins)
        assert not (found & (sizes == 1)).any()
        if not found.any():
            firsts = [0, *accumulate(map(len, groups))]
            starts = [firsts[start] for start in quantile_starts(sums, max_bins)]
            assert starts == quantile_starts(np.array(weights), max_bins).tolist()
            return
        divided: list[list[int]] = []
        for group, is_found in zip(groups, found, strict=True):
            at = rng.integers(1, len(group)) if is_found else len(group)
            divided += [part for part in (group[:at], group[at:]) if part]
        groups = divided


@pytest.mark.parametrize(
    ("weights", "groups", "max_bins", "expected"),
    [
        ([2, 2, 2, 2], [1], 2, []),  # the second share starts behind the group
        ([2, 2, 2, 2], [1, 2], 3, [1]),  # shares start at weights 3 and 6: behind group 2, but within group 1
        ([1, 1, 1, 3], [3], 2, [3]),  # as a value it were heavy: 3 * 2 >= 6
        ([1, 1, 1, 3], [0, 1, 2], 2, []),  # one run of light values before a heavy one
        # The heavy value leaves 3 bins, and room for one more start than its own two. A share starts at 28 / 3, within group 2:
        # if not at its end, in the gap, three shares are too many.
        ([4, 4, 4, 90, 4, 4, 4, 4], [2], 4, [2]),
    ],
)
def test_undecided_groups_by_hand(weights: list[int], groups: list[int], max_bins: int, expected: list[int]) -> None:
    is_group = np.isin(np.arange(len(weights)), groups)
    assert np.flatnonzero(undecided(np.array(weights), is_group, max_bins)).tolist() == expected
