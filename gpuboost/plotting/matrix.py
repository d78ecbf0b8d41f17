"""A matrix over classes: shaded cells with text, which stay readable with many classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.plotting.figure import Axes
from gpuboost.plotting.labels import PLAIN, class_texts
from gpuboost.plotting.style import SMALL

MOST_WITH_TEXT = 30
"""Cells of larger matrices are only shaded."""
MOST_TICKS = 30
LETTER = 0.08
"""Inches of a letter of the labels."""


def side(n_classes: int) -> float:
    """Return the width in inches that a matrix of so many classes wants."""
    return float(np.clip(0.62 * n_classes, 3.2, 9.0))


def draw_matrix(
    axes: Axes,
    values: NDArray[np.float64],
    classes: tuple[Sequence[Any], Sequence[Any]],
    cell_text: Callable[[int, int], str],
    *,
    cmap: str,
    norm: Any,
    **bar: Any,
) -> None:
    """Draw a matrix of true classes (rows) and predicted ones (columns).

    Parameters
    ----------
    axes : Axes
    values : ndarray of float64, shape (n_true, n_predicted)
        What is shaded.
    classes : pair of sequences
        The labels of the rows and of the columns.
    cell_text : callable
        The text of the cell (row, column); "" for none.
    cmap, norm
        The colour map, from light to dark, and the norm of the shading.
    **bar
        Of the colour bar beside the matrix: its label, and what else `matplotlib.figure.Figure.colorbar` takes.
    """
    image = axes.imshow(values, cmap=cmap, norm=norm, aspect="equal", interpolation="nearest")
    n = max(values.shape)
    texts = [class_texts(labels) for labels in classes]
    ticks = [np.arange(0, len(labels), -(-len(labels) // MOST_TICKS)) for labels in texts]
    rotation = 90 if max(map(len, texts[1])) * LETTER > side(n) / n * -(-n // MOST_TICKS) else 0
    size = SMALL + 1 if n <= 15 else SMALL
    axes.set_xticks(ticks[1], [texts[1][i] for i in ticks[1]], rotation=rotation, fontsize=size, **PLAIN)
    axes.set_yticks(ticks[0], [texts[0][i] for i in ticks[0]], fontsize=size, **PLAIN)
    axes.set(xlabel="predicted class", ylabel="true class")
    axes.tick_params(length=2)
    if n <= MOST_WITH_TEXT:
        for cell in np.ndindex(*values.shape):
            dark = float(norm(values[cell])) > 0.55
            size = SMALL if n <= 15 else SMALL * 15 / n + 1.5
            axes.text(
                cell[1], cell[0], cell_text(*cell), ha="center", va="center", fontsize=size, color="white" if dark else "black"
            )
    figure = axes.get_figure()
    assert figure is not None
    figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, **bar).outline.set_visible(False)
