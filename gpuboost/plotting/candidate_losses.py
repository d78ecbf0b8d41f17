"""ABC-Boost: the training losses that the candidates for the base class would have had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuboost.plotting.figure import axes_or_new
from gpuboost.plotting.run import Run
from gpuboost.plotting.style import BLUE, ORANGE, SKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NONE = 'the history has no losses of candidates: only ABCBoostClassifier with base_class="search" records them'


def candidate_losses(run: Run, ax: Any) -> Axes:
    """Draw how much worse the other candidates were, see `gpuboost.plotting.HistoryPlots.candidate_losses`."""
    entries = run.history.get("candidate_losses", [])
    searched = [(number, entry) for number, entry in enumerate(entries, 1) if isinstance(entry, list) and entry]
    if not searched:
        raise ValueError(NONE)
    rounds = np.array([number for number, _ in searched])
    # The excess over the best candidate, in percent of its loss; a loss of 0 has no multiples.
    excess = [
        100 * (np.array(losses) / (min(losses) or np.inf) - 1 if min(losses) else np.zeros(len(losses)))
        for _, losses in searched
    ]
    middle, worst = [float(np.median(one)) for one in excess], [float(one.max()) for one in excess]
    axes = axes_or_new(ax, 6.4, 3.8)
    axes.fill_between(rounds, 0.0, worst, color=SKY, alpha=0.35, linewidth=0, label="all candidates")
    axes.plot(rounds, worst, color=BLUE, linewidth=1.2, label="worst candidate")
    axes.plot(rounds, middle, color=ORANGE, linestyle="--", linewidth=1.4, label="median candidate")
    axes.set(
        title=f"What the search for the base class gains ({len(searched)} searches)",
        xlabel="round",
        ylabel="training loss above that of\nthe chosen base class, %",
        xlim=(min(1, run.n_rounds - 1), run.n_rounds),
    )
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
