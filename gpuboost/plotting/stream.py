"""FilterBoost by rounds: the error and its bound beside the rows that were drawn, as in figures 8 to 14 of Bradley (2008)."""

from __future__ import annotations

import numpy as np

from gpuboost.plotting.figure import Axes, Figure, mark_rounds, new_figure, quiet, scale_from_zero
from gpuboost.plotting.learning_curves import SETS, TRAINING
from gpuboost.plotting.run import Run
from gpuboost.plotting.style import GREY, LINE_STYLES

NEEDED = ("train_error", "bound", "draws")


def stream(run: Run) -> Figure:
    """Draw both panels, see `gpuboost.plotting.HistoryPlots.stream`."""
    lacking = [name for name in NEEDED if name not in run.history]
    if lacking:
        raise ValueError(
            f"the history has no {lacking[0]!r}: only boosters that draw their rows, FilterBoost, have such a picture"
        )
    figure = new_figure(8.6, 3.6)
    left, right = figure.subplots(1, 2)
    draw_errors(left, run)
    draw_rows(right, run)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def draw_errors(axes: Axes, run: Run) -> None:
    """Draw the errors of all sets and the bound."""
    rounds, drawn = np.arange(1, run.n_rounds + 1), []
    for i, (name, key) in enumerate(run.series("error").items()):
        values = 100 * run.numbers(key)
        is_training = name == "training"
        label = "rows drawn, before they are trained on" if is_training else name
        color, style = (TRAINING, "-") if is_training else (SETS[(i - 1) % len(SETS)], LINE_STYLES[(i - 1) % len(LINE_STYLES)])
        axes.plot(rounds, values, color=color, linestyle=style, linewidth=1.0 if is_training else 1.6, label=label)
        drawn.append(values)
    bound = 100 * run.numbers("bound")
    axes.plot(rounds, bound, color=GREY, dashes=(4, 2), linewidth=1.2, label="bound $2 p_t$")
    if run.kept is not None:
        mark_rounds(axes, run.kept, run.n_rounds)
    axes.set(
        title="Error and its bound", xlabel="round", ylabel="% of the weight", xlim=(min(1, run.n_rounds - 1), run.n_rounds)
    )
    scale_from_zero(axes, np.concatenate([*drawn, np.minimum(bound, 100.0)]))
    axes.set_ylim(top=min(axes.get_ylim()[1], 105.0))
    quiet(axes)


def draw_rows(axes: Axes, run: Run) -> None:
    """Draw how many rows each round has drawn."""
    rounds, draws = np.arange(1, run.n_rounds + 1), run.numbers("draws")
    axes.plot(rounds, draws, color=TRAINING, linewidth=1.0)
    total = np.nansum(draws)
    axes.set(
        title=f"Rows drawn: {total:,.0f}", xlabel="round", ylabel="rows a round", xlim=(min(1, run.n_rounds - 1), run.n_rounds)
    )
    scale_from_zero(axes, draws)
    quiet(axes)
