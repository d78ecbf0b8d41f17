"""Rows a second through the filter, beside the plain prediction by the same trees."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from filtering.problems import ForestRows
from filtering.runs import Run, classifier
from gpuboost import FilterBoostClassifier
from gpuboost.boosters.filtering.examples import Examples, StreamEnd
from gpuboost.boosters.filtering.weak_learners import all_labels
from gpuboost.estimators.stream_fitting import STEP_ROWS, _labelled
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.streams import ArraySource, ExampleReader


def timed(what: Callable[[], int]) -> tuple[float, float]:
    """Return rows a second of wall time, and of the process's CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    n_rows = what()
    return n_rows / (time.perf_counter() - wall), n_rows / (time.process_time() - cpu)


def filtered(model: FilterBoostClassifier, X: np.ndarray, y: np.ndarray) -> int:
    """Draw all rows through the filter, as a round does that wants more than there are; return how many."""
    encoder = LabelEncoder(model.classes_, False)
    with model._model_kind.open("cpu", 1) as backend, ExampleReader(ArraySource(X, y), STEP_ROWS, False) as reader:
        steps = (_labelled(step, encoder, None) for step in reader)
        examples = Examples(steps, backend, model.bin_mapper_, len(model.classes_))
        examples.trees = [tree for trees in model._model.rounds() for tree in trees]
        try:
            while True:
                examples.accepted(3000, all_labels, None, 1 << 19)
        except StreamEnd:
            return len(X)


def rates(n_rows: int, rounds: tuple[int, ...], repeats: int = 3, n_classes: int = 2) -> list[Run]:
    """Return the rates of models of so many trees; each the median of interleaved runs."""
    X, y = ForestRows(n_rows, n_classes, 1).rows(n_rows)
    found = []
    for t in sorted(rounds):
        quick: dict[str, Any] = {"examples_per_round": 1000, "schedule": "constant"}
        part = classifier(n_estimators=t, random_state=0, **quick).fit_stream(ForestRows(200_000, n_classes))
        ways: dict[str, Callable[[], int]] = {
            "predict": lambda part=part: len(part.decision_function(X)),
            "filter": lambda part=part: filtered(part, X, y),
        }
        pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for name, way in list(ways.items()) * repeats:
            pairs[name].append(timed(way))
        record: Run = {"classes": n_classes, "trees": t, "rows": n_rows, "acceptance": part.history_["acceptance"][-1]}
        for name, own in pairs.items():
            record[name], record[f"{name}_cpu"] = (median(numbers) for numbers in zip(*own, strict=True))
        for kind in ("", "_cpu"):
            both = zip(pairs["filter"], pairs["predict"], strict=True)
            record[f"ratio{kind}"] = median(a[kind == "_cpu"] / b[kind == "_cpu"] for a, b in both)
        found.append(record)
    return found
