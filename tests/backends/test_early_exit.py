"""`predict_until` on every backend: the scores of the prefix, and the checkpoints, of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import rows as cuda_rows
from gpuboost.backends.cuda.launch import launch
from gpuboost.backends.early_exit import ExitRule
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.early_exit import calibrated_rule, exact_rule
from gpuboost.ensemble import Ensemble
from gpuboost.tree import Tree
from tests.candidates import Once
from tests.problems import coded

REFERENCE = NumpyBackend()


def random_tree(rng: np.random.Generator, n_inner: int, n_features: int, n_classes: int) -> Tree:
    """A tree whose nodes hang on random leaves; one without nodes is a leaf."""
    left, right = np.zeros(n_inner, np.int32), np.zeros(n_inner, np.int32)
    leaves: list[tuple[Any, int]] = [(None, 0)]
    for node in range(n_inner):
        side, at = leaves.pop(int(rng.integers(len(leaves))))
        if side is not None:
            side[at] = node
        leaves += [(left, node), (right, node)]
    for leaf, (side, at) in enumerate(leaves):
        if side is not None:
            side[at] = ~leaf
    feature, cut = rng.integers(0, n_features, n_inner), rng.integers(0, 9, n_inner)
    values = np.round(rng.normal(size=(n_inner + 1, n_classes)), 1)  # ties
    missing = rng.random(n_inner) < 0.5
    return Tree(feature.astype(np.int32), cut.astype(np.uint8), missing, left, right, values, np.zeros(n_inner))


def problem(n_rows: int, n_features: int, n_classes: int, per_round: int) -> tuple[Any, Ensemble]:
    rng = np.random.default_rng(n_rows + n_classes)
    matrix = coded(rng.integers(0, 9, (n_features, n_rows)), [9] * n_features)
    trees = [[random_tree(rng, int(rng.integers(0, 7)), n_features, n_classes) for _ in range(per_round)] for _ in range(23)]
    return matrix, Ensemble.from_rounds(trees, n_classes)


def rules(ensemble: Ensemble) -> dict[str, ExitRule]:
    """Of which rows leave early, late, all at once, and never."""
    last = ensemble.round_offset[[5, 23]]
    by_leader = np.arange(ensemble.n_classes, dtype=float)[None, :, None]
    return {
        "calibrated": calibrated_rule(ensemble, 4, 1.5),
        "ties stay": calibrated_rule(ensemble, 1, 0.0),
        "exact": exact_rule(ensemble, 3),
        "by leader": ExitRule(last, by_leader),
        "at once": calibrated_rule(ensemble, 2, -np.inf),
        "never": calibrated_rule(ensemble, 6, np.inf),
        "one checkpoint": calibrated_rule(ensemble, 50, 0.0),
    }


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_classes", "per_round"), [(517, 5, 3, 1), (70, 40, 2, 2), (33, 3, 12, 1), (1, 1, 5, 3)]
)
def test_rows_leave_as_on_the_reference(
    candidate: Backend,
    once: Once,
    n_rows: int,
    n_features: int,
    n_classes: int,
    per_round: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix, ensemble = problem(n_rows, n_features, n_classes, per_round)
    data = candidate.load(matrix)
    for slab, how in ((cuda_rows.SLAB_BYTES, launch), (400, in_one_block)):  # trees that come in one piece, and in many
        monkeypatch.setattr(cuda_rows, "SLAB_BYTES", slab)
        monkeypatch.setattr(cuda_rows, "launch", how)
        for name, rule in rules(ensemble).items():
            expected_scores, expected = once(on_reference, matrix, ensemble, rule)
            scores = candidate.put(np.zeros((n_rows, n_classes)))
            left_at = candidate.get(candidate.predict_until(ensemble, data, scores, rule))
            assert left_at.dtype == np.int32
            assert left_at.tolist() == expected.tolist(), name
            assert candidate.get(scores).tobytes() == expected_scores.tobytes(), name


def in_one_block(gpu: Any, name: str, grid: tuple[int, ...], arguments: Any, **how: int) -> None:
    """Launch a kernel whose grid is free with one block, which has all the tiles."""
    launch(gpu, name, (1,), arguments, **how)


def on_reference(matrix: Any, ensemble: Ensemble, rule: ExitRule) -> Any:
    scores = np.zeros((matrix.n_rows, ensemble.n_classes))
    return scores, REFERENCE.predict_until(ensemble, REFERENCE.load(matrix), scores, rule)


def test_the_reference_stops_at_the_first_checkpoint_that_is_enough() -> None:
    """Against the scores of all prefixes, row by row."""
    matrix, ensemble = problem(60, 4, 3, 2)
    for name, rule in rules(ensemble).items():
        scores, left_at = on_reference(matrix, ensemble, rule)
        for i in range(60):
            for checkpoint, stop in enumerate(rule.trees.tolist()):
                prefix = np.zeros((60, 3))
                REFERENCE.predict(ensemble, matrix, prefix, 0, stop)
                if rule.leaves(prefix[i : i + 1], checkpoint)[0]:
                    break
            assert (left_at[i], scores[i].tolist()) == (checkpoint, prefix[i].tolist()), name
    assert len(set(on_reference(matrix, ensemble, rules(ensemble)["calibrated"])[1].tolist())) > 3
