"""Labelled rows on their way from the caller's arrays to a `Problem` on a device."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.binning import BinMapper, RowBlocks
from gpuboost.boosters.base import Problem
from gpuboost.boosters.sampling import HOLD_OUT
from gpuboost.fixedpoint import check_size, integer_weights, split_weights
from gpuboost.inputs.arrays import dtype_of, to_host
from gpuboost.inputs.label_encoder import LabelEncoder, label_array
from gpuboost.inputs.weights import class_weights, row_weights, to_unit_scale
from gpuboost.peers.base import ALONE, Peers, agree
from gpuboost.peers.rows import RowOrder

BLOCK_BYTES = 256 << 20
"""Columns of a matrix on a device are copied to the host in blocks of about this size."""

DIGEST_BYTES = 32
"""Rows are compared by digests of this size: no two rows that have the same are known."""


@dataclass(frozen=True)
class Sample:
    """The rows of a set that exist: those of weight 0 do not.

    Attributes
    ----------
    X : ndarray, device array or RowBlocks, shape (n_all_rows, n_features)
        The caller's matrix, which is not copied.
    rows : ndarray of int, shape (n_rows,)
        The rows of X that the sample consists of.
    target : ndarray
        Class numbers, int64 (n_rows,), or multi-label targets, bool (n_rows, n_classes).
    weights : ndarray of float64, shape (n_rows,)
        Positive.
    order : RowOrder, optional
        Where the rows stand among those of all workers; without it all rows are here.
    """

    X: Any
    rows: NDArray[np.intp]
    target: NDArray[Any]
    weights: NDArray[np.float64]
    order: RowOrder | None = None

    @property
    def peers(self) -> Peers:
        """The workers that have the rows of the set."""
        return self.order.peers if self.order else ALONE

    @property
    def row_order(self) -> RowOrder:
        """Where the rows stand among those of all workers."""
        return self.order or RowOrder.alone(len(self.rows))

    def subset(self, chosen: NDArray[np.intp]) -> Sample:
        """Return the sample of the rows ``self.rows[chosen]``."""
        order = self.order and self.order.subset(chosen)
        return replace(self, rows=self.rows[chosen], target=self.target[chosen], weights=self.weights[chosen], order=order)

    def split_weights(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the integer and real weights of the rows, see `gpuboost.fixedpoint.split_weights`."""
        return split_weights(self.weights, self.peers)

    def n_distinct(self, enough: int) -> int:
        """Return the number of distinct rows of X, or ``enough`` if there are that many.

        Unlike the number of rows it depends neither on rows that stand twice nor on the unit of the weights. Values are
        compared as the float64 that they are cut as: 0 equals -0, and missing equals missing.
        """
        seen: set[bytes] = set()
        for first in range(0, len(self.rows), enough):
            if len(seen) >= enough:
                break
            rows = self.rows[first : first + enough]
            low, high = int(rows.min()), int(rows.max())
            seen |= row_digests(to_host(self.X[low : high + 1])[rows - low])
        everyones = self.peers.gather(b"".join(sorted(seen)[:enough]), "distinct rows")
        united = {one[i : i + DIGEST_BYTES] for one in everyones for i in range(0, len(one), DIGEST_BYTES)}
        n_distinct = min(len(united), enough)
        agree(self.peers, "number of distinct rows", n_distinct)
        return n_distinct

    def fit_bins(self, max_bins: int, n_threads: int) -> BinMapper:
        """Choose the cuts on the rows of the samples of all workers, whose integer weights must have one unit.

        Of a matrix on a device, some columns at a time come to the host.
        """
        (n_rows, n_features), peers = self.X.shape, self.peers
        weights = np.zeros(n_rows, np.int64)
        weights[self.rows] = integer_weights(*self.split_weights(), peers=peers)
        fit = partial(BinMapper.fit, max_bins=max_bins, integer_weights=weights, n_threads=n_threads, peers=peers)
        if isinstance(self.X, (np.ndarray, RowBlocks)):
            mapper = fit(self.X)
            agree(peers, "cuts", mapper.cut_values, mapper.cut_offsets, mapper.has_missing)
            return mapper
        own = np.array([n_threads, n_rows * dtype_of(self.X, "X").itemsize])
        most_threads, column_bytes = peers.max(own, "threads and bytes of a column").tolist()
        width = max(most_threads, BLOCK_BYTES // max(1, column_bytes))  # the same on all workers
        return side_by_side([fit(to_host(self.X[:, first : first + width])) for first in range(0, n_features, width)])

    def problem(self, backend: Backend, mapper: BinMapper, encoder: LabelEncoder) -> tuple[Problem, bool]:
        """Load the sample on a device. Return it, and whether any of its columns tells rows apart."""
        rows, labels = None if len(self.rows) == self.X.shape[0] else self.rows, self.labels(encoder)
        data = backend.encode(mapper, self.X, rows)
        return Problem(backend, data, *labels, self.order), bool(backend.usable(data).any())

    def release(self) -> None:
        """Let go of blocks of rows, which are no caller's, once all samples of them are encoded."""
        if isinstance(self.X, RowBlocks):
            self.X.release()

    def labels(self, encoder: LabelEncoder) -> tuple[NDArray[Any], int, NDArray[np.int32], NDArray[np.float64]]:
        """Return what a `Problem` has beside the data: targets, number of classes, and weights.

        Raises
        ------
        ValueError
            If there are more rows, counted with their integer weights, than can be summed.
        """
        target = self.target if encoder.multi_label else self.target.astype(np.int32)
        frequency_weight, weight_scale = self.split_weights()
        n_rows = self.peers.sum(frequency_weight.sum(dtype=np.int64, keepdims=True), "rows of a set")
        check_size(int(n_rows[0]), len(encoder.classes))
        return target, len(encoder.classes), frequency_weight, weight_scale


def row_digests(X: NDArray[Any]) -> set[bytes]:
    """Return digests of the rows of a matrix, which are equal for equal rows."""
    with np.errstate(over="ignore", invalid="ignore"):  # of long doubles
        block = X.astype(np.float64) + 0.0  # turns -0.0 into 0.0
    block[np.isnan(block)] = np.nan  # NaN has many bit patterns
    return {hashlib.blake2b(row.tobytes(), digest_size=DIGEST_BYTES).digest() for row in block}


def side_by_side(mappers: Sequence[BinMapper]) -> BinMapper:
    """Return the cuts of a matrix from those of blocks of its columns."""
    n_cuts = np.concatenate([mapper.n_cuts for mapper in mappers])
    return BinMapper(
        cut_values=np.concatenate([mapper.cut_values for mapper in mappers]),
        cut_offsets=np.cumsum([0, *n_cuts], dtype=np.int64),
        has_missing=np.concatenate([mapper.has_missing for mapper in mappers]),
    )


def training_sample(
    X: Any, y: Any, sample_weight: Any, class_weight: Any, order: RowOrder | None = None
) -> tuple[Sample, LabelEncoder]:
    """Encode the training set: its classes are the labels of the rows that have a weight."""
    peers = order.peers if order else ALONE
    weights = row_weights(sample_weight, X.shape[0], peers=peers)
    rows = np.flatnonzero(weights)
    labels, weights = label_array(y, X.shape[0], rows=rows), weights[rows]
    encoder = LabelEncoder.fit(labels, peers=peers)
    target = encoder.encode(labels)
    if class_weight is not None:
        weights = weights * to_unit_scale(class_weights(class_weight, encoder, target, weights, peers))[target]
        kept = np.flatnonzero(weights)
        if peers.sum(np.array([len(kept)]), "rows with a weight")[0] == 0:
            raise ValueError("class_weight and sample_weight leave no row with a weight: there is nothing to learn from")
        rows, labels, weights = rows[kept], labels[kept], to_unit_scale(weights[kept], peers)
        encoder = LabelEncoder.fit(labels, peers=peers)
        target = encoder.encode(labels)
    return Sample(X, rows, target, weights, order and order.subset(rows)), encoder


def evaluation_sample(X: Any, y: Any, sample_weight: Any, encoder: LabelEncoder, name: str, peers: Peers = ALONE) -> Sample:
    """Encode an evaluation set with the classes of the training set; its weights are its own."""
    weights = row_weights(sample_weight, X.shape[0], f"sample_weight of {name}", peers)
    rows = np.flatnonzero(weights)
    target = encoder.encode(label_array(y, X.shape[0], f"y of {name}", rows), f"y of {name}")
    order = RowOrder.of(np.array([peers.rank]), np.array([len(rows)]), peers)
    return Sample(X, rows, target, weights[rows], order)


def split_off(sample: Sample, fraction: float, seed: int) -> tuple[Sample, Sample]:
    """Draw a hold-out set, class by class; every class keeps at least one row in the first, remaining part.

    The i-th row of the sample gets the i-th number of a generator; those with the largest of each class are held out, ties by
    row number. So whoever has some of the rows can tell which of them are.

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
    stratum = _strata(sample)
    sizes = _sizes(sample, stratum)
    held = np.minimum(np.floor(fraction * sizes + 0.5).astype(np.int64), np.maximum(sizes - 1, 0))
    if not held.any():
        held[sizes.argmax()] = min(1, int(sizes.max()) - 1)
    if not held.any():
        raise ValueError("there are no rows to hold out: every class has only one; pass an eval_set")
    agree(sample.peers, "rows to hold out", held)
    order = sample.row_order
    is_held = order.largest(order.random([seed, 0, HOLD_OUT]), held, stratum)
    return sample.subset(np.flatnonzero(~is_held)), sample.subset(np.flatnonzero(is_held))


def folds(sample: Sample, n_folds: int, seed: int) -> list[tuple[Sample, Sample]]:
    """Divide the rows, class by class, into folds; return the other rows and the rows of each fold.

    By the numbers of `split_off`. One row of each class is in no fold, so that every training set has all classes; a fold
    without rows is left out.

    Raises
    ------
    ValueError
        If every class has only one row.
    """
    stratum, order = _strata(sample), sample.row_order
    sizes = _sizes(sample, stratum)
    numbers = order.random([seed, 0, HOLD_OUT])
    # The rows with the largest numbers of each class: those of the first fold, of the first two, ...
    ends = [np.maximum(sizes - 1, 0) * (fold + 1) // n_folds for fold in range(n_folds)]
    agree(sample.peers, "rows of the folds", np.array(ends))
    if not ends[-1].any():
        raise ValueError("there are no rows to hold out: every class has only one")
    pairs, before = [], np.zeros(len(sample.rows), bool)
    for n_held, n_before in zip(ends, [np.zeros_like(sizes), *ends], strict=False):
        if (n_held > n_before).any():
            up_to_here = order.largest(numbers, n_held, stratum)
            is_held = up_to_here & ~before
            pairs.append((sample.subset(np.flatnonzero(~is_held)), sample.subset(np.flatnonzero(is_held))))
            before = up_to_here
    return pairs


def check_divisible(sample: Sample) -> None:
    """Raise a ValueError if no row can be held out, since every class has only one."""
    if _sizes(sample, _strata(sample)).max() < 2:
        raise ValueError("there are no rows to hold out: every class has only one")


def _strata(sample: Sample) -> NDArray[np.int64]:
    """Return what a part of the rows is drawn from one by one: the class, or nothing in a multi-label problem."""
    stratum: NDArray[np.int64] = sample.target if sample.target.ndim == 1 else np.zeros(len(sample.rows), np.int64)
    return stratum


def _sizes(sample: Sample, stratum: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of each stratum on all workers."""
    n_strata = sample.peers.max(np.array([stratum.max(initial=0)]), "strata")[0] + 1
    sizes: NDArray[np.int64] = sample.peers.sum(np.bincount(stratum, minlength=n_strata), "rows by class")
    return sizes
