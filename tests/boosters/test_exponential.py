"""Exponential weights that are capped at their initial values."""

from __future__ import annotations

import numpy as np
import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.exponential import ExponentialWeights
from tests.problems import blobs


def test_capped_statistics(candidate: Backend) -> None:
    rng = np.random.default_rng(0)
    data, initial = blobs(40, 2, 3, seed=0), rng.uniform(0.1, 1.0, (40, 3))
    reference, other = (ExponentialWeights(data.on(backend), initial, capped=True) for backend in (NumpyBackend(), candidate))
    f = np.zeros((40, 3))
    for _ in range(5):
        leaf_index, values = rng.integers(0, 4, 40).astype(np.int32), rng.normal(scale=2.0, size=(4, 3))
        f += values[leaf_index]
        for weights in (reference, other):
            weights.multiply(weights.backend.put(leaf_index), values)
        expected, found = reference.statistics(), other.statistics()
        exact = np.minimum(np.exp(-f * data.signs), 1.0) * initial
        units = np.abs(expected.quantised[0])
        assert np.allclose(units / units.max(), exact / exact.max(), rtol=0, atol=2 / units.max())
        assert candidate.get(found.quantised)[0, :, :3].tolist() == expected.quantised[0].tolist()
        assert (found.shift, other.loss(found)) == (expected.shift, reference.loss(expected))
        loss = (initial * np.exp(-f * data.signs)).sum() / initial.sum()
        assert other.loss() == pytest.approx(loss, rel=1e-7)


@pytest.mark.parametrize("right", [True, False])
def test_a_cap_far_from_the_weights(backend: Backend, right: bool) -> None:
    """After 40 rounds all weights are 2**-3693 of what they were, far below the cap, or 2**3693 of it, far above."""
    data, initial = blobs(2, 1, 2, seed=0), np.array([[1.0, 0.5], [0.25, 1.0]])
    capped, plain, first = (ExponentialWeights(data.on(backend), initial, capped=c) for c in (True, False, False))
    for _ in range(40):
        for weights in (capped, plain):
            weights.multiply(backend.put(np.arange(2, dtype=np.int32)), 64.0 * data.signs * (1 if right else -1))
    expected = (plain if right else first).statistics()
    assert backend.get(capped.statistics().quantised).tolist() == backend.get(expected.quantised).tolist()
    assert capped.loss() == plain.loss() == (0.0 if right else float("inf"))
