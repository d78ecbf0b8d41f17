"""Features of images, and matrices whose columns are computed when they are read.

`HaarFeatures` makes columns of images; `compact` leaves those out of a fitted pipeline that its model does not use.
`ComputedMatrix` is what an estimator takes in place of an array whose values would not fit in memory.
"""

from gpuboost.binning.computed import ComputedMatrix
from gpuboost.features.compact import compact
from gpuboost.features.haar import HaarFeatures

__all__ = ["ComputedMatrix", "HaarFeatures", "compact"]
