"""Where pictures are drawn: a given Axes, or a new figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.lines import Line2D
else:  # what the annotations of pictures name, while matplotlib is not loaded
    Axes = Figure = Line2D = Any

LOG_FROM = 20.0
"""Positive values that differ by this factor are drawn on a logarithmic scale."""

MISSING = "plots need matplotlib, which is not installed: pip install matplotlib"


def new_figure(width: float, height: float) -> Figure:
    """Return a new figure of pyplot, so that notebooks show it; sizes in inches.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(MISSING) from error
    return pyplot.figure(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Any, width: float, height: float) -> Axes:
    """Return ``ax``, or the Axes of a new figure.

    Raises
    ------
    TypeError
        If ``ax`` is no matplotlib Axes.
    ImportError
        If matplotlib is not installed.
    """
    if ax is None:
        return new_figure(width, height).add_subplot()
    try:
        from matplotlib.axes import Axes
    except ImportError as error:
        raise ImportError(MISSING) from error
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be one matplotlib Axes, got {type(ax).__name__}")
    return ax


def scale_from_zero(axes: Axes, values: NDArray[np.float64]) -> None:
    """Let the y axis begin at 0, or make it logarithmic if a linear one would hide most of the positive values.

    Zeros are below a logarithmic axis: a line that falls to 0 leaves the picture. Negative values are left as they are.
    """
    finite = values[np.isfinite(values)]
    positive = finite[finite > 0]
    if len(positive) < len(finite) - (finite == 0).sum() or not len(positive):
        return
    least, most = float(positive.min()), float(positive.max())
    if most < LOG_FROM * least:
        axes.set_ylim(bottom=0.0)
        return
    axes.set_yscale("log", nonpositive="clip")
    axes.set_ylim(least / (most / least) ** 0.05, most * (most / least) ** 0.05)
    if most / least < 1e3:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


def legend_beside(axes: Axes, **how: Any) -> Any:
    """Draw a legend on the right of the picture."""
    return axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False, **how)


def mark_rounds(axes: Axes, n_kept: int, n_rounds: int, word: str = "kept") -> Line2D:
    """Mark the last round that is kept, or would be; return the line, whose label says so."""
    label = f"{word}: {n_kept} of {n_rounds} rounds"
    return axes.axvline(n_kept, color="0.35", linestyle=":", linewidth=1.4, label=label)


def quiet(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Draw light grid lines below everything, and no frame above and on the right."""
    axes.grid(axis=grid, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
