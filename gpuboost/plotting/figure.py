"""Where pictures are drawn: a given Axes, or a new figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MISSING = "plots need matplotlib, which is not installed: pip install 'gpuboost-ml[plot]'"


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
