"""One measurement in a process of its own: ``python _measure.py JOB`` prints one line of JSON.

JOB is a JSON object with a ``kind``:

``probe``     import the library, report its version
``fit``       warm up on a small subset, then time one fit on the whole training set
``curve``     the test error of gpuboost after every round (not timed)
``add_rate``  how many int32 additions a second one core does inside its first-level cache
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

MODULE_OF = {"gpuboost": "gpuboost", "lightgbm": "lightgbm", "xgboost": "xgboost", "histgb": "sklearn"}
WARM_UP_ROWS = 1000
WARM_UP_ROUNDS = 3


@dataclass(frozen=True)
class Data:
    """Training and test part of one data set; labels count from 0."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def shape(self) -> list[int]:
        """Rows, features and classes of the training part."""
        return [*self.X_train.shape, int(self.y_train.max()) + 1]


@dataclass(frozen=True)
class Settings:
    """What every library is told."""

    rounds: int
    leaves: int
    threads: int
    variant: str


def load_data(name: str, data_dir: str | None) -> Data:
    """Read ``data_dir/name.npz``, or scikit-learn's digits, split in half, where no directory is given."""
    if data_dir is None:
        X, y = import_module("sklearn.datasets").load_digits(return_X_y=True)
        X, y, half = X.astype(np.uint8), y.astype(np.uint8), len(y) // 2
        return Data(X[:half], y[:half], X[half:], y[half:])
    with np.load(Path(data_dir) / f"{name}.npz") as z:
        scale = json.loads(str(z["meta"])).get("scale") if "meta" in z else None
        X_train, X_test = (z[key] * scale if scale else z[key] for key in ("X_train", "X_test"))
        return Data(X_train, z["y_train"], X_test, z["y_test"])


# The competitors. Each imports its library and returns a function of (X, y): a whole fit, with binning.

Fit = Callable[[np.ndarray, np.ndarray], Any]


def gpuboost_fit(s: Settings) -> Fit:
    """Set up AdaBoost.MH with Hamming trees: one multi-class tree a round."""
    import gpuboost

    return lambda X, y: gpuboost.fit(
        X, y, algorithm="adaboost-mh", device="cpu", n_estimators=s.rounds, max_leaf_nodes=s.leaves,
        variant=s.variant, learning_rate=1.0, n_jobs=s.threads, early_stopping=False,
    )  # fmt: skip


def lightgbm_fit(s: Settings) -> Fit:
    """Set up one tree per class a round, grown leaf by leaf."""
    import lightgbm

    return lightgbm.LGBMClassifier(
        num_leaves=s.leaves, learning_rate=0.1, n_estimators=s.rounds, n_jobs=s.threads, verbose=-1
    ).fit


def xgboost_fit(s: Settings) -> Fit:
    """Set up the same kind of trees; ``max_depth=0`` lifts the default limit of depth, which is 6."""
    import xgboost

    return xgboost.XGBClassifier(
        tree_method="hist", grow_policy="lossguide", max_leaves=s.leaves, max_depth=0, learning_rate=0.1,
        n_estimators=s.rounds, n_jobs=s.threads,
    ).fit  # fmt: skip


def histgb_fit(s: Settings) -> Fit:
    """Set up the same kind of trees once more; OMP_NUM_THREADS sets the threads here."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_leaf_nodes=s.leaves, learning_rate=0.1, max_iter=s.rounds, early_stopping=False)
    return lambda X, y: model.fit(X, y)


FITTERS: dict[str, Callable[[Settings], Fit]] = {
    "gpuboost": gpuboost_fit, "lightgbm": lightgbm_fit, "xgboost": xgboost_fit, "histgb": histgb_fit
}  # fmt: skip


# Memory


def resident_bytes() -> int:
    """Return the memory resident now, or the peak so far where the system has no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_bytes()


def peak_bytes() -> int:
    """Return the highest resident memory: ru_maxrss, which macOS counts in bytes and others in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak() -> bool:
    """Make the peak start again from the present; False where the system cannot (Linux can)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return True
    return False


def busy_seconds() -> float:
    """Return the CPU time that all processes of the machine have used; nan where there is no /proc."""
    try:
        user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    except OSError:
        return float("nan")
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


# Measurements


def warm_up_subset(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Choose some rows in which every class occurs, so that the same code runs as for the whole set."""
    shuffled = np.random.default_rng(0).permutation(len(data.y_train))[:WARM_UP_ROWS]
    rows = np.union1d(shuffled, np.unique(data.y_train, return_index=True)[1])
    return np.ascontiguousarray(data.X_train[rows]), data.y_train[rows]


def share_wrong(data: Data, predicted: np.ndarray) -> float:
    """Return the share of the test rows that are predicted wrongly."""
    return float(np.mean(np.asarray(predicted).ravel() != data.y_test))


def measure_fit(library: str, settings: Settings, data: Data) -> dict[str, Any]:
    """Time one whole fit after a small one that pays for compilation and other first-call costs."""
    start = time.perf_counter()
    import_module(MODULE_OF[library])
    warm_up = FITTERS[library](replace(settings, rounds=WARM_UP_ROUNDS))
    imported = time.perf_counter()
    warm_up(*warm_up_subset(data))
    first_call = time.perf_counter() - imported

    fit = FITTERS[library](settings)
    gc.collect()
    peak_is_of_fit = reset_peak()
    before = peak_bytes() if peak_is_of_fit else resident_bytes()
    busy, cpu, wall = busy_seconds(), time.process_time(), time.perf_counter()
    model = fit(data.X_train, data.y_train)
    wall, cpu, busy = time.perf_counter() - wall, time.process_time() - cpu, busy_seconds() - busy
    return {
        "import_seconds": imported - start, "first_call_seconds": first_call,
        "seconds": wall, "cpu_seconds": cpu, "cpu_seconds_of_others": max(busy - cpu, 0.0),
        "peak_bytes": peak_bytes() - before, "peak_is_of_fit": peak_is_of_fit,
        "test_error": share_wrong(data, model.predict(data.X_test)), "shape": data.shape,
    }  # fmt: skip


def measure_curve(settings: Settings, data: Data) -> dict[str, Any]:
    """Find the test error of gpuboost after each round."""
    model = gpuboost_fit(settings)(data.X_train, data.y_train)
    return {"test_errors": [share_wrong(data, predicted) for predicted in model.staged_predict(data.X_test)]}


def measure_add_rate() -> dict[str, Any]:
    """Time int32 additions of one thread with operands and sums (16 KiB each) in the first-level cache."""
    rows = np.broadcast_to(np.ones(4096, dtype=np.int32), (20_000, 4096))
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        np.add.reduce(rows, axis=0, dtype=np.int32)
        best = min(best, time.perf_counter() - start)
    return {"adds_per_second": rows.size / best}


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Do what the job says."""
    if job["kind"] == "probe":
        return {"version": import_module(MODULE_OF[job["library"]]).__version__}
    if job["kind"] == "add_rate":
        return measure_add_rate()
    settings = Settings(job["rounds"], job["leaves"], job["threads"], job["variant"])
    data = load_data(job["set"], job["data_dir"])
    if job["kind"] == "curve":
        return measure_curve(settings, data)
    return measure_fit(job["library"], settings, data)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(measure(json.loads(sys.argv[1]))))
