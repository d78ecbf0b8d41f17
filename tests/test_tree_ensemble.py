from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from gpuboost.backends.base import Backend
from gpuboost.ensemble import Ensemble
from gpuboost.tree import Tree, constant_tree
from tests.problems import coded


def example_tree() -> Tree:
    """Cut feature 1 at 2 (missing left); on its right feature 0 at 1 (missing right)."""
    return Tree(
        feature=np.array([1, 0], np.int32),
        cut=np.array([2, 1], np.uint8),
        missing_left=np.array([True, False]),
        left=np.array([~0, ~1], np.int32),
        right=np.array([1, ~2], np.int32),
        values=np.array([[1.0, -1.0], [0.25, 0.5], [-4.0, 8.0]]),
        gain=np.array([0.5, 0.25]),
    )


# Rows: (feature 0, feature 1) and the leaf that the tree above sends them to.
ROWS = [((1, 0), 0), ((0, 1), 0), ((2, 2), 0), ((1, 3), 1), ((2, 3), 2), ((0, 3), 2), ((255, 255), 2)]
CODES = np.array([codes for codes, _ in ROWS]).T
LEAVES = [leaf for _, leaf in ROWS]


def test_leaves_and_start() -> None:
    assert example_tree().n_leaves == 3
    assert example_tree().first == 0
    constant = constant_tree(np.array([1.0, 2.0]))
    assert constant.n_leaves == 1
    assert constant.first == ~0
    assert constant.values.tolist() == [[1.0, 2.0]]


def test_rows_are_routed_to_their_leaves(backend: Backend) -> None:
    data = backend.load(coded(CODES))
    assert backend.get(backend.apply(example_tree(), data)).tolist() == LEAVES
    assert backend.get(backend.apply(constant_tree(np.zeros(2)), data)).tolist() == [0] * len(ROWS)


def test_prediction_adds_tree_after_tree(backend: Backend) -> None:
    # 0.1 + 0.2 + 0.3 is 0.6000000000000001 in this order and 0.6 in the reverse one.
    trees = [constant_tree(np.array([v, 0.0])) for v in (0.1, 0.2, 0.3)]
    data = backend.load(coded(CODES))
    for order, total in ((trees, 0.1 + 0.2 + 0.3), (trees[::-1], 0.3 + 0.2 + 0.1)):
        scores = backend.put(np.zeros((len(ROWS), 2)))
        backend.predict(Ensemble.from_trees(order, 2), data, scores, 0, 3)
        assert backend.get(scores)[:, 0].tolist() == [total] * len(ROWS)
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1


def test_prediction_of_a_range_of_trees(backend: Backend) -> None:
    trees = [constant_tree(np.array([1.0, 0.0])), example_tree(), constant_tree(np.array([0.0, 32.0]))]
    scores = backend.put(np.full((len(ROWS), 2), 100.0))
    ensemble = Ensemble.from_trees(trees, 2)
    data = backend.load(coded(CODES))
    backend.predict(ensemble, data, scores, 1, 3)
    expected = [[100.0 + a, 132.0 + b] for a, b in example_tree().values[LEAVES].tolist()]
    assert backend.get(scores).tolist() == expected
    backend.predict(ensemble, data, scores, 2, 2)  # an empty range adds nothing
    assert backend.get(scores).tolist() == expected


def test_ensemble_concatenates() -> None:
    ensemble = Ensemble.from_trees([example_tree(), constant_tree(np.array([5.0, 6.0])), example_tree()], 2)
    assert ensemble.n_trees == 3
    assert ensemble.n_classes == 2
    assert ensemble.node_offset.tolist() == [0, 2, 2, 4]
    assert ensemble.leaf_offset.tolist() == [0, 3, 4, 7]
    assert ensemble.feature.tolist() == [1, 0, 1, 0]
    assert ensemble.left.tolist() == [~0, ~1, ~0, ~1]
    assert ensemble.values[3].tolist() == [5.0, 6.0]


