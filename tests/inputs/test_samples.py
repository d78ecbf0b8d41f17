"""Cuts of samples whose rows lie on several workers, in host memory or on devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpuboost.binning import BinMapper
from gpuboost.inputs import samples
from gpuboost.inputs.samples import Sample
from gpuboost.inputs.weights import row_weights
from gpuboost.peers.base import Peers
from gpuboost.peers.rows import RowOrder
from gpuboost.peers.threads import run_workers
from gpuboost.streams.checks import weight_array
from tests.cuda_on_cpu import caller


@pytest.mark.parametrize("place", [lambda X: X, caller.on_device], ids=["host", "device"])
def test_cuts_over_workers(monkeypatch: pytest.MonkeyPatch, place: Callable[[np.ndarray], Any]) -> None:
    """Workers with different numbers of rows and threads read the columns of a device in the same blocks."""
    monkeypatch.setattr(samples, "BLOCK_BYTES", 5000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 9))
    kept = rng.random(400) < 0.8
    expected = BinMapper.fit(X[kept], max_bins=30)
    bounds = [0, 290, 300, 400]

    def fit(peers: Peers) -> BinMapper:
        own = slice(bounds[peers.rank], bounds[peers.rank + 1])
        rows = np.flatnonzero(kept[own])
        order = RowOrder.of(np.array([peers.rank]), np.array([rows.size]), peers)
        sample = Sample(place(X[own]), rows, np.zeros(rows.size, np.int64), np.ones(rows.size), order)
        return sample.fit_bins(30, 1 + peers.rank)

    with caller.modules():
        for mapper in run_workers(3, fit):
            assert mapper.cut_values.tobytes() == expected.cut_values.tobytes()
            assert mapper.cut_offsets.tolist() == expected.cut_offsets.tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_weights_may_be_a_frame_of_one_column(kind: str) -> None:
    library = pytest.importorskip(kind)
    frame = library.table if kind == "pyarrow" else library.DataFrame
    assert row_weights(frame({"w": [1.0, 2.0]}), 2).tolist() == row_weights([1.0, 2.0], 2).tolist()
    assert weight_array(frame({"w": [1.0, 2.0]}), 2).tolist() == [1.0, 2.0]
    for check in (row_weights, weight_array):
        with pytest.raises(ValueError, match="weight must be one number for each row, got a data frame of 2 columns"):
            check(frame({"w": [1.0, 2.0], "v": [1.0, 2.0]}), 2)
