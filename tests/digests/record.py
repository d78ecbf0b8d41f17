"""Run the trainings of the table and digest what comes of them; as a program, record the digests and the model files."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import gpuboost
from tests.digests.cases import CASES, SAVED, Case
from tests.digests.data import DATA, WEIGHTS, Data

HERE = Path(__file__).parent
Digests = dict[str, str]


@cache
def data_of(name: str) -> Data:
    return DATA[name]()


def fit_arguments(case: Case) -> tuple[Any, Any, dict[str, Any]]:
    """Return X, y and the options of `fit`."""
    data = data_of(case.data)
    watched: list[Any] = [(data.X_watched, data.y_watched), (data.X, data.y, WEIGHTS["integer"](len(data.X)))]
    weights = WEIGHTS[case.weights](len(data.X)) if case.weights else None
    return data.X, data.y, {"sample_weight": weights, "eval_set": watched[: case.n_watched] or None}


def train(case: Case, device: str, callback: Callable[[Any], Any] | None = None) -> Any:
    """Return the fitted model of a case."""
    X, y, options = fit_arguments(case)
    params = {**case.params, "n_estimators": case.first or case.rounds, "device": device, "n_jobs": 1}
    if case.stop_at is not None:
        params["callbacks"] = [lambda progress: progress.n_rounds >= case.stop_at]
    elif callback is not None:
        params["callbacks"] = [callback]
    with warnings.catch_warnings():
        if case.warns:
            warnings.simplefilter("ignore", UserWarning)
        model = gpuboost.fit(X, y, algorithm=case.algorithm, **options, **params)
        if case.first:
            model.set_params(n_estimators=case.rounds, warm_start=True).fit(X, y, **options)
    return model


def digests(case: Case, model: Any) -> Digests:
    """Return the digests of a model's trees, cuts and history, and of what it says of the training rows.

    In the place of trees and cuts there may be similarities, and the levels of the features.
    """
    X = data_of(case.data).X
    found = {
        "trees": model.ensemble_.digest(),
        "cuts": sha256(*columns_of(model)),
        "history": history_digest(model.history_),
        "scores": sha256(model.decision_function(X)),
        "labels": sha256(model.predict(X)),
    }
    return found | ({"probabilities": sha256(model.predict_proba(X))} if hasattr(model, "predict_proba") else {})


def columns_of(model: Any) -> list[Any]:
    """Return the arrays of the cuts, or of the levels of the features."""
    if hasattr(model, "bin_mapper_"):
        return [getattr(model.bin_mapper_, name) for name in ("cut_values", "cut_offsets", "has_missing")]
    return [getattr(model.feature_scale_, name) for name in ("low", "unit", "top", "missing")]


def history_digest(history: Mapping[str, list[Any]]) -> str:
    """Return the digest of all numbers of a history but the seconds, with their names."""
    sha = hashlib.sha256()
    for name in sorted(history.keys() - {"seconds"}):
        lists = [entry if isinstance(entry, list) else [entry] for entry in history[name]]
        sha.update(f"{name} {[len(one) for one in lists]};".encode())
        sha.update(np.array([number for one in lists for number in one], "<f8").tobytes())
    return sha.hexdigest()


def data_digests() -> Digests:
    """Return the digests of all data sets and weights."""
    sets = {name: data_of(name) for name in DATA}
    found = {name: sha256(*map(np.asarray, (one.X, one.y, one.X_watched, one.y_watched))) for name, one in sets.items()}
    return found | {f"{name} weights": sha256(weights(100)) for name, weights in WEIGHTS.items()}


def sha256(*arrays: Any) -> str:
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(f"{array.dtype.str} {array.shape};".encode())
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def file_name(case: str) -> str:
    return f"{case.replace(', ', '-').replace(' ', '-')}.safetensors"


def save_models(folder: Path) -> dict[str, Digests]:
    """Save the models of `SAVED` as they are after a round, with all that is needed to go on; return their digests."""
    folder.mkdir(exist_ok=True)
    found: dict[str, Digests] = {}
    for name, at in SAVED.items():

        def keep(model: Any, name: str = name) -> None:
            model.save(folder / file_name(name))
            found[name] = digests(CASES[name], model)

        model = train(CASES[name], "numpy", lambda progress, at=at: progress.n_rounds == at and keep(progress.model()))
        if at is None:
            keep(model)
    return found


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    """Record everything with the NumPy backend."""
    found = {name: digests(case, train(case, "numpy")) for name, case in CASES.items()}
    write(HERE / "digests.json", {"version": gpuboost.__version__, "data": data_digests(), "cases": found})
    folder = HERE / f"models_{gpuboost.__version__.replace('.', '_')}"
    write(folder / "digests.json", save_models(folder))


if __name__ == "__main__":
    main()
