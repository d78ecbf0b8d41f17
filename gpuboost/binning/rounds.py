"""The rounds in which columns become known, whose entries lie in many places: the cuts are those of all entries in one place.

All workers know the same `Outline` of a column, and open more and more of its groups, until `quantiles.undecided` finds none
that matters. In a round every worker tells its entries in the groups to be opened if they are few, else some of their keys, its
pivots. If all entries are told, the groups are known. Else the pivots become known values, and the weights of the new blocks
are summed. What a worker has may in its turn lie in chunks, see `gpuboost.binning.chunks`.

A round leaves at most about ``n_groups (1 / pivots of all + 1 / pivots of a worker)`` of the entries in question, whatever
their distribution over values and workers, so rounds are few. Columns go through the rounds side by side, in one message.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.binning.chunks import ChunkedColumns
from gpuboost.binning.keys import LOWEST, Keys, to_values
from gpuboost.binning.outline import UNKNOWN, Outline
from gpuboost.binning.parts import decoded, divided, encoded, merged, pivots
from gpuboost.binning.quantiles import midpoint
from gpuboost.peers.base import Peers


class Budget(NamedTuple):
    """How much of a column is told in one round.

    Attributes
    ----------
    entries : int
        Of one worker.
    pivots : int
        Of one worker, where it has more entries than that; not more than ``entries``.
    known : int
        About so many of all workers' pivots become known values.
    """

    entries: int
    pivots: int
    known: int


def cuts_by_rounds(
    columns: ChunkedColumns, max_bins: int, budget: Budget, peers: Peers, what: str
) -> list[tuple[Floats, bool]]:
    """Return the cuts of some columns, and whether they have NaN, see `gpuboost.binning.BinMapper.fit`.

    Parameters
    ----------
    columns : ChunkedColumns
        This worker's.
    max_bins : int
    budget : Budget
    peers : gpuboost.peers.base.Peers
    what : str
        What workers call it.
    """
    outlines, has_missing = _outlines(columns, max_bins, budget, peers, what)
    sides = [outline.sides_of_cuts(max_bins) for outline in outlines]
    unknown = [(left == LOWEST, right == LOWEST) for left, right in sides]
    asked = [(right[no_left], left[no_right]) for (left, right), (no_left, no_right) in zip(sides, unknown, strict=True)]
    if any(keys.size for pair in asked for keys in pair):
        own = [keys for before, after in columns.neighbours(asked) for keys in (before, ~after)]
        found = iter(divided(peers.max(np.concatenate(own), what), [keys.size for keys in own]))
        for (left, right), (no_left, no_right) in zip(sides, unknown, strict=True):
            left[no_left], right[no_right] = next(found), ~next(found)
    cuts = [midpoint(to_values(left), to_values(right)) for left, right in sides]
    return list(zip(cuts, has_missing, strict=True))


def _outlines(
    columns: ChunkedColumns, max_bins: int, budget: Budget, peers: Peers, what: str
) -> tuple[list[Outline], list[bool]]:
    """Outlines of some columns that leave no cut undecided, and whether the columns have NaN."""
    outlines, has_missing = [UNKNOWN] * columns.n_columns, [False] * columns.n_columns
    to_open: dict[int, NDArray[np.intp]] = {c: np.zeros(1, np.intp) for c in range(columns.n_columns)}
    while to_open:
        asked = {c: (outlines[c].keys, groups) for c, groups in to_open.items()}
        own = columns.parts(asked, budget.entries, budget.pivots)
        told = [decoded(message, len(own)) for message in peers.gather(encoded(own), what)]
        uncounted: dict[int, NDArray[np.intp]] = {}
        for (c, groups), *parts in zip(to_open.items(), *told, strict=True):
            has_missing[c] = any(part.has_missing for part in parts)
            if all(part.is_whole for part in parts):
                keys, weights = merged(parts)
                outlines[c], blocks = outlines[c].opened(groups, keys)
                outlines[c].weights[blocks[blocks % 2 == 1]] = weights
            else:
                outlines[c], uncounted[c] = outlines[c].opened(groups, pivots(parts, budget.known))
        if uncounted:
            known: dict[int, Keys] = {c: outlines[c].keys for c in uncounted}
            of_blocks = zip(columns.block_weights(known), uncounted.values(), strict=True)
            own_weights = [weights[blocks] for weights, blocks in of_blocks]
            total = peers.sum(np.concatenate(own_weights), what)
            sums = divided(total, [weights.size for weights in own_weights])
            for (c, blocks), weights in zip(uncounted.items(), sums, strict=True):
                outlines[c].weights[blocks] = weights
        undecided = {c: outlines[c].undecided(max_bins) for c in to_open}
        to_open = {c: groups for c, groups in undecided.items() if groups.size}
    return outlines, has_missing
