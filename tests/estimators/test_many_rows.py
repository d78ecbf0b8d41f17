"""Many rows, of which few are distinct, make the model file of the few with integer weights.

Above `gpuboost.fixedpoint.NARROW_ROWS` rows another rule says how a weight becomes an integer, and sums are wide. The number of
rows that it goes by is that of the rows with their weights: a row of weight 1000 is a thousand rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost import fixedpoint


@pytest.mark.parametrize(
    ("n_rows", "n_distinct", "narrow_rows", "device"),
    [
        (4_000, 200, 1_000, "numpy"),
        # about 25 CPU seconds and 3.5 GB of memory
        pytest.param(20_000_000, 20_000, fixedpoint.NARROW_ROWS, "cpu", marks=pytest.mark.exhaustive),
    ],
)
def test_many_rows_are_few_rows_with_integer_weights(
    n_rows: int, n_distinct: int, narrow_rows: int, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixedpoint, "NARROW_ROWS", narrow_rows)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, (n_distinct, 3), dtype=np.uint8)
    y = ((X[:, 0] > 90) ^ (X[:, 1] > X[:, 2]) ^ (rng.random(n_distinct) < 0.1)).astype(np.int8)
    repeats = 1 + rng.multinomial(n_rows - n_distinct, np.full(n_distinct, 1 / n_distinct))
    repeats[:2] += (1 - repeats[0], repeats[0] - 1)  # the unit of weights is the smallest one
    assert (repeats.min(), repeats.sum()) == (1, n_rows)
    assert repeats.max() <= fixedpoint.MAX_REPEAT
    assert fixedpoint.is_wide(n_rows)
    assert not fixedpoint.is_wide(n_distinct)

    def file(*data: Any) -> bytes:
        model = gpuboost.AdaBoostMHClassifier(n_estimators=3, max_leaf_nodes=5, device=device).fit(*data)
        model.save(tmp_path / "model")
        return (tmp_path / "model").read_bytes()

    weighted = file(X, y, repeats)
    assert file(X, y) != weighted
    assert file(np.repeat(X, repeats, axis=0), np.repeat(y, repeats)) == weighted
