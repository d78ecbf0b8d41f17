"""The history of a training as arrays: a list of numbers is one, a list of lists two."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from gpuboost.persistence.safetensors import Arrays, take


def pack_history(history: Mapping[str, list[Any]], arrays: Arrays) -> list[str]:
    """Put the history into arrays, lists of lists with their lengths; return its names in order. Seconds are nobody's model."""
    names = [name for name in history if name != "seconds"]
    for name in names:
        entries = history[name]
        if any(isinstance(entry, list) for entry in entries):
            arrays[f"sizes/{name}"] = np.array([len(entry) for entry in entries], np.int64)
            entries = [number for entry in entries for number in entry]
        if not all(isinstance(number, Real) for number in entries):
            raise TypeError(f"history_[{name!r}] must hold numbers")
        counts = bool(entries) and all(type(number) is int for number in entries)
        arrays[f"history/{name}"] = np.array(entries, np.int64 if counts else np.float64)
    return names


def unpack_history(names: list[Any], arrays: Arrays) -> dict[str, list[Any]]:
    """Return the history; one that holds lists is cut into them."""
    history: dict[str, list[Any]] = {}
    for name in names:
        if not isinstance(name, str) or name in history:
            raise ValueError(f"the name {name!r:.60} in its history is not understood")
        dtype = getattr(arrays.get(f"history/{name}"), "dtype", None)
        history[name] = numbers = take(arrays, f"history/{name}", "<i8" if dtype == np.int64 else "<f8", 1).tolist()
        if f"sizes/{name}" in arrays:
            sizes = take(arrays, f"sizes/{name}", "<i8", 1)
            if (sizes < 0).any() or (sizes > len(numbers)).any() or sizes.sum() != len(numbers):
                raise ValueError(f"the history of {name!r:.60} cannot be cut into lists")
            ends = np.cumsum(sizes).tolist()
            history[name] = [numbers[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    return history


def check_history(history: dict[str, list[Any]], n_rounds: int) -> None:
    """Raise a ValueError if the lists do not all have one entry for each round, or more."""
    lengths = {len(entries) for entries in history.values()}
    if len(lengths) > 1 or min(lengths, default=n_rounds) < n_rounds:
        raise ValueError(f"its history has {sorted(lengths)} entries for {n_rounds} rounds")
