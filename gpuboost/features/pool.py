"""The two-, three- and four-rectangle features of Viola and Jones, at every place and scale, and a draw of them.

A feature is a grid of equal cells with a sign each: the sums over the cells times their signs, added (Viola and Jones, "Robust
real-time face detection", 2004, figure 1). The middle of three rectangles counts twice, so that all features of an even image
are 0. They are numbered by kind, then channel, then cell height, top, cell width, left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.rectangles import ImageShape, RectangleFeatures

WORDS_AT_ONCE = 4096


class Kind(NamedTuple):
    """A grid of cells: its name, and signs whose products are those of the cells."""

    name: str
    down: tuple[int, ...]
    across: tuple[int, ...]


KINDS = (
    Kind("two_across", (1,), (1, -1)),
    Kind("two_down", (1, -1), (1,)),
    Kind("three_across", (1,), (-1, 2, -1)),
    Kind("three_down", (-1, 2, -1), (1,)),
    Kind("four", (1, -1), (1, -1)),
)
"""Left minus right, top minus bottom, twice the middle minus both sides, and one diagonal minus the other."""

COLUMNS = ("kind", "channel", "cell_height", "top", "cell_width", "left")
"""The columns of an array of rectangles."""


def places(n_pixels: int, n_cells: int) -> IntArray:
    """Return all (cell size, start) of ``n_cells`` cells side by side within ``n_pixels``: int64 (n, 2)."""
    sizes = np.arange(1, n_pixels // n_cells + 1)
    n_starts = n_pixels - n_cells * sizes + 1
    starts = np.arange(n_starts.sum()) - np.repeat(np.cumsum(n_starts) - n_starts, n_starts)
    return np.stack([np.repeat(sizes, n_starts), starts], axis=1)


def n_places(n_pixels: int, n_cells: int) -> int:
    """Return how many `places` there are."""
    n = n_pixels // n_cells
    return n * (n_pixels + 1) - n_cells * n * (n + 1) // 2


def n_of_kinds(shape: ImageShape) -> list[int]:
    """Return how many features of each kind an image has."""
    return [
        shape.n_channels * n_places(shape.height, len(kind.down)) * n_places(shape.width, len(kind.across)) for kind in KINDS
    ]


def draw(shape: ImageShape, n_features: int, seed: int) -> IntArray:
    """Draw features without repetition, each as likely as any other; all of them if there are no more.

    A 64-bit word w of NumPy's PCG64 stands for the feature number ``floor(w n / 2**64)`` of n. The first ``n_features`` that
    differ are taken, in the order of their numbers.

    Returns
    -------
    ndarray of int64, shape (n, 6)
        With the columns `COLUMNS`.
    """
    n = sum(n_of_kinds(shape))
    if n <= n_features:
        return rectangles(shape, np.arange(n))
    chosen: set[int] = set()
    for word in _words(seed):
        chosen.add(word * n >> 64)
        if len(chosen) == n_features:
            break
    return rectangles(shape, np.array(sorted(chosen), np.int64))


def _words(seed: int) -> Iterator[int]:
    generator = np.random.PCG64(seed)
    while True:
        yield from generator.random_raw(WORDS_AT_ONCE).tolist()


def rectangles(shape: ImageShape, numbers: IntArray) -> IntArray:
    """Return the features with some ascending numbers: int64 (n, 6), with the columns `COLUMNS`."""
    ends = np.cumsum(n_of_kinds(shape))
    found = [np.empty((0, len(COLUMNS)), np.int64)]
    for k, kind in enumerate(KINDS):
        own = numbers[(numbers >= ends[k] - n_of_kinds(shape)[k]) & (numbers < ends[k])]
        if own.size:
            down, across = places(shape.height, len(kind.down)), places(shape.width, len(kind.across))
            rest, x = np.divmod(own - (ends[k] - n_of_kinds(shape)[k]), len(across))
            channel, y = np.divmod(rest, len(down))
            found.append(np.column_stack([np.full(own.size, k), channel, down[y], across[x]]))
    return np.concatenate(found)


def corners(shape: ImageShape, chosen: IntArray) -> RectangleFeatures:
    """Return some rectangles as sums of corners of an integral image."""
    n_of_feature, corner, coefficient = [0], [], []
    for kind, channel, cell_height, top, cell_width, left in chosen.tolist():
        ys, y_coefficients = _steps(KINDS[kind].down, cell_height, top)
        xs, x_coefficients = _steps(KINDS[kind].across, cell_width, left)
        rows = channel * (shape.height + 1) + ys
        corner.append(np.add.outer(rows * (shape.width + 1), xs).ravel())
        coefficient.append(np.multiply.outer(y_coefficients, x_coefficients).ravel())
        n_of_feature.append(corner[-1].size)
    return RectangleFeatures(
        shape,
        np.cumsum(n_of_feature, dtype=np.int32),
        np.concatenate([np.empty(0, np.int64), *corner]).astype(np.int32),
        np.concatenate([np.empty(0, np.int64), *coefficient]).astype(np.int32),
    )


def _steps(signs: tuple[int, ...], cell: int, start: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where cells begin and end, and by how much the sign falls there: sum s_j (I_j+1 - I_j) = sum (s_j-1 - s_j) I_j."""
    falls = -np.diff(np.array(signs), prepend=0, append=0)
    return start + cell * np.arange(len(signs) + 1), falls


def names(chosen: IntArray, shape: ImageShape) -> list[str]:
    """Return a name for each rectangle: its kind, the channel if there are several, its top left corner and size in pixels."""
    found = []
    for kind, channel, cell_height, top, cell_width, left in chosen.tolist():
        of_channel = f"_c{channel}" if shape.n_channels > 1 else ""
        height, width = cell_height * len(KINDS[kind].down), cell_width * len(KINDS[kind].across)
        found.append(f"{KINDS[kind].name}{of_channel}_y{top}_x{left}_h{height}_w{width}")
    return found
