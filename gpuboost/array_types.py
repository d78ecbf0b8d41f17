"""The arrays that most modules speak of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
IntArray = NDArray[np.int64]
