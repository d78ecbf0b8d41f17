"""Rounds by hand, and by an implementation of figure 1 that shares nothing but the random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.filtering.uniforms import uniforms
from tests.boosters.filtering.given import UNIT, booster, examples, give, run
from tests.candidates import thinned
from tests.problems import digest

X = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]]
Y = [0, 0, 1, 0, 1, 1, 0, 1]


@pytest.mark.parametrize("n_rows", [1, 3, 8])
def test_two_rounds(n_rows: int, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    # Round 1, F = 0 and q = 1/2: rows 1, 2, 5 and 6 of pass 0 pass, whose numbers are below 1/2. y = -, -, +, + there, so that
    #   h(x) = sign(x > 2). The edge, on the next four rows 7, 8, and 1, 2 of pass 1: row 7 is wrong: 1/2 - 1/4;
    #   alpha = 1/2 ln 3.
    # Round 2: F = alpha right of 2, -alpha elsewhere, so q = s = 1 / (1 + sqrt 3) = 0.366, but 1 - s = 0.634 in rows 4 and 7.
    #   rows of pass 1    3      4      5      6      7      8       of pass 2   1
    #   q                 .366   .634   .366   .366   .634   .366                .366
    #   numbers           .37    .63    .36    .9     .64    .365                .1
    #   Rows 4, 5, 8 and 1 pass: y = -, +, +, -, so that h(x) = sign(x > 4).
    #   The edge, on the next six rows 2, .., 7 of pass 2: q = s, s, 1 - s, s, s, 1 - s. Row 3 is wrong (+, but left of the cut)
    #   and row 7: gamma = 1/2 - (s + 1 - s) / (4 s + 2 (1 - s)).
    numbers = [
        [0.1, 0.49, 0.5, 0.51, 0.0, 0.3, 0.9, 0.9],
        [0.9, 0.9, 0.37, 0.63, 0.36, 0.9, 0.64, 0.365],
        [0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9],
    ]
    give(monkeypatch, numbers)
    alpha = 0.5 * math.log((0.5 + 0.25) / (0.5 - 0.25))
    s = 1 / (1 + math.exp(alpha))
    gamma = 0.5 - (s + (1 - s)) / (4 * s + 2 * (1 - s))
    beta = 0.5 * math.log((0.5 + gamma) / (0.5 - gamma))
    source = examples(X, Y, backend, n_rows=n_rows)
    result = run(booster(source, 4, lambda t: 4 if t == 1 else 6), 2)
    one, two = result.trees
    cuts = source.mapper.cut_values
    assert [cuts[tree.cut[0] - 1] for tree in (one, two)] == [pytest.approx(c, abs=0.6) for c in (2.5, 4.5)]
    for tree, value in ((one, alpha), (two, beta)):  # s_1 - s_0 = F, from -value left of the cut to value
        assert tree.values == pytest.approx(np.array([[value, -value], [-value, value]]) / 2, rel=1e-8)
    history = result.history
    assert history["edge"] == pytest.approx([0.25, gamma], rel=1e-8)
    assert history["draws"] == [10.0, 13.0]
    assert list(zip(history["pass"], history["row"], strict=True)) == [(1, 2), (2, 7)]
    # On the rows that were drawn: F = 0 is wrong where y = + as ties are class 0: rows 3, 5, 6, 8; then 4 and 7, twice.
    assert history["train_error"] == pytest.approx([4 / 10, 4 / 13])
    p = (9 * s + 4 * (1 - s)) / 13
    assert history["acceptance"] == pytest.approx([0.5, p], rel=1e-8)
    assert history["bound"] == pytest.approx([1.0, 2 * p], rel=1e-8)
    bits = -(9 * math.log2(1 - s) + 4 * math.log2(s)) / 13
    assert history["train_loss"] == pytest.approx([1.0, bits], rel=1e-5)


def by_figure_1(X: Any, y: Any, n_rounds: int, n_train: int, n_estimate: int, seed: int) -> list[tuple[Any, ...]]:
    """Algorithms 1 and 3 and section 2.5 for y in {-1, +1} and integers in X, with stumps by brute force."""
    n, F, place, found = len(y), np.zeros(len(y)), 0, []

    def drawn() -> tuple[int, float, float]:
        nonlocal place
        r, one_pass = place % n, place // n
        place += 1
        return r, 1 / (1 + math.exp(y[r] * F[r])), uniforms(seed, one_pass, r, 1)[0] / UNIT

    for _ in range(n_rounds):
        rows: list[int] = []
        while len(rows) < n_train:
            r, q, u = drawn()
            if q > u:
                rows.append(r)
        best = (abs(int(y[rows].sum())), -1, 0, int(np.sign(y[rows].sum())) or -1)
        for j in range(X.shape[1]):
            for cut in range(int(X[:, j].max())):
                edge = int((y[rows] * np.where(X[rows, j] > cut, 1, -1)).sum())
                if abs(edge) > best[0]:
                    best = (abs(edge), j, cut, 1 if edge > 0 else -1)
        _, j, cut, sign = best
        h = np.full(n, sign) if j < 0 else sign * np.where(X[:, j] > cut, 1, -1)
        pairs = [drawn()[:2] for _ in range(n_estimate)]
        total = sum(q for _, q in pairs)
        gamma = sum(q * h[r] * y[r] for r, q in pairs) / total / 2
        alpha = 0.5 * math.log((0.5 + gamma) / (0.5 - gamma))
        F = F + alpha * h
        found.append((j, cut if j >= 0 else 0, alpha, gamma, place))
    return found


@pytest.mark.parametrize("seed", thinned([0, 1], 2))
def test_two_classes_are_figure_1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 7, (300, 4))
    y = np.where(A @ [3, 2, -2, 1] + rng.normal(0, 3, 300) > 13, 1, -1)
    A[:7] = np.arange(7)[:, None]  # every number, so that there is a cut between all
    source = examples(A, (y + 1) // 2, NumpyBackend(), seed=seed)
    result = run(booster(source, 90, 80), 40)
    expected = by_figure_1(A, y, 40, 90, 80, seed)
    assert result.history["edge"] == pytest.approx([one[3] for one in expected], rel=1e-6)
    for tree, (j, cut, alpha, _, _) in zip(result.trees, expected, strict=True):
        assert tree.feature.tolist() == ([j] if j >= 0 else [])
        if j >= 0:
            assert tree.cut.tolist() == [cut + 1]
        assert abs(tree.values[-1, 1] - tree.values[-1, 0]) == pytest.approx(abs(alpha), rel=1e-6)
    assert np.add.accumulate(result.history["draws"]).tolist() == [one[4] for one in expected]


def test_rounds_are_the_same_on_all_backends(candidate: Backend, once: Any) -> None:
    rng = np.random.default_rng(5)
    A = rng.normal(size=(400, 3))
    A[rng.random(A.shape) < 0.05] = np.nan
    y = (np.nan_to_num(A[:, 0]) + np.nan_to_num(A[:, 1]) ** 2 > 0.7) * 1 + (np.nan_to_num(A[:, 2]) > 0.5)

    def fit(backend: Backend) -> tuple[str, dict[str, Any]]:
        source = examples(A, y, backend, n_rows=150, kept_bytes=10**6)
        result = run(booster(source, 120, 100, leaves=4, leaf_values="newton", learning_rate=0.3), 12)
        return digest(result.trees, 3), {key: values for key, values in result.history.items() if key != "seconds"}

    assert fit(candidate) == once(lambda: fit(NumpyBackend()))
