"""Trees of which many nodes are divided at once are the best-first trees."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost.backends.frontier import BASELINE, CLOSED, FEATURE, GAIN, KEY, LEFT, SLOT
from gpuboost.backends.sharded_growth import nodes_at_once, room
from gpuboost.backends.speculation import SpeculativeTree

COLUMNS = [FEATURE, LEFT, BASELINE, KEY, GAIN]


@dataclass
class World:
    """What every node is worth, and how its weight falls to its sides; a node is named by the turns that lead to it."""

    seed: int
    n_keys: int
    found: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def best(self, path: str, total: int) -> tuple[int, int, int]:
        """The key, the feature (-1 of a constant classifier) and the sum on the left."""
        draw = random.Random(f"{self.seed} {path}")
        return draw.randrange(self.n_keys) - 1, draw.choice([-1, 0, 1, 2, 3]), draw.randint(-abs(total), abs(total))


def best_first(world: World, root: int, max_leaves: int) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, int]]:
    """The oracle: one node after another. Return nodes, totals, and the number of each path."""
    nodes, totals = np.zeros((2 * max_leaves - 1, SLOT + 1), np.int64), np.zeros(2 * max_leaves - 1, np.int64)
    nodes[:, FEATURE], nodes[:, KEY] = -1, CLOSED
    number, left_of = {"": 0}, {}

    def look(path: str) -> None:
        m = number[path]
        nodes[m, KEY], nodes[m, FEATURE], left_of[path] = world.best(path, int(totals[m]))

    totals[0] = root
    look("")
    for step in range(max_leaves - 1):
        best = max(number, key=lambda path: (nodes[number[path], KEY], -number[path]))
        m = number[best]
        if nodes[m, KEY] <= 0:
            break
        nodes[m, GAIN], nodes[m, KEY] = nodes[m, KEY], CLOSED
        if nodes[m, FEATURE] >= 0:
            nodes[m, LEFT] = 2 * step + 1
            vote = 1 if totals[m] > 2 * left_of[best] else -1
            for side, sign in enumerate((-1, 1)):
                child = 2 * step + 1 + side
                number[best + "LR"[side]] = child
                totals[child] = left_of[best] if side == 0 else totals[m] - left_of[best]
                nodes[child, BASELINE] = sign * vote * totals[child]
            if step < max_leaves - 2:
                look(best + "L")
                look(best + "R")
    return nodes, totals, number


class Growing:
    """A growing tree of a world, and the paths of its nodes."""

    def __init__(self, world: World, root: int, max_leaves: int) -> None:
        self.world, self.paths = world, [""]
        self.tree = SpeculativeTree(np.array([root]), max_leaves, n_voting=1)
        self._look(0)

    def _look(self, m: int) -> None:
        total = int(self.tree.totals[m][0])
        self.tree.nodes[m][KEY], self.tree.nodes[m][FEATURE], left = self.world.best(self.paths[m], total)
        self.tree.edges[m][0] = total - 2 * left

    def divide(self, at_most: int | None) -> int:
        """Divide some nodes, and return how many."""
        n_settled, families = self.tree.n_settled, self.tree.divide(at_most)
        assert self.tree.n_settled > n_settled or n_settled in (0, self.tree.max_leaves - 1)
        for family in families:
            self.paths += [self.paths[family.parent] + "L", self.paths[family.parent] + "R"]
        for family in families:
            if family.may_go_on:
                self._look(family.left)
                self._look(family.left + 1)
        return len(families)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_keys=st.sampled_from([2, 3, 9, 1000]),
    max_leaves=st.integers(2, 24),
    at_once=st.sampled_from([None, 1, 2, 5]),
)
def test_it_is_the_best_first_tree(seed: int, n_keys: int, max_leaves: int, at_once: int | None) -> None:
    world, root = World(seed, n_keys), 1 << 20
    expected, expected_totals, number = best_first(world, root, max_leaves)
    growing, n_passes = Growing(world, root, max_leaves), 1
    while growing.divide(at_once):
        n_passes += 1
    tree, paths = growing.tree, growing.paths
    nodes, totals, edges = (np.zeros((2 * max_leaves - 1, n), np.int64) for n in (SLOT + 1, 1, 1))
    nodes[:, FEATURE], nodes[:, KEY] = -1, CLOSED
    belongs = tree.finish(nodes, totals, edges)
    assert nodes[:, COLUMNS].tolist() == expected[:, COLUMNS].tolist()
    assert totals[:, 0].tolist() == expected_totals.tolist()
    for path, node in zip(paths, belongs.tolist(), strict=True):
        while path not in number:
            path = path[:-1]
        assert node == number[path]
    inner = expected[:, LEFT] > 0
    assert (totals[inner, 0] - edges[inner, 0]).tolist() == (2 * totals[expected[inner, LEFT], 0]).tolist()
    if at_once is None:
        assert n_passes <= 1 + max(map(len, number))
    elif at_once == 1:
        assert sorted(paths) == sorted(number)  # nothing is divided in vain


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 10**6), n_keys=st.sampled_from([2, 3, 1000]), max_leaves=st.integers(2, 40), n_trees=st.integers(1, 4)
)
def test_there_is_room_for_what_is_divided_in_vain(seed: int, n_keys: int, max_leaves: int, n_trees: int) -> None:
    """Of trees that take the same steps."""
    growing = [Growing(World(seed + t, n_keys), 1 << 20, max_leaves) for t in range(n_trees)]
    n_steps, n_settled = 0, -1
    while n_divided := max([one.divide(nodes_at_once(max_leaves, n_steps, n_settled)) for one in growing]):
        n_steps += n_divided
        n_settled = min(one.tree.n_settled for one in growing)
    assert n_steps <= room(max_leaves) - 1


@pytest.mark.parametrize("max_leaves", [2, 3, 20])
def test_a_root_that_nothing_is_gained_from(max_leaves: int) -> None:
    tree = SpeculativeTree(np.array([5]), max_leaves, n_voting=0)
    assert tree.divide() == []
    tree.nodes[0][KEY] = 7  # of its constant classifier
    assert tree.divide() == []
    nodes, totals, edges = (np.zeros((2 * max_leaves - 1, n), np.int64) for n in (SLOT + 1, 1, 1))
    assert tree.finish(nodes, totals, edges).tolist() == [0]
    assert nodes[0, [GAIN, KEY, LEFT]].tolist() == [7, CLOSED, 0]


def test_all_nodes_that_may_be_popped_are_divided_together() -> None:
    """With four leaves three are popped: the root, then both children may be, of which neither's children may go on."""
    tree = SpeculativeTree(np.array([8]), 4, n_voting=0)
    tree.nodes[0][[KEY, FEATURE]] = 9, 0
    (family,) = tree.divide()
    assert (family.parent, family.left, family.may_go_on) == (0, 1, True)
    tree.nodes[1][[KEY, FEATURE]] = 3, 1
    tree.nodes[2][[KEY, FEATURE]] = 5, 1
    assert [(one.parent, one.left, one.may_go_on) for one in tree.divide()] == [(2, 3, True), (1, 5, False)]
    tree.nodes[3][[KEY, FEATURE]] = 4, 2  # comes between
    assert [(one.parent, one.may_go_on) for one in tree.divide()] == [(3, False)]
    assert tree.divide() == []
    assert tree.popped() == [0, 2, 3]
