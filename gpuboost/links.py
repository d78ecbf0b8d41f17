"""How scores become log probabilities: said as data, so that exported models can say it, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.exactmath import log_sigmoid

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Softmax:
    """``p_k`` is proportional to ``exp(F_k / divisor)``."""

    divisor: int = 1

    def log_probabilities(self, scores: Floats) -> Floats:
        """Return the logarithms up to a constant for each row, shape (n_rows, n_classes)."""
        log_p: Floats = scores / self.divisor
        return log_p


@dataclass(frozen=True)
class Sigmoid:
    """Every class is a binary problem: ``p_k`` is proportional to ``1 / (1 + exp(offset - 2 F_k))``."""

    offset: float = 0.0

    def log_probabilities(self, scores: Floats) -> Floats:
        """Return the logarithms up to a constant for each row, shape (n_rows, n_classes)."""
        return log_sigmoid(2.0 * scores - self.offset)


Link: TypeAlias = Softmax | Sigmoid
