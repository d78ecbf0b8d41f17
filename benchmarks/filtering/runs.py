"""The boosters that the FilterBoost paper compares, and one training of one of them."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import expit

from filtering.problems import Split
from gpuboost import FilterBoostClassifier

Run = dict[str, Any]

CHECKPOINTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 250, 300, 400, 500, 700, 1000)

PAPER = {"examples_per_round": 300, "leaf_values": "vote"}
ADABOOST = {"draw": "all", "weighting": "exponential"}
LOG = {"draw": "all"}
CR, RESAMPLED = {"leaf_values": "paper"}, {"draw": "resample"}

BOOSTERS: MappingProxyType[str, dict[str, Any]] = MappingProxyType(
    {
        "FilterBoost": {},
        "FilterBoost (C-R)": CR,
        "FilterBoost (fresh)": {"leaf_values": "fresh"},
        "MadaBoost": {"weighting": "madaboost"},
        "AdaBoost": ADABOOST,
        "AdaBoost (C-R)": ADABOOST | CR,
        "AdaBoost (resamp)": ADABOOST | RESAMPLED,
        "AdaBoost (C-R, resamp)": ADABOOST | CR | RESAMPLED,
        "AdaBoost-LOG": LOG,
        "AdaBoost-LOG (C-R)": LOG | CR,
        "AdaBoost-LOG (resamp)": LOG | RESAMPLED,
        "AdaBoost-LOG (C-R, resamp)": LOG | CR | RESAMPLED,
    }
)
"""The names are those of the paper's figures; "fresh" is not in it."""

LEARNERS = {"stumps": 2, "trees": 8}


def classifier(**params: Any) -> FilterBoostClassifier:
    return FilterBoostClassifier(**{"device": "cpu", "n_jobs": 1, **params})


def peak_bytes() -> int:
    """Return the peak of resident memory since the process's program started; `getrusage` may have the parent's in it."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def scores_of(proba: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return error, log loss and RMSE (section 4.3, as means) of probabilities (n_rows, n_classes)."""
    own = proba[np.arange(len(y)), y]
    return {
        "error": float(np.mean(proba.argmax(axis=1) != y)),
        "log_loss": float(-np.log(own).mean()),
        "rmse": float(np.sqrt(np.mean((1 - own) ** 2))),
    }


def curve_of(model: FilterBoostClassifier, split: Split, rounds: Iterable[int] = CHECKPOINTS) -> list[Run]:
    """Return what a model of two classes is worth at some of its rounds."""
    wanted, history = {*rounds, model.n_estimators_}, model.history_
    seconds, draws = np.asarray(history["seconds"]), np.cumsum(history["draws"])
    scale = 2 if model.weighting == "exponential" else 1  # as `predict_proba`, which takes longer than a round's training
    curve = []
    for t, margin in enumerate(model.staged_decision_function(split.X_test), start=1):
        if t in wanted:
            past = {"round": t, "seconds": float(seconds[t - 1]), "draws": float(draws[t - 1])}
            proba = np.column_stack([expit(-scale * margin), expit(scale * margin)])
            curve.append(past | scores_of(proba, split.y_test))
    return curve


def trained(split: Split, **params: Any) -> tuple[FilterBoostClassifier, float]:
    """Return a model, and the seconds that it took."""
    begun = time.perf_counter()
    model = classifier(**params).fit(split.X, split.y)
    return model, time.perf_counter() - begun


def one_run(split: Split, booster: str, learner: str, run: int, rounds: int) -> Run:
    """Train as the paper does. The history is that of the rounds in `CHECKPOINTS`."""
    model, seconds = trained(
        split, **(PAPER | BOOSTERS[booster]), max_leaf_nodes=LEARNERS[learner], n_estimators=rounds, random_state=run
    )
    shown = [t for t in CHECKPOINTS if t <= model.n_estimators_]
    found = {
        "booster": booster,
        "learner": learner,
        "run": run,
        "rounds": model.n_estimators_,
        "seconds": seconds,
        "stop_reason": model.stop_reason_,
        "curve": curve_of(model, split),
        "history": {
            name: [model.history_[name][t - 1] for t in shown] for name in ("bound", "acceptance", "edge", "train_error")
        },
        "edges_that_rise": float(np.mean(np.diff(model.history_["edge"]) > 0)),
    }
    return shortened(found)


def shortened(found: Any) -> Any:
    """Return what was found with six digits of every number: a thousand runs stand in one file."""
    if isinstance(found, dict):
        return {key: shortened(value) for key, value in found.items()}
    if isinstance(found, list):
        return [shortened(value) for value in found]
    return float(f"{found:.6g}") if isinstance(found, float) else found
