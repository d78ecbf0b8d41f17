"""The rule by which rows leave an ensemble early."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray


class ExitRule(NamedTuple):
    """When a row has seen enough trees: at a checkpoint where its leading class is far enough ahead of all others.

    Attributes
    ----------
    trees : ndarray of int64, shape (n_checkpoints,)
        Ascending; a checkpoint comes after so many trees. The last is the number of all trees, where every row ends.
    margins : ndarray of float64, shape (n_checkpoints, n_classes, n_classes), or 1 in the place of any of them
        ``margins[c, a, b]`` is what the score of the leader a, the first largest, must exceed that of b by at checkpoint c. An
        axis of length 1 stands for all of its entries, as everywhere in NumPy.
    """

    trees: IntArray
    margins: Floats

    def leaves(self, scores: Floats, checkpoint: int) -> NDArray[np.bool_]:
        """Return which rows of ``scores``, (n_rows, n_classes), leave at a checkpoint."""
        n_rows, n_classes = scores.shape
        if checkpoint == len(self.trees) - 1:
            return np.ones(n_rows, np.bool_)
        leader = scores.argmax(axis=1)
        margins = self.margins[checkpoint if len(self.margins) > 1 else 0]
        needed = np.broadcast_to(margins, (n_classes, n_classes))[leader]
        is_ahead = scores[np.arange(n_rows), leader][:, None] - scores > needed
        is_ahead[np.arange(n_rows), leader] = True
        everywhere: NDArray[np.bool_] = is_ahead.all(axis=1)
        return everywhere
