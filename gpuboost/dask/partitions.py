"""From collections of Dask to partitions whose lengths and columns are known and agree."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from distributed import Future, futures_of

from gpuboost.dask.cluster import wait_for
from gpuboost.inputs import containers
from gpuboost.inputs.containers import frame_columns, frame_names, is_categorical, row_range
from gpuboost.inputs.label_encoder import raw_labels
from gpuboost.messages import did_you_mean
from gpuboost.streams.dask_collections import is_dask

LABEL_KINDS = (
    dict.fromkeys("biuf", "numbers") | dict.fromkeys("UT", "text") | {"S": "bytes", "M": "dates", "m": "spans of time"}
)
"""What labels of a dtype are. Those of two kinds cannot be the labels of one set."""


@dataclass(frozen=True)
class Shape:
    """What is looked at of a partition before anything else.

    Attributes
    ----------
    n_rows : int
    n_columns : int or None
        None if it has no columns.
    columns : list of (name, kind) or None
        Of a data frame: the names of the columns, and "number" or what else they hold.
    """

    n_rows: int
    n_columns: int | None
    columns: list[tuple[Any, str]] | None


@dataclass(frozen=True)
class Partition:
    """Rows of a set, as futures.

    Attributes
    ----------
    first_row, n_rows : int
    X, y, weight : Future
        ``weight`` may be None.
    """

    first_row: int
    n_rows: int
    X: Any
    y: Any
    weight: Any


def partitions_of(client: Any, X: Any, y: Any, weight: Any, name: str, patience: float) -> tuple[list[Any], Shape]:
    """Compute the partitions of a set on the cluster, where they stay.

    Parameters
    ----------
    client : distributed.Client
    X : dask array, dask frame, or list of delayed objects or futures
    y, weight : the same, or the name of a column of X; ``weight`` may be None
    name : str
        What messages call the set, for instance "eval_set[0]"; "" is the training set.
    patience : float
        See `gpuboost.dask.cluster.wait_for`, whose errors are raised, too.

    Returns
    -------
    list of Partition
        Without those that have no rows.
    Shape
        That of the whole of X.

    Raises
    ------
    TypeError
        If one of them is nothing of Dask's.
    ValueError
        If X, y and weight have different numbers of rows, or partitions of X have different columns. The message names the
        partitions.
    """
    of = f" of {name}" if name else ""
    if y is None:
        raise ValueError(f"y{of} must be labels, or the name of a column of X, got None")
    X, parts = _columns_taken(X, {"y": y, "sample_weight": weight}, of)
    delayed = [_delayed_parts(X, f"X{of}"), *(_delayed_parts(part, f"{what}{of}") for what, part in parts.items())]
    persisted = client.persist(list(itertools.chain.from_iterable(delayed)))
    futures = [futures_of(one)[0] for one in persisted]  # of all at once it would give the same one once
    wait_for(client, futures, patience)
    shapes = client.gather(client.map(shape_of, futures, pure=False))
    _compare_labels(client, futures[len(delayed[0]) :][: len(delayed[1])], f"y{of}")
    bounds = np.cumsum([0, *map(len, delayed)]).tolist()
    split = [(futures[low:high], shapes[low:high]) for low, high in itertools.pairwise(bounds)]
    (own, own_shapes), *others = split
    _compare_columns(own_shapes, f"X{of}")
    aligned = [
        _aligned(client, own_shapes, theirs, their_shapes, f"X{of}", f"{what}{of}")
        for what, (theirs, their_shapes) in zip(parts, others, strict=True)
    ]
    labels, weights = [*aligned, [None] * len(own)][:2]
    starts = np.cumsum([0, *(shape.n_rows for shape in own_shapes)]).tolist()
    if starts[-1] == 0:
        raise ValueError(f"X{of} has no rows in its {len(own)} partitions")
    rows = zip(starts[:-1], own_shapes, own, labels, weights, strict=True)
    kept = [Partition(start, shape.n_rows, *three) for start, shape, *three in rows if shape.n_rows]
    return kept, Shape(starts[-1], own_shapes[0].n_columns, own_shapes[0].columns)


def _columns_taken(X: Any, parts: dict[str, Any], of: str) -> tuple[Any, dict[str, Any]]:
    """Take labels and weights that are columns of X out of it; leave out what is None."""
    names = [part for part in parts.values() if isinstance(part, str)]
    if names:
        known = list(getattr(X, "columns", ()))
        for what, part in parts.items():
            if isinstance(part, str) and part not in known:
                hint = did_you_mean(part, known)
                raise ValueError(f"{what}{of} must be a column of X, which has {known[:20]}, got {part!r}{hint}")
            if isinstance(part, str) and known.count(part) > 1:
                raise ValueError(f"{what}{of} must be a column of X that stands there once: X has {known[:20]}, got {part!r}")
    taken = {what: X[part] if isinstance(part, str) else part for what, part in parts.items() if part is not None}
    return (X.drop(columns=names) if names else X), taken


def _delayed_parts(part: Any, name: str) -> list[Any]:
    """Return the partitions of a collection, in the order of rows."""
    if isinstance(part, (list, tuple)) and part and all(isinstance(one, Future) or is_dask(one) for one in part):
        return [dask.delayed(one) for one in part]
    if not is_dask(part) or not hasattr(part, "to_delayed"):
        raise TypeError(
            f"{name} must be an array or a frame of Dask, or a list of delayed partitions, got a {type(part).__name__}; "
            "gpuboost.fit takes what lies in the memory of one process"
        )
    if hasattr(part, "chunks") and part.ndim == 2:
        part = part.rechunk({1: -1})
    return list(np.ravel(part.to_delayed()))


def shape_of(block: Any) -> Shape:
    """Return the shape of a partition, on the worker that has it."""
    shape: tuple[int, ...] = getattr(block, "shape", (len(block),) if hasattr(block, "__len__") else ())
    if not shape:
        raise TypeError(f"a partition must be an array or a frame, got a {type(block).__name__}")
    names = frame_names(block)
    n_columns = int(shape[1]) if len(shape) == 2 else None
    if names is None:
        return Shape(int(shape[0]), n_columns, None)
    kinds = map(_kind, frame_columns(block))
    return Shape(int(shape[0]), n_columns, list(zip(names, kinds, strict=True)))


def _kind(column: Any) -> str:
    if is_categorical(column):
        return "categories"
    dtype = getattr(column, "dtype", None)
    if getattr(dtype, "kind", "") in "biuf" and dtype is not None:
        return "numbers"
    return str(getattr(column, "type", dtype))


def _compare_columns(shapes: Sequence[Shape], name: str) -> None:
    """Raise an error if a partition has other columns than the first."""
    first = shapes[0]
    for i, shape in enumerate(shapes):
        if shape.n_columns is None:
            raise ValueError(f"{name} must have rows and columns, but its partition {i} is no matrix")
        compare_shapes(first, f"partition 0 of {name}", shape, f"partition {i} of {name}")


def _compare_labels(client: Any, futures: Sequence[Any], name: str) -> None:
    """Raise an error if some partitions hold labels that are text and others numbers, which NumPy would turn into text."""
    kinds = client.gather(client.map(label_kind, futures, pure=False, name=name))
    known = [(i, kind) for i, kind in enumerate(kinds) if kind is not None]
    for i, kind in known:
        if kind != known[0][1]:
            raise ValueError(f"partition {known[0][0]} of {name} holds {known[0][1]}, but partition {i} holds {kind}")


def label_kind(block: Any, name: str) -> str | None:
    """Return what the labels of a partition are, as its dtype or its first row says; None if there are none."""
    head = row_range(block, 0, 1)
    labels = raw_labels(head, len(head), name)
    if not labels.size:
        return None
    if labels.dtype.kind != "O":
        return LABEL_KINDS.get(labels.dtype.kind, str(labels.dtype))
    first = labels.ravel()[0]
    return "text" if isinstance(first, str) else "bytes" if isinstance(first, bytes) else None


def compare_shapes(first: Shape, first_name: str, other: Shape, other_name: str) -> None:
    """Raise a ValueError if two blocks do not have the same columns, or the same kinds of them."""
    if first.columns != other.columns:
        pairs = itertools.zip_longest(first.columns or (), other.columns or ())
        at, (here, there) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
        shown = ["no such column" if one is None else f"{one[0]!r} of {one[1]}" for one in (here, there)]
        raise ValueError(f"{first_name} and {other_name} have other columns: number {at} is {shown[0]} and {shown[1]}")
    if first.n_columns != other.n_columns:
        raise ValueError(f"{first_name} and {other_name} have other columns: {first.n_columns} and {other.n_columns} of them")


def _aligned(
    client: Any, own: Sequence[Shape], theirs: Sequence[Any], shapes: Sequence[Shape], own_name: str, name: str
) -> list[Any]:
    """Return labels or weights in partitions as long as those of X."""
    lengths, wanted = [shape.n_rows for shape in shapes], [shape.n_rows for shape in own]
    if lengths == wanted:
        return list(theirs)
    if sum(lengths) != sum(wanted):
        pairs = itertools.zip_longest(wanted, lengths)
        at = next(i for i, (here, there) in enumerate(pairs) if here != there)
        shown = [f"{rows[at]} rows" if at < len(rows) else "none" for rows in (wanted, lengths)]
        raise ValueError(
            f"{own_name} has {sum(wanted)} rows and {name} {sum(lengths)}: partition {at} has {shown[0]} in {own_name} and "
            f"{shown[1]} in {name}"
        )
    starts, ends = np.cumsum([0, *lengths]), np.cumsum([0, *wanted])
    aligned: list[Any] = []
    for low, high in itertools.pairwise(ends.tolist()):
        if low == high:
            aligned.append(None)  # a partition without rows is left out
            continue
        touched = [j for j in range(len(theirs)) if starts[j] < high and starts[j + 1] > low]
        cuts = [(max(low - int(starts[j]), 0), high - int(starts[j])) for j in touched]
        aligned.append(client.submit(joined, [theirs[j] for j in touched], cuts, pure=False))
    return aligned


def joined(blocks: Sequence[Any], cuts: Sequence[tuple[int, int]]) -> Any:
    """Return rows of some blocks as one, on a worker: of their kind, so that no mask and no missing value is lost."""
    return containers.joined([row_range(block, *rows) for block, rows in zip(blocks, cuts, strict=True)])
