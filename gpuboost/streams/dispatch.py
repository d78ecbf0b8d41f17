"""From what a caller has to a source."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from gpuboost.inputs.arrays import origin
from gpuboost.inputs.containers import frame_names
from gpuboost.streams.arrays import ArraySource
from gpuboost.streams.batches import BatchSource
from gpuboost.streams.contract import Source
from gpuboost.streams.dask_collections import DaskSource, is_dask
from gpuboost.streams.files import DatasetSource
from gpuboost.streams.oracle import OracleSource

FRAMES = "files and frames of Dask"
USERS = {"target": FRAMES, "weight": FRAMES, "columns": "files", "shuffle": "arrays and files"}


def as_source(
    data: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    shuffle: int | None = None,
) -> Source:
    """Return a source of what ``data`` holds.

    Parameters
    ----------
    data : Any
        - a source: itself
        - a tuple (X, y) or (X, y, weight) of arrays, memory maps or frames: `ArraySource`; of Dask's: `DaskSource`
        - a path, a list of paths, or a `pyarrow.dataset.Dataset`: `DatasetSource`, which needs ``target``
        - a frame of Dask: `DaskSource`, which needs ``target``
        - a callable that takes a number of rows: `OracleSource`; one without parameters: `BatchSource`
        - another iterable of batches: `BatchSource`
    target, weight : str, optional
        Names of columns, for files and frames.
    columns : list of str, optional
        The features of files.
    shuffle : int, optional
        The seed of an order, for arrays and files.

    Returns
    -------
    Source

    Raises
    ------
    TypeError
        If it is none of these, or has no use for one of the parameters.
    """
    options = {"target": target, "weight": weight, "columns": columns, "shuffle": shuffle}
    make, taken = _maker(data)
    given = {name: value for name, value in options.items() if value is not None}
    useless = [name for name in given if name not in taken]
    if useless:
        raise TypeError(f"{useless[0]} has no meaning for a {type(data).__name__}; it is for {USERS[useless[0]]}")
    if "target" in taken and target is None:
        raise TypeError("target must be the name of the column that holds the labels, got None")
    return make(**given)


def _maker(data: Any) -> tuple[Callable[..., Source], tuple[str, ...]]:
    """Return what makes the source, and the options that it takes."""
    if isinstance(data, Source):
        return lambda: data, ()
    if _are_files(data):
        return lambda **options: DatasetSource(data, **options), ("target", "weight", "columns", "shuffle")
    if isinstance(data, tuple) and len(data) in (2, 3):
        if is_dask(data[0]):
            return lambda: DaskSource(*data), ()
        return lambda **options: ArraySource(*data, **options), ("shuffle",)
    if is_dask(data):
        return lambda target, weight=None: DaskSource(data, target, weight), ("target", "weight")
    if frame_names(data) is not None or hasattr(data, "__array__") or isinstance(data, (dict, set)):
        raise TypeError(f"data must hold labels, too: pass a tuple (X, y), got a {type(data).__name__}")
    if callable(data):
        return (lambda: BatchSource(data)) if _takes_nothing(data) else (lambda: OracleSource(data)), ()
    return lambda: BatchSource(data), ()


def _are_files(data: Any) -> bool:
    if isinstance(data, (str, os.PathLike)) or (origin(data, ("pyarrow",)) and hasattr(data, "get_fragments")):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(one, (str, os.PathLike)) for one in data)


def _takes_nothing(function: Callable[..., Any]) -> bool:
    """Whether a function can be called without an argument."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    except ValueError:  # of a builtin that does not say
        return True
    return True
