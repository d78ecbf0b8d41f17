"""The part of the contract of a backend that brings rows in and scores them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.early_exit import ExitRule
from gpuboost.backends.statistics import Device
from gpuboost.binning import BinMapper, Binned, bin_block
from gpuboost.ensemble import Ensemble


class ScoresRows(ABC):
    """What loads rows, and scores them by as many trees as they need; see `gpuboost.backends.base` for the rules."""

    @abstractmethod
    def load(self, matrix: Binned) -> Device:
        """Return ``matrix`` made ready for training and prediction on the device. It says its ``n_rows``.

        A backend may leave a `gpuboost.binning.StoredMatrix` in its file, and read it anew whenever its codes are needed.
        """

    def bin_block(self, values: Floats, cut_values: Floats, cut_offsets: IntArray, out: NDArray[np.uint8]) -> None:
        """Write the codes of a block of columns, see `gpuboost.binning.bin_block`."""
        bin_block(values, cut_values, cut_offsets, out)

    def encode(self, mapper: BinMapper, X: Any, rows: NDArray[np.intp] | None = None) -> Device:
        """Return the codes of X, or of ``X[rows]``, ready for training and prediction: ``load(mapper.transform(X))``.

        X is a host matrix of a real dtype, a `gpuboost.binning.ComputedMatrix`, or an array that the backend reads where it is.
        """
        return self.load(mapper.transform(X, rows=rows, bin_block=self.bin_block))

    def encode_to_score(self, mapper: BinMapper, X: Any) -> Device:
        """Return the codes of X, see `encode`, ready for prediction alone: a backend may leave out what only training needs."""
        return self.encode(mapper, X)

    @abstractmethod
    def predict_until(self, ensemble: Ensemble, data: Device, scores: Device, rule: ExitRule) -> Device:
        """Add the values of the trees to ``scores``, tree by tree, as `predict` does, until each row leaves by the rule.

        The leader and the differences are those of the float64 scores that `predict` would have at the checkpoint: so a row
        leaves at the same one on every backend, with the same scores. ``scores`` begin as zeros.

        Returns
        -------
        Device array of int32, shape (n_rows,)
            The checkpoint at which a row has left.
        """
