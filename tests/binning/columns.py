"""Columns of every kind for cuts over workers, and ways to divide their rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rng = np.random.Generator
SIZES = (1, 2, 3, 5, 8)


def with_heavy(column: np.ndarray, rng: Rng) -> np.ndarray:
    """Up to 12 values take up to 90 % of the rows."""
    heavy = rng.choice(column, rng.integers(1, 13))
    return np.where(rng.random(column.size) < rng.uniform(0.1, 0.9), rng.choice(heavy, column.size), column)


def with_missing(column: np.ndarray, rng: Rng) -> np.ndarray:
    return np.where(rng.random(column.size) < rng.uniform(0, 0.5), np.nan, column)


def with_extremes(column: np.ndarray, rng: Rng) -> np.ndarray:
    extremes = [np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.7976931348623157e308, -1.7976931348623157e308]
    return np.where(rng.random(column.size) < 0.2, rng.choice(extremes, column.size), column)


KINDS: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "float16": lambda rng, n: rng.normal(size=n).astype(np.float16),
    "600 decades": lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-300, 300, n),
    "denormal": lambda rng, n: rng.integers(-2000, 2000, n) * 5e-324,
    "counts": lambda rng, n: rng.zipf(1.3, n).clip(max=2**60),
    "60 bits": lambda rng, n: rng.integers(-(2**60), 2**60, n),
    "neighbours of 60 bits": lambda rng, n: 2**60 + rng.integers(0, 4000, n),
    "64 bits": lambda rng, n: rng.integers(0, 2**64 - 1, n, np.uint64, endpoint=True),
    "bytes": lambda rng, n: rng.integers(0, 256, n).astype(np.uint8),
    "16 bits": lambda rng, n: rng.normal(0, 3000, n).astype(np.int16),
    "few": lambda rng, n: rng.integers(0, rng.integers(1, 30), n) / 7,
    "bool": lambda rng, n: rng.random(n) < 0.3,
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.exponential(size=n)),
    "heavy": lambda rng, n: with_heavy(rng.normal(size=n), rng),
    "heavy counts": lambda rng, n: with_heavy(rng.poisson(300, n), rng),
    "missing": lambda rng, n: with_missing(rng.normal(size=n), rng),
    "extremes": lambda rng, n: with_extremes(rng.normal(size=n), rng),
    "missing extremes": lambda rng, n: with_missing(with_extremes(with_heavy(rng.normal(size=n), rng), rng), rng),
    "all missing": lambda rng, n: np.full(n, np.nan),
    "rows in order": lambda rng, n: np.arange(n) // 2,
}

WEIGHTS: dict[str, Callable[[Rng, int], np.ndarray | None]] = {
    "none": lambda rng, n: None,
    "equal": lambda rng, n: np.full(n, 7),
    "small": lambda rng, n: rng.integers(0, 4, n),
    "45 bits": lambda rng, n: rng.integers(0, 2**45, n),
    "skewed": lambda rng, n: (2.0 ** rng.uniform(0, 45, n)).astype(np.int64),
    "total of 63 bits": lambda rng, n: np.full(n, (2**63 - 1) // max(n, 1)) - rng.integers(0, 3, n),
}


def divisions(rng: Rng, n: int, size: int) -> dict[str, np.ndarray]:
    """The worker of every row, in several ways."""
    even = np.arange(n) * size // max(n, 1)
    shuffled = rng.integers(0, size, n)
    return {
        "even": even,
        "shuffled": shuffled,
        "90 % on one": np.where(rng.random(n) < 0.9, rng.integers(size), shuffled),
        "some without rows": rng.choice(rng.choice(size, -(-size // 2), replace=False), n),
        "all on the last": np.full(n, size - 1),
    }
