"""The edge of a weak hypothesis, estimated on fresh rows (algorithm 2, and section 2.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.backends.label_weights import WEIGHT_BITS
from gpuboost.boosters.filtering.draw import Rows, sum_of_columns
from gpuboost.boosters.filtering.edges import EmpiricalBernstein, MeanEstimate, NonmonotonicSampling, TargetError
from gpuboost.boosters.filtering.examples import Oracle, StreamEnd
from gpuboost.boosters.filtering.leaf_values import pseudo_edge
from gpuboost.boosters.filtering.tallies import Sums
from gpuboost.boosters.filtering.weak_learners import all_labels
from gpuboost.learners.base import VotingTree

MOST_FILTERED = 20_000_000
"""An edge that so many filtered rows do not tell from 0 is too small."""

MOST_AT_ONCE = 8192
"""So many filtered rows are in memory, with those that were rejected between them, while an edge is estimated."""


@dataclass
class Estimate:
    """An edge, and the rows that it was estimated on.

    Attributes
    ----------
    edge : float
        In -1/2 .. 1/2. If it is negative, the hypothesis is worse than its reverse, and gets a negative coefficient.
    deviation : float
        Its standard error.
    rows : Rows, optional
        Where all rows that were drawn count, with their weights.
    seen : Sums
        Over the rows that were drawn.
    """

    edge: float
    deviation: float
    rows: Rows | None = None
    seen: Sums = field(default_factory=Sums)


def by_weighting(examples: Oracle, weak: VotingTree, n: int) -> Estimate:
    """Estimate an edge by the weights of the next ``n`` rows."""
    draw = examples.all(n)
    rows, tree = draw.chosen, weak.tree
    leaf_index = rows.leaf_index(examples.backend, tree)
    sums = rows.leaf_sums(leaf_index, tree.n_leaves)
    if not sums.positive.any():
        raise StreamEnd(f"none of the {n} rows that an edge is estimated by has a weight: nothing is left to learn")
    edge = pseudo_edge(tree.values, sums)
    gains = row_edges(rows, tree.values[leaf_index])
    weight = np.ldexp(sum_of_columns(rows.q).astype(np.float64), -WEIGHT_BITS) * rows.weights[0] * rows.weights[1]
    total = float(np.add.accumulate(weight)[-1])
    spread = float(np.add.accumulate((weight * (gains - edge)) ** 2)[-1])
    # Half a row of the other opinion: an edge of 1/2 would give a coefficient without bound.
    most = 0.5 - 0.5 / len(rows.target)
    return Estimate(min(max(edge, -most), most), math.sqrt(spread) / total if total else 0.0, rows, Sums().add(draw.parts))


def by_filtering(examples: Oracle, weak: VotingTree, mean: MeanEstimate, tau: float, target: TargetError | None) -> Estimate:
    """Estimate an edge from rows that pass the filter, as many as its relative error takes (algorithm 2)."""
    seen = Sums()
    count, total, squares = 0, 0.0, 0.0
    needed = None
    while needed is None:
        if count >= MOST_FILTERED:
            raise StreamEnd(f"edge too small: {count} filtered rows do not tell it from 0")
        rows = (draw := examples.accepted(min(max(64, count // 2), MOST_AT_ONCE), all_labels, target)).chosen.normalised()
        seen.add(draw.parts)
        gains = row_edges(rows, weak.tree.values[rows.leaf_index(examples.backend, weak.tree)])
        needed = mean.add(gains)
        used = gains[:needed]
        count += len(used)
        total += float(np.add.accumulate(used)[-1])
        squares += float(np.add.accumulate(used * used)[-1])
    variance = max(squares / count - (total / count) ** 2, 0.0)
    most = 0.5 - 0.5 / count
    return Estimate(min(max(mean.mean / (1 + tau), -most), most), math.sqrt(variance / count), None, seen)


def row_edges(rows: Rows, votes: Floats) -> Floats:
    """Return ``1/4 (h(x, y) - sum_y' q h(x, y'))`` of each row, with label weights that sum to 1."""
    own = votes[np.arange(len(rows.target)), rows.target]
    q = rows.q / np.maximum(sum_of_columns(rows.q), 1)[:, None]
    others: Floats = sum_of_columns(q * votes)
    return 0.25 * (own - others)


ESTIMATORS = {"egbstop": EmpiricalBernstein, "nas": NonmonotonicSampling}
