"""From a source of batches to a code file: one pass over the source, exact cuts, codes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import usable_threads
from gpuboost.binning import BinMapper
from gpuboost.binning.codes import N_CODES
from gpuboost.binning.stored import stored_width, to_blocks
from gpuboost.code_files.container import Tensor, write
from gpuboost.code_files.spool import Spool
from gpuboost.devices import open_backend
from gpuboost.fixedpoint import integer_weights, split_weights
from gpuboost.inputs.label_encoder import LabelEncoder, distinct_labels
from gpuboost.inputs.samples import row_digests, side_by_side
from gpuboost.inputs.weights import row_weights
from gpuboost.persistence.atomic_write import write_whole
from gpuboost.persistence.values import encode, encode_labels
from gpuboost.registry import __version__
from gpuboost.streams import ExampleReader, OracleSource, Source, Step

STEP_BYTES = 8 << 20
"""About so many bytes of values are taken from a source at a time."""

FEATURES_IF_UNKNOWN = 512
"""What a source has that does not say."""

COLUMN_BYTES = 256 << 20
"""Columns are sorted side by side as long as that takes no more than this."""

SORTING_BYTES = 64
"""What a row of a column takes while the cuts are chosen, at most."""

ENOUGH_DISTINCT = 2000
"""Distinct rows are counted up to this number, see `gpuboost.inputs.samples.Sample.n_distinct`."""

CODES, TARGET, WEIGHTS, COUNTS = "codes", "target", "weights", "code_counts"
"""Names of arrays; those of the cuts are `BINS`."""
BINS = {"cut_values": "<f8", "cut_offsets": "<i8", "has_missing": "|b1"}


class RowLabels:
    """The labels, and the weights if there are any, of the rows of a source; and its distinct rows, as far as they count."""

    def __init__(self) -> None:
        self.labels: list[NDArray[Any]] = []
        self.numbers: list[NDArray[np.int32]] = []
        self.weights: list[Floats] = []
        self.n_labels = 0
        self.seen: set[bytes] = set()

    def append(self, step: Step) -> NDArray[Any]:
        """Take a step's labels; return its rows that exist, the others have no weight."""
        X, y = step.X, step.y
        if step.weight is not None:
            exists = step.weight > 0
            X, y = X[exists], y[exists]
            self.weights.append(step.weight[exists])
        if len(y):
            labels, number = distinct_labels(y, "y")
            self.numbers.append((number + self.n_labels).astype(np.int32))
            self.labels.append(labels)
            self.n_labels += len(labels)
        if len(self.seen) < ENOUGH_DISTINCT:
            self.seen |= row_digests(X)
        return X

    def finish(self) -> tuple[LabelEncoder, NDArray[np.int32], Floats | None]:
        """Return the classes, and the class and the weight of each row that exists."""
        if not self.numbers:
            raise ValueError("weight is zero in every row: there is nothing to learn from")
        number = np.concatenate(self.numbers)
        weights = row_weights(np.concatenate(self.weights), len(number), "weight") if self.weights else None
        labels = np.concatenate(self.labels)
        encoder = LabelEncoder.of_distinct(distinct_labels(labels, "y")[0], len(number))
        return encoder, encoder.encode(labels).astype(np.int32)[number], weights


def write_code_file(source: Source, path: str | os.PathLike[str], max_bins: int, n_jobs: int | None) -> None:
    """Write a code file, see `gpuboost.CodeFile.write`."""
    if isinstance(source, OracleSource):
        raise ValueError("a function that draws rows never ends: give a generator of as many batches as the file shall have")
    folder = Path(os.path.realpath(path)).parent
    rows, names = RowLabels(), None
    step_rows = max(64, STEP_BYTES // (8 * (source.n_features or FEATURES_IF_UNKNOWN)))
    with Spool(folder) as spool:
        with ExampleReader(source, step_rows, recycle=False) as reader:
            for step in reader:
                if len(X := rows.append(step)):
                    spool.append(X)
            names = reader.feature_names
        encoder, target, weights = rows.finish()
        mapper = fit_cuts(spool, weights, max_bins, usable_threads(n_jobs))
        content = {
            "gpuboost": __version__,
            "classes": encode_labels(encoder.classes, "a class label"),
            "feature_names": None if names is None else encode(list(names), "a column name", {}),
            "max_bins": max_bins,
            "cuts": mapper.digest(),
            "weighted": weights is not None,
            "n_distinct": min(len(rows.seen), ENOUGH_DISTINCT),
        }
        counts = np.zeros((spool.n_features, N_CODES), "<i8")  # filled as the codes are written
        width, n_rows = stored_width(spool.n_features), len(target)
        with open_backend("cpu", n_jobs) as backend:
            shape = (-(-spool.n_features // width), n_rows, width)
            tensors = [
                Tensor(CODES, np.dtype(np.uint8), shape, code_pieces(spool, mapper, backend, width, counts)),
                *(Tensor.of(name, getattr(mapper, name).astype(dtype)) for name, dtype in BINS.items()),
                Tensor(COUNTS, counts.dtype, counts.shape, [counts]),
                *([] if weights is None else [Tensor.of(WEIGHTS, weights)]),
                Tensor.of(TARGET, target),
            ]
            write_whole(path, lambda file: write(file, content, tensors))


def fit_cuts(spool: Spool, weights: Floats | None, max_bins: int, n_threads: int) -> BinMapper:
    """Choose the cuts: those of `gpuboost.binning.BinMapper.fit` on all rows, column by column."""
    units = None if weights is None else integer_weights(*split_weights(weights))
    at_once = max(1, COLUMN_BYTES // (SORTING_BYTES * spool.n_rows))
    mappers = []
    for first in range(0, spool.n_features, at_once):
        columns = spool.columns(first, min(first + at_once, spool.n_features))
        mappers.append(
            BinMapper.fit(columns, max_bins=max_bins, integer_weights=units, n_threads=min(n_threads, columns.shape[1]))
        )
    return side_by_side(mappers)


def code_pieces(spool: Spool, mapper: BinMapper, backend: Backend, width: int, counts: IntArray) -> Iterator[NDArray[np.uint8]]:
    """Give the codes of each block of features in turn, some rows at a time, (1, n, width); count them in ``counts``."""
    for first in range(0, mapper.n_features, width):
        stop = min(first + width, mapper.n_features)
        own = mapper.of_features(first, stop)
        for columns in spool.batches(first, stop):
            matrix = own.transform(columns.T, bin_block=backend.bin_block)
            counts[first:stop] += matrix.code_counts
            yield to_blocks(matrix.codes, width)