def test_trees_come_back_as_they_went_in() -> None:
    trees = [example_tree(), constant_tree(np.array([5.0, 6.0])), replace(example_tree(), gain=np.array([1.0, 2.0]))]
    back = Ensemble.from_trees(trees, 2).trees()
    for one, other in zip(trees, back, strict=True):
        for name in ("feature", "cut", "missing_left", "left", "right", "values", "gain"):
            a, b = getattr(one, name), getattr(other, name)
            assert a.dtype == b.dtype
            assert a.tolist() == b.tolist()
    assert Ensemble.from_trees(back, 2).digest() == Ensemble.from_trees(trees, 2).digest()


def test_empty_ensemble_scores_zero(backend: Backend) -> None:
    ensemble = Ensemble.from_trees([], 3)
    assert (ensemble.n_trees, ensemble.n_classes, ensemble.trees()) == (0, 3, [])
    scores = backend.put(np.zeros((len(ROWS), 3)))
    backend.predict(ensemble, backend.load(coded(CODES)), scores, 0, 0)
    assert not backend.get(scores).any()
    assert ensemble.feature_gains(2).tolist() == [0.0, 0.0]


def test_feature_gains_add_up() -> None:
    trees = [example_tree(), replace(example_tree(), gain=np.array([1.0, 2.0]))]
    assert Ensemble.from_trees(trees, 2).feature_gains(4).tolist() == [0.25 + 2.0, 0.5 + 1.0, 0.0, 0.0]


def test_digest_is_the_hash_of_all_arrays() -> None:
    # Of an ensemble without trees everything but the offsets is empty.
    sha = hashlib.sha256()
    for name, dtype, shape, data in [
        ("node_offset", "<i8", "(1,)", bytes(8)),
        ("leaf_offset", "<i8", "(1,)", bytes(8)),
        ("feature", "<i4", "(0,)", b""),
        ("cut", "|u1", "(0,)", b""),
        ("missing_left", "|b1", "(0,)", b""),
        ("left", "<i4", "(0,)", b""),
        ("right", "<i4", "(0,)", b""),
        ("gain", "<f8", "(0,)", b""),
        ("values", "<f8", "(0, 2)", b""),
        ("round_offset", "<i8", "(1,)", bytes(8)),
    ]:
        sha.update(f"{name} {dtype} {shape};".encode() + data)
    assert Ensemble.from_trees([], 2).digest() == sha.hexdigest()


CHANGES = {
    "feature": np.array([1, 1], np.int32),
    "cut": np.array([2, 2], np.uint8),
    "missing_left": np.array([True, True]),
    "left": np.array([~0, ~2], np.int32),
    "right": np.array([1, ~1], np.int32),
    "values": np.array([[1.0, -1.0], [0.25, np.nextafter(0.5, 1)], [-4.0, 8.0]]),
    "gain": np.array([0.5, np.nextafter(0.25, 1)]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_digest_sees_every_field(name: str) -> None:
    changed = replace(example_tree(), **{name: CHANGES[name]})
    assert Ensemble.from_trees([changed], 2).digest() != Ensemble.from_trees([example_tree()], 2).digest()


def test_rounds_of_several_trees() -> None:
    one, two, three = (constant_tree(np.array([float(v)])) for v in range(3))
    ensemble = Ensemble.from_rounds([[one, two], [], [three]], 1)
    assert (ensemble.n_rounds, ensemble.n_trees, ensemble.round_offset.tolist()) == (3, 3, [0, 2, 2, 3])
    assert [[tree.values.tolist() for tree in trees] for trees in ensemble.rounds()] == [[[[0.0]], [[1.0]]], [], [[[2.0]]]]
    assert Ensemble.from_rounds(ensemble.rounds(), 1).digest() == ensemble.digest()
    assert Ensemble.from_trees([one, two, three], 1).digest() != ensemble.digest()


def test_digest_sees_the_borders_between_trees() -> None:
    # The same three leaves without inner nodes, once as three trees and once as one (malformed) tree.
    three = Ensemble.from_trees([constant_tree(np.array([float(v)])) for v in range(3)], 1)
    one = replace(three, node_offset=np.array([0, 0]), leaf_offset=np.array([0, 3]))
    assert three.digest() != one.digest()


def test_digest_ignores_the_memory_layout() -> None:
    fortran = replace(example_tree(), values=np.asfortranarray(example_tree().values))
    assert Ensemble.from_trees([fortran], 2).digest() == Ensemble.from_trees([example_tree()], 2).digest()
