"""Binning: from feature values to uint8 codes, the only form in which learners and predictions see a feature.

`BinMapper.fit` chooses the cuts of every feature, and `BinMapper.transform` turns values into codes,

    code(x) = 0 if x is NaN, else 1 + number of cuts <= x          (compared in float64),

so a value that equals a cut lies on its right. Training and prediction walk the same codes and cannot differ.

A feature with at most ``max_bins`` distinct values is cut between any two neighbours, so that the search for
the best stump is exhaustive (Kégl, "The return of AdaBoost.MH: multi-class Hamming trees", 2014). A feature
with more is cut at weighted quantiles. They are exact: weights are integers, and so is all that decides. So
the cuts depend neither on the order of the rows, nor on the workers that hold them, nor on the unit of the
weights, and a row of weight 2 is the same as two rows.

`mapper.py` is `BinMapper`; `columns.py` reads the columns of a matrix, which may lie in blocks of rows (`row_blocks.py`) or
be computed when they are read (`computed.py`); `quantiles.py` chooses where bins start, `codes.py` has what codes are,
`stored.py` those that lie in a file. Where the rows lie on several workers (`workers.py`), or in chunks of which one at a time
is in memory (`chunks.py`), `rounds.py` finds the same cuts, from what `outline.py` says of a column of which not all values are
known.
"""

from gpuboost.binning.codes import MISSING_CODE, BinBlock, Binned, BinnedMatrix, bin_block
from gpuboost.binning.computed import ComputedMatrix
from gpuboost.binning.mapper import BinMapper
from gpuboost.binning.quantiles import MAX_VALUE_BINS, midpoint
from gpuboost.binning.row_blocks import RowBlocks
from gpuboost.binning.stored import StoredMatrix

__all__ = [
    "MAX_VALUE_BINS",
    "MISSING_CODE",
    "BinBlock",
    "BinMapper",
    "Binned",
    "BinnedMatrix",
    "ComputedMatrix",
    "RowBlocks",
    "StoredMatrix",
    "bin_block",
    "midpoint",
]
