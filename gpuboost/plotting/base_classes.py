"""ABC-Boost: which class was the base class of every round."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.plotting.figure import Axes, axes_or_new, mark_rounds, quiet
from gpuboost.plotting.labels import PLAIN, percent_text
from gpuboost.plotting.run import Run
from gpuboost.plotting.style import BLUE, SMALL

NONE = "the history has no base class: only ABCBoostClassifier with a base_class has one"


def base_classes(run: Run, ax: Any) -> Axes:
    """Draw the base class by rounds, see `gpuboost.plotting.HistoryPlots.base_classes`."""
    numbers = run.numbers("base_class") if "base_class" in run.history else np.zeros(0)
    rounds = np.flatnonzero(~np.isnan(numbers)) + 1
    if not len(rounds):
        raise ValueError(NONE)
    chosen = numbers[rounds - 1].astype(int)
    classes = run.classes or [str(k) for k in range(chosen.max() + 1)]
    axes = axes_or_new(ax, 6.4, max(2.4, 0.22 * len(classes) + 1.2))
    size = float(np.clip(2000 / run.n_rounds, 3, 40))
    axes.scatter(rounds, chosen, s=size, marker="|" if run.n_rounds > 60 else "o", color=BLUE, linewidths=0.9)
    kept = chosen if run.kept is None else chosen[rounds <= run.kept]
    shares = np.bincount(kept, minlength=len(classes)) / max(len(kept), 1)
    axes.set_yticks(range(len(classes)), classes, fontsize=SMALL + 1 if len(classes) <= 30 else SMALL - 2, **PLAIN)
    beside = axes.secondary_yaxis("right")
    beside.set_yticks(range(len(classes)), [percent_text(share) for share in shares], fontsize=SMALL)
    beside.set_ylabel("share of the rounds" if run.kept is None else "share of the\nkept rounds", labelpad=10.0)
    beside.tick_params(length=0)
    beside.spines["right"].set_visible(False)
    axes.set(title="Base class of every round", xlabel="round", ylabel="class", xlim=(0, run.n_rounds + 1))
    axes.set_ylim(len(classes) - 0.4, -0.6)
    if run.kept is not None:
        line = mark_rounds(axes, run.kept, run.n_rounds)
        axes.set_xlabel("round", loc="left")  # the legend stands on its right
        axes.legend(handles=[line], loc="upper right", bbox_to_anchor=(1.0, 0.0), borderaxespad=1.6, frameon=False)
    quiet(axes, "y")
    return axes
