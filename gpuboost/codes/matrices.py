"""Codes: matrices (n_classes, n_columns) of -1, 0 and 1, and the distance between their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpuboost.inputs.label_values import label_list
from gpuboost.messages import did_you_mean

Code = NDArray[np.int8]
CodeName = Literal["all-pairs", "one-vs-all", "dense", "sparse", "exhaustive"]

CODES = ("all-pairs", "one-vs-all", "dense", "sparse", "exhaustive")
RANDOM_CODES = ("dense", "sparse")

MAX_EXHAUSTIVE = 12
"""An exhaustive code of more classes has thousands of columns."""

DRAWS = 10_000
WORK = 5 * 10**8
"""As many random matrices are drawn, but of so many classes that their distances take more multiplications: at least 100."""

ENTRIES = {
    "dense": np.array([-1, 1, -1, 1], np.int8),
    "sparse": np.array([-1, 0, 0, 1], np.int8),
}
"""An entry of a random matrix is each of these with probability 1/4."""


def code_matrix(code: CodeName | Any, classes: Sequence[Any] | NDArray[Any], seed: int = 0) -> Code:
    """Return the coding matrix of a name, or check one.

    Parameters
    ----------
    code : str or array-like, shape (n_classes, n_columns)
        - "one-vs-all": column k is class k against all others.
        - "all-pairs": a column for every two classes, the first against the second.
        - "dense": 10 log2(n_classes) random columns of -1 and 1, the best of 10,000 draws by `minimum_distance`.
        - "sparse": 15 log2(n_classes) random columns, half of whose entries are 0, drawn in the same way.
        - "exhaustive": all ``2**(n_classes - 1) - 1`` columns of -1 and 1 that differ by more than the sign.
        - a matrix of -1, 0 and 1 with its rows in the order of ``classes``.

        Two classes have the one column (1, -1) whatever the name. Random columns all differ, by more than the sign; where
        there are no more of them than would be drawn, the code is all of them.
    classes : sequence, shape (n_classes,)
        The labels, at least two; messages name them.
    seed : int, default 0
        Of the random codes.

    Returns
    -------
    ndarray of int8, shape (n_classes, n_columns)

    Raises
    ------
    ValueError, TypeError
        If there is no such code, an exhaustive one would be too large, or a matrix is no code: see `check_code`.
    """
    if not isinstance(code, str):
        return check_code(code, classes)
    if code not in CODES:
        listed = ", ".join(f'"{name}"' for name in CODES)
        raise ValueError(f"code must be one of {listed}, or a matrix, got {code!r}{did_you_mean(code, CODES)}")
    n_classes = len(classes)
    if n_classes < 2:
        raise ValueError(f"a code needs at least two classes, got {label_list(classes)}")
    if n_classes == 2:
        return np.array([[1], [-1]], np.int8)
    if code == "one-vs-all":
        return 2 * np.eye(n_classes, dtype=np.int8) - np.int8(1)
    if code == "all-pairs":
        return all_pairs(n_classes)
    return exhaustive(n_classes) if code == "exhaustive" else best_of_draws(code, n_classes, seed)


def all_pairs(n_classes: int) -> Code:
    """Return the code with a column for every two classes, in the order of the first, then of the second."""
    pairs = list(combinations(range(n_classes), 2))
    matrix = np.zeros((n_classes, len(pairs)), np.int8)
    for s, (first, second) in enumerate(pairs):
        matrix[first, s], matrix[second, s] = 1, -1
    return matrix


def exhaustive(n_classes: int) -> Code:
    """Return all columns of -1 and 1 whose first entry is 1, but for the one that has no -1 (Dietterich and Bakiri 1995)."""
    if n_classes > MAX_EXHAUSTIVE:
        raise ValueError(
            f"an exhaustive code of {n_classes} classes has 2**{n_classes - 1} - 1 columns; up to {MAX_EXHAUSTIVE} classes are "
            'taken, and code="dense" serves more'
        )
    numbers = np.arange(2 ** (n_classes - 1) - 1)
    bits = numbers >> np.arange(n_classes - 1)[::-1, None] & 1
    return np.vstack([np.ones_like(numbers), 2 * bits - 1]).astype(np.int8)


def best_of_draws(code: str, n_classes: int, seed: int) -> Code:
    """Return the random matrix with the largest minimum distance, the first of equals, of many (Allwein et al., section 6)."""
    if code == "dense":
        n_columns, n_possible = _ceil_log2(n_classes, 10), 2 ** (n_classes - 1) - 1
    else:
        n_columns, n_possible = _ceil_log2(n_classes, 15), (3**n_classes - 2 ** (n_classes + 1) + 1) // 2
    if n_possible <= n_columns:
        return exhaustive(n_classes) if code == "dense" else all_columns(n_classes)
    columns = random_columns(code, n_classes, seed)
    best, best_distance = np.empty((0, 0), np.int8), -1.0
    n_left = max(100, min(DRAWS, WORK // (n_classes**2 * n_columns)))
    while n_left > 0 or best_distance < 0:
        n_left -= 1
        matrix = draw(columns, n_columns)
        if (distance := minimum_distance(matrix)) > best_distance and matrix.any(axis=1).all():
            best, best_distance = matrix, distance
    return np.ascontiguousarray(best)


def draw(columns: Iterator[bytes], n_columns: int) -> Code:
    """Return the matrix of the next columns that differ."""
    chosen: dict[bytes, None] = {}
    while len(chosen) < n_columns:
        chosen[next(columns)] = None
    return np.frombuffer(b"".join(chosen), np.int8).reshape(n_columns, -1).T


def random_columns(code: str, n_classes: int, seed: int) -> Iterator[bytes]:
    """Yield random columns that have both signs, each with the sign that makes its first entry 1 (behind zeros)."""
    rng = np.random.default_rng(seed)
    while True:
        block = ENTRIES[code][rng.integers(4, size=(max(256, 2**20 // n_classes), n_classes), dtype=np.uint8)]
        block = block[(block == 1).any(axis=1) & (block == -1).any(axis=1)]
        first = np.take_along_axis(block, (block != 0).argmax(axis=1)[:, None], axis=1)
        data = (block * first).tobytes()
        yield from (data[begin : begin + n_classes] for begin in range(0, len(data), n_classes))


def all_columns(n_classes: int) -> Code:
    """Return all columns of -1, 0 and 1 with both signs that differ by more than the sign."""
    digits = np.indices((3,) * n_classes, np.int8).reshape(n_classes, -1) - np.int8(1)
    first = np.take_along_axis(digits, (digits != 0).argmax(axis=0)[None], axis=0)[0]
    return np.ascontiguousarray(digits[:, (first == 1) & (digits == -1).any(axis=0)])


def minimum_distance(matrix: Any) -> float:
    """Return the least distance of two rows of a code, the larger the better the code corrects wrong binary classifiers.

    A column in which two rows have opposite signs counts 1, one in which either has a zero 1/2 (Allwein et al., section 3).

    Parameters
    ----------
    matrix : array-like, shape (n_classes, n_columns)
        Of -1, 0 and 1.

    Returns
    -------
    float
        A multiple of 1/2. For k classes it is 2 for "one-vs-all", ``(k * (k - 1) / 2 + 1) / 2`` for "all-pairs" and
        ``2**(k - 2)`` for "exhaustive", for three classes or more.
    """
    code = np.asarray(matrix, np.float32)  # the products are small integers, which it holds exactly
    n_columns = code.shape[1]
    products = code @ code.T
    np.fill_diagonal(products, -n_columns)
    distance: float = 0.5 * (n_columns - int(products.max()))
    return distance


def check_code(matrix: Any, classes: Sequence[Any] | NDArray[Any]) -> Code:
    """Return a matrix as a code.

    Raises
    ------
    TypeError
        If it does not hold numbers.
    ValueError
        If it has not one row for each class, or no columns; an entry is not -1, 0 or 1; a column lacks one of the signs, so
        that it is no binary problem; a class is in no column; or two classes have the same row, so that nothing tells them
        apart.
    """
    try:
        given = np.asarray(matrix)
    except ValueError as error:
        raise ValueError(f"code must be a name or a matrix of -1, 0 and 1: {error}") from error
    labels = label_list(classes)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"code must be a name or a matrix of -1, 0 and 1, got {matrix!r:.80}")
    if given.ndim != 2 or len(given) != len(labels) or not given.shape[1]:
        raise ValueError(
            f"code must have a row for each of the {len(labels)} classes {labels[:10]!r:.200} and at least one column, "
            f"got the shape {given.shape}"
        )
    if (wrong := np.argwhere((given != 0) & (np.abs(given) != 1))).size:
        k, s = wrong[0].tolist()
        raise ValueError(f"code must consist of -1, 0 and 1, got {given[k, s]} in row {k} (class {labels[k]!r}), column {s}")
    code = given.astype(np.int8)
    for sign in (1, -1):
        if (without := np.flatnonzero(~(code == sign).any(axis=0))).size:
            raise ValueError(f"code has no {sign} in column {without[0]}, which needs both signs to be a binary problem")
    if (empty := np.flatnonzero(~code.any(axis=1))).size:
        raise ValueError(f"code has only zeros in row {empty[0]}: the class {labels[empty[0]]!r} would be in no binary problem")
    first_of: dict[bytes, int] = {}
    for k, row in enumerate(code):
        first = first_of.setdefault(row.tobytes(), k)
        if first != k:
            raise ValueError(
                f"code has the same rows {first} and {k}: nothing would tell the class {labels[first]!r} from {labels[k]!r}"
            )
    return code


def _ceil_log2(n_classes: int, factor: int) -> int:
    """Return ``ceil(factor * log2(n_classes))``, in integers."""
    power: int = n_classes**factor
    return (power - 1).bit_length()
