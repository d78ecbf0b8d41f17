"""The columns that matter most."""

from __future__ import annotations

from typing import Any

from gpuboost.plotting.figure import Axes, axes_or_new
from gpuboost.plotting.labels import PLAIN, column_names, percent_text, text
from gpuboost.plotting.style import BLUE, SMALL
from gpuboost.plotting.trees import check_trees


def importances(model: Any, top: int, ax: Any) -> Axes:
    """Draw the largest importances as bars, see `gpuboost.plotting.Plots.importances`."""
    from gpuboost.inputs.parameters import check_integer

    check_trees(model)
    check_integer("top", top, 1)
    shares, names = model.feature_importances_, column_names(model)
    first = (-shares).argsort(kind="stable")[:top]
    axes = axes_or_new(ax, 6.4, 0.24 * len(first) + 1.2)
    bars = axes.barh(range(len(first)), 100 * shares[first], color=BLUE, height=0.7)
    axes.bar_label(bars, [percent_text(share) for share in shares[first]], padding=3, fontsize=SMALL)
    axes.set_yticks(range(len(first)), [text(names[i]) for i in first], fontsize=SMALL + 1, **PLAIN)
    axes.invert_yaxis()
    axes.margins(x=0.1, y=0.02)
    rest = len(shares) - len(first)
    what = "Importance of the columns" if rest == 0 else f"The {len(first)} most important of {len(shares)} columns"
    others = f" (the others: {percent_text(max(0.0, 1.0 - shares[first].sum()))})" if rest and shares.any() else ""
    axes.set(title=what, xlabel=f"% of the edge that all cuts have won{others}")
    axes.spines[["top", "right"]].set_visible(False)
    return axes
