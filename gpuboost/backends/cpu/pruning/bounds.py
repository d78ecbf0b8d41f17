"""Compiled loops of exact pruning, the bounds: the same trees from fewer additions (QuickBoost, chapter 3 of Appel's thesis).

The mass of a row is the sum of abs(quantised) over the classes. A root's rows are divided into heavy rows, which hold nearly
all of its mass, light rows, and rows without mass, which are never counted. Partitions keep this order within every node.

What a feature can reach on all rows of a node is bounded by what it reaches on the heavy ones (the thesis' proposition 3.2 and
appendix 7.2): no cut of more rows loses less than the best cut of some of them. With m for the heavy rows, W - W_m for the mass
of the light ones, and for the best score of a feature, its empty side included,

    "edge":   score <= score_m + (W - W_m),
    "gini":   score <= score_m + purity_m - purity + (W - W_m), the purities being those of the whole node,
    "rebel":  score <= score_m - loss_m + loss, the losses being those of the constant classifier.

So the light rows are counted for those features only whose bound is not below the best score that has been found. The two ways
to the sums of the heavy rows are those of all features at once: for many rows `cpu.loops.histograms`, with the
larger sibling by subtraction; for few rows, block by block of features in the second-level cache, visiting only bins that hold
any of them.
"""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, Int, compiled
from gpuboost.backends.cpu.loops.arguments import Columns, Rule
from gpuboost.backends.cpu.loops.sweeps import Best, rounding, worth
from gpuboost.backends.criteria import EDGE, REBEL
from gpuboost.backends.frontier import BASELINE, CUT, FEATURE, KEY, MISSING_LEFT


@compiled
def beats(score: int, f: int, best: Best) -> Int:
    """Whether a cut of feature f with this score is better than ``best``: ties go to the lowest feature."""
    return score > best[0] or (score == best[0] and f < best[1])


@compiled
def to_bounds(scores: Array, columns: Columns, heavy: Array, total: Array, rule: Rule, masses: Array, light: int) -> None:
    """Turn the best scores on the heavy rows into bounds of the scores on all rows.

    ``masses`` (2, n_classes) are the sums of abs(quantised) over the heavy rows and over all rows, for the criterion "rebel".
    """
    of_heavy, of_all = worth(heavy, masses[0], rule), worth(total, masses[1], rule)
    more, slack = of_heavy - of_all + light, rounding(total, rule.n_classes)
    if rule.criterion == REBEL:
        more, slack = of_all - of_heavy, rounding(masses[1], rule.n_classes)
    for f in columns.usable:
        if rule.criterion == EDGE:
            scores[f] += light
        else:
            scores[f] = np.float64(max(np.int64(scores[f]).view(np.float64) + more + slack, 0.0)).view(np.int64)


@compiled
def choose(bounds: Array, columns: Columns, best: Best, most: int, chosen: Array) -> bool:
    """Choose features that may beat ``best``: the ``most`` with the highest bounds, or all. Their bounds become -1.

    Returns whether there are any.
    """
    width, one = columns.blocks.shape[2], np.uint64(1)
    chosen[:] = 0
    n = 0
    while n < most:
        top = np.int64(-1)
        for f in columns.usable:
            if bounds[f] < 0 or not beats(bounds[f], f, best):
                continue
            if most >= len(columns.usable):
                chosen[f // width] |= one << np.uint64(f % width)
                bounds[f] = -1
                n += 1
            elif top < 0 or bounds[f] > bounds[top]:
                top = f
        if top < 0:
            break
        chosen[top // width] |= one << np.uint64(top % width)
        bounds[top] = -1
        n += 1
    return n > 0


@compiled
def best_found(found: Array, best: Best, edges: Array) -> Best:
    """Return the better one of ``best`` and what the blocks have found; its edges are written to ``edges``."""
    for b in range(len(found)):
        if found[b, 0] >= 0 and beats(found[b, 0], found[b, 1], best):
            best = (found[b, 0], found[b, 1], found[b, 2], found[b, 3])
            for c in range(len(edges)):
                edges[c] = found[b, 4 + c]
    return best


@compiled
def queue(best: Best, node: Array) -> None:
    """Write the best classifier into the node's row of the node table."""
    node[FEATURE], node[CUT], node[MISSING_LEFT] = best[1], best[2], best[3]
    node[KEY] = best[0] - node[BASELINE]
