"""ABC-Boost: the training losses that the candidates for the base class would have had."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.plotting.figure import Axes, axes_or_new, legend_beside, mark_rounds, quiet, scale_from_zero
from gpuboost.plotting.run import Run
from gpuboost.plotting.style import BLUE, ORANGE, SKY

NONE = 'the history has no losses of candidates: only ABCBoostClassifier with base_class="search" records them'


def candidate_losses(run: Run, ax: Any) -> Axes:
    """Draw how much worse the other candidates were, see `gpuboost.plotting.HistoryPlots.candidate_losses`."""
    entries = run.history.get("candidate_losses", [])
    searched = [(number, entry) for number, entry in enumerate(entries, 1) if isinstance(entry, list) and entry]
    if not searched:
        raise ValueError(NONE)
    rounds = np.array([number for number, _ in searched])
    # In percent of the loss of the best candidate; multiples of 0 are infinite, and not drawn.
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = [100 * (np.array(losses) / min(losses) - 1) for _, losses in searched]
    others = [np.delete(one, int(np.argmin(losses))) for one, (_, losses) in zip(excess, searched, strict=True)]
    axes = axes_or_new(ax, 6.4, 3.8)
    x, y = np.repeat(rounds, [len(one) for one in others]), np.concatenate(others)
    axes.scatter(x, y, s=5, color=SKY, linewidths=0, rasterized=True, label="a candidate")
    lines = (("worst candidate", np.max, BLUE, "-"), ("median candidate", np.median, ORANGE, "--"))
    for label, of, color, style in lines:
        values = [float(of(one)) if len(one) else np.nan for one in others]
        axes.plot(rounds, values, color=color, linestyle=style, linewidth=1.3, label=label)
    axes.set(
        title=f"Base classes that were not chosen ({len(searched)} searches)",
        xlabel="round",
        ylabel="training loss above that of\nthe chosen base class, %",
        xlim=(min(1, run.n_rounds - 1), run.n_rounds + 1),
    )
    if run.kept is not None:
        mark_rounds(axes, run.kept, run.n_rounds)
    scale_from_zero(axes, y)
    legend_beside(axes)
    quiet(axes)
    return axes
