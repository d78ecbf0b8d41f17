"""Labelled rows on their way from the caller's arrays to a `Problem` on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.binning import BinMapper
from gpuboost.boosters.base import Problem
from gpuboost.boosters.sampling import HOLD_OUT, Sampling
from gpuboost.fixedpoint import check_size, integer_weights, split_weights
from gpuboost.inputs.arrays import dtype_of, to_host
from gpuboost.inputs.label_encoder import LabelEncoder, label_array
from gpuboost.inputs.weights import class_weights, row_weights, to_unit_scale

BLOCK_BYTES = 256 << 20
"""Columns of a matrix on a device are copied to the host in blocks of about this size."""


@dataclass(frozen=True)
class Sample:
    """The rows of a set that exist: those of weight 0 do not.

    Attributes
    ----------
    X : ndarray or device array, shape (n_all_rows, n_features)
        The caller's matrix, which is not copied.
    rows : ndarray of int, shape (n_rows,)
        The rows of X that the sample consists of.
    target : ndarray
        Class numbers, int64 (n_rows,), or multi-label targets, bool (n_rows, n_classes).
    weights : ndarray of float64, shape (n_rows,)
        Positive.
    """

    X: Any
    rows: NDArray[np.intp]
    target: NDArray[Any]
    weights: NDArray[np.float64]

    def subset(self, chosen: NDArray[np.intp]) -> Sample:
        """Return the sample of the rows ``self.rows[chosen]``."""
        return replace(self, rows=self.rows[chosen], target=self.target[chosen], weights=self.weights[chosen])

    @cached_property
    def split_weights(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The integer and real weights of the rows, see `gpuboost.fixedpoint.split_weights`."""
        return split_weights(self.weights)

    def n_distinct(self, enough: int) -> int:
        """Return the number of distinct rows of X, or ``enough`` if there are that many.

        Unlike the number of rows it depends neither on rows that stand twice nor on the unit of the weights. Values are
        compared as the float64 that they are cut as: 0 equals -0, and missing equals missing.
        """
        seen: set[bytes] = set()
        for first in range(0, len(self.rows), enough):
            rows = self.rows[first : first + enough]
            low, high = int(rows.min()), int(rows.max())
            with np.errstate(over="ignore", invalid="ignore"):  # of long doubles
                block = to_host(self.X[low : high + 1])[rows - low].astype(np.float64) + 0.0  # turns -0.0 into 0.0
            block[np.isnan(block)] = np.nan  # NaN has many bit patterns
            seen.update(row.tobytes() for row in block)
            if len(seen) >= enough:
                return enough
        return len(seen)

    def fit_bins(self, max_bins: int, n_threads: int) -> BinMapper:
        """Choose the cuts on the rows of the sample; of a matrix on a device, some columns at a time come to the host."""
        n_rows, n_features = self.X.shape
        weights = np.zeros(n_rows, np.int64)
        weights[self.rows] = integer_weights(*self.split_weights)
        if isinstance(self.X, np.ndarray):
            return BinMapper.fit(self.X, max_bins=max_bins, integer_weights=weights, n_threads=n_threads)
        width = max(n_threads, BLOCK_BYTES // (n_rows * dtype_of(self.X, "X").itemsize))
        blocks = (to_host(self.X[:, first : first + width]) for first in range(0, n_features, width))
        return side_by_side(
            [BinMapper.fit(block, max_bins=max_bins, integer_weights=weights, n_threads=n_threads) for block in blocks]
        )

    def problem(self, backend: Backend, mapper: BinMapper, encoder: LabelEncoder) -> tuple[Problem, bool]:
        """Load the sample on a device. Return it, and whether any of its columns tells rows apart."""
        rows, labels = None if len(self.rows) == self.X.shape[0] else self.rows, self.labels(encoder)
        data = backend.encode(mapper, self.X, rows)
        return Problem(backend, data, *labels), bool(backend.usable(data).any())

    def labels(self, encoder: LabelEncoder) -> tuple[NDArray[Any], int, NDArray[np.int32], NDArray[np.float64]]:
        """Return what a `Problem` has beside the data: targets, number of classes, and weights.

        Raises
        ------
        ValueError
            If there are more rows, counted with their integer weights, than can be summed.
        """
        target = self.target if encoder.multi_label else self.target.astype(np.int32)
        frequency_weight, weight_scale = self.split_weights
        check_size(int(frequency_weight.sum(dtype=np.int64)), len(encoder.classes))
        return target, len(encoder.classes), frequency_weight, weight_scale


def side_by_side(mappers: Sequence[BinMapper]) -> BinMapper:
    """Return the cuts of a matrix from those of blocks of its columns."""
    n_cuts = np.concatenate([mapper.n_cuts for mapper in mappers])
    return BinMapper(
        cut_values=np.concatenate([mapper.cut_values for mapper in mappers]),
        cut_offsets=np.cumsum([0, *n_cuts], dtype=np.int64),
        has_missing=np.concatenate([mapper.has_missing for mapper in mappers]),
    )


def training_sample(X: Any, y: Any, sample_weight: Any, class_weight: Any) -> tuple[Sample, LabelEncoder]:
    """Encode the training set: its classes are the labels of the rows that have a weight."""
    weights = row_weights(sample_weight, X.shape[0])
    rows = np.flatnonzero(weights)
    labels, weights = label_array(y, X.shape[0], rows=rows), weights[rows]
    encoder = LabelEncoder.fit(labels)
    target = encoder.encode(labels)
    if class_weight is not None:
        weights = weights * to_unit_scale(class_weights(class_weight, encoder, target, weights))[target]
        kept = np.flatnonzero(weights)
        if len(kept) == 0:
            raise ValueError("class_weight and sample_weight leave no row with a weight: there is nothing to learn from")
        rows, labels, weights = rows[kept], labels[kept], to_unit_scale(weights[kept])
        encoder = LabelEncoder.fit(labels)
        target = encoder.encode(labels)
    return Sample(X, rows, target, weights), encoder


def evaluation_sample(X: Any, y: Any, sample_weight: Any, encoder: LabelEncoder, name: str) -> Sample:
    """Encode an evaluation set with the classes of the training set; its weights are its own."""
    weights = row_weights(sample_weight, X.shape[0], f"sample_weight of {name}")
    rows = np.flatnonzero(weights)
    target = encoder.encode(label_array(y, X.shape[0], f"y of {name}", rows), f"y of {name}")
    return Sample(X, rows, target, weights[rows])


def split_off(sample: Sample, fraction: float, seed: int) -> tuple[Sample, Sample]:
    """Draw a hold-out set, class by class; every class keeps at least one row in the first, remaining part.

    The i-th row of the sample gets the i-th number of a generator; those with the largest of each class are held out, ties by
    row number. So whoever holds some of the rows can tell which of them are.

    Parameters
    ----------
    sample : Sample
    fraction : float
        The share of the hold-out set, in (0, 1), rounded in each class (in the whole set for a multi-label problem).
    seed : int
        See `gpuboost.boosters.sampling.Sampling`.

    Raises
    ------
    ValueError
        If no row can be held out, since every class has one row.
    """
    stratum = sample.target if sample.target.ndim == 1 else np.zeros(len(sample.rows), np.int64)
    sizes = np.bincount(stratum)
    held = np.minimum(np.floor(fraction * sizes + 0.5).astype(np.int64), np.maximum(sizes - 1, 0))
    if not held.any():
        held[sizes.argmax()] = min(1, int(sizes.max()) - 1)
    if not held.any():
        raise ValueError("early_stopping needs rows to hold out, but every class has only one; pass an eval_set")
    numbers = Sampling(seed=seed).random(0, HOLD_OUT, len(stratum))
    order = np.lexsort((~numbers, stratum))  # class by class, the largest numbers first; rows of equal numbers keep their order
    rank = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[stratum[order]]
    is_held = np.zeros(len(order), bool)
    is_held[order[rank < held[stratum[order]]]] = True
    return sample.subset(np.flatnonzero(~is_held)), sample.subset(np.flatnonzero(is_held))
