"""Compile the loops of the CPU into $NUMBA_CACHE_DIR: the builder's last step.

numba compiles a loop for the types that it is called with, and some loops for the number of vectors in a row, which goes by the
number of classes. So this trains a little with every algorithm and a few numbers of classes. What a job needs beyond that, it
compiles for itself.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

import gpuboost

CLASSES = (2, 3, 8, 12, 16, 20)
"""One number of classes for every code: by pairs, by one to four vectors of four classes, and by more of them in a loop."""


def train(algorithm: str, n_classes: int, dtype: type) -> None:
    """Train and predict on a few rows with missing values, a validation set and weights."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % n_classes
    X = rng.normal(y[:, None], 2.0, (240, 5)).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = gpuboost.fit(X, y, algorithm=algorithm, n_estimators=2, eval_set=(X, y), sample_weight=y + 1.0, device="cpu")
    model.predict_proba(X)


def main() -> None:
    """Compile, and say how many files that made."""
    begun = time.perf_counter()
    for algorithm in gpuboost.ALGORITHMS:
        for n_classes in CLASSES:
            train(algorithm, n_classes, np.float64)
        train(algorithm, CLASSES[0], np.float32)
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    sizes = [path.stat().st_size for path in folder.rglob("*.nbc")]
    seconds, cpu = time.perf_counter() - begun, os.environ["NUMBA_CPU_NAME"]
    print(f"compile_loops.py: {len(sizes)} loops for {cpu}, {sum(sizes) / 2**20:.1f} MiB, {seconds:.0f} s")


if __name__ == "__main__":
    main()
