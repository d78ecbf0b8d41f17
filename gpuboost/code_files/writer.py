"""From a source of batches to a code file: one pass over the source, exact cuts, codes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import usable_threads
from gpuboost.binning import BinMapper
from gpuboost.binning.codes import N_CODES
from gpuboost.binning.stored import stored_width, to_blocks
from gpuboost.code_files.container import Tensor, write
from gpuboost.code_files.cuts import ChosenCuts, GivenCuts
from gpuboost.code_files.row_files import RowLabels
from gpuboost.code_files.spool import Spool
from gpuboost.devices import open_backend
from gpuboost.persistence.atomic_write import write_whole
from gpuboost.persistence.values import encode, encode_labels
from gpuboost.registry import __version__
from gpuboost.streams import ExampleReader, OracleSource, Source

STEP_BYTES = 8 << 20
"""About so many bytes of values are taken from a source at a time."""

FEATURES_IF_UNKNOWN = 512
"""What a source has that does not say."""

CODES, TARGET, WEIGHTS, COUNTS = "codes", "target", "weights", "code_counts"
"""Names of arrays; those of the cuts are `BINS`."""
BINS = {"cut_values": "<f8", "cut_offsets": "<i8", "has_missing": "|b1"}


def write_code_file(
    source: Source,
    path: str | os.PathLike[str],
    cuts: ChosenCuts | GivenCuts,
    n_jobs: int | None,
    target: str | None = None,
) -> None:
    """Write a code file, see `gpuboost.CodeFile.write`; ``target`` is the name of the labels' column."""
    if isinstance(source, OracleSource):
        raise ValueError("a function that draws rows never ends: give a generator of as many batches as the file shall have")
    _check_place(path)
    n_threads, folder = usable_threads(n_jobs), Path(os.path.realpath(path)).parent
    step_rows = max(64, STEP_BYTES // (8 * (source.n_features or FEATURES_IF_UNKNOWN)))
    with RowLabels(folder) as labels, Spool(folder) as spool:
        with ExampleReader(source, step_rows, recycle=False) as reader:
            for step in reader:
                cuts.check(step.X.shape[1], reader.feature_names)
                if len(X := labels.append(step)):
                    spool.append(X)
            names = reader.feature_names
        encoder, weights = labels.encoder(), labels.weights
        mapper = cuts.mapper(spool, weights, n_threads)
        content = {
            "gpuboost": __version__,
            "classes": encode_labels(encoder.classes, "a class label"),
            "feature_names": None if names is None else encode(list(names), "a column name", {}),
            "target": target,
            "max_bins": cuts.max_bins,
            "cuts": mapper.digest(),
            "weighted": weights is not None,
            "n_distinct": labels.n_distinct,
        }
        counts = np.zeros((spool.n_features, N_CODES), "<i8")  # filled as the codes are written
        width, n_rows = stored_width(spool.n_features), (labels.n_rows,)
        with open_backend("cpu", n_jobs) as backend:
            shape = (-(-spool.n_features // width), labels.n_rows, width)
            tensors = [
                Tensor(CODES, np.dtype(np.uint8), shape, code_pieces(spool, mapper, backend, width, counts)),
                *(Tensor.of(name, getattr(mapper, name).astype(dtype)) for name, dtype in BINS.items()),
                Tensor(COUNTS, counts.dtype, counts.shape, [counts]),
                *([] if weights is None else [Tensor(WEIGHTS, np.dtype("<f8"), n_rows, weights.pieces())]),
                Tensor(TARGET, np.dtype("<i4"), n_rows, labels.target(encoder)),
            ]
            write_whole(path, lambda file: write(file, content, tensors))


def _check_place(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if the file that is to be written would be none."""
    name = os.fspath(path)
    if not name:
        raise FileNotFoundError(errno.ENOENT, "path is empty, give the name of a file")
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if os.path.exists(name) and not os.path.isfile(name):
        raise OSError(errno.EINVAL, "a code file cannot be a device or a pipe", name)


def code_pieces(spool: Spool, mapper: BinMapper, backend: Backend, width: int, counts: IntArray) -> Iterator[NDArray[np.uint8]]:
    """Give the codes of each block of features in turn, some rows at a time, (1, n, width); count them in ``counts``."""
    for first in range(0, mapper.n_features, width):
        stop = min(first + width, mapper.n_features)
        own = mapper.of_features(first, stop)
        for columns in spool.batches(first, stop):
            matrix = own.transform(columns.T, bin_block=backend.bin_block)
            counts[first:stop] += matrix.code_counts
            yield to_blocks(matrix.codes, width)
