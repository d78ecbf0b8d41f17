"""Loss, error, cost and edge by rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.plotting.figure import Axes, Figure, axes_or_new, legend_beside, mark_rounds, new_figure, quiet, scale_from_zero
from gpuboost.plotting.run import Run
from gpuboost.plotting.style import GREEN, LINE_STYLES, ORANGE, PINK, RED, SKY
from gpuboost.stopping import SmoothedError

TITLES = {"loss": "Loss", "error": "Error", "cost": "Mean cost", "edge": "Edge of the weak learner"}
UNITS = {
    "loss": "share of the empty model's",
    "error": "% of the weight",
    "cost": "per row, in units of the costs",
    "edge": "edge",
}
TRAINING = "#004B75"
SETS = (ORANGE, GREEN, PINK, SKY, RED)


def learning_curves(run: Run, what: str | None, smoothed: bool | None, ax: Any) -> Axes | Figure:
    """Draw a quantity, or all in a figure of their own; see `gpuboost.plotting.HistoryPlots.learning_curves`."""
    recorded = run.recorded()
    if what is not None and (not run.series(what) or what in ("candidate_losses", "seconds")):
        raise ValueError(f"the history has no {what!r} to draw by rounds, it has {recorded}")
    rule = smoothing(run, smoothed)
    if ax is None and what is None:
        if not recorded:
            raise ValueError(f"the history has neither loss nor error, cost or edge, only {list(run.history)}")
        return panels(run, recorded, rule)
    chosen = what or run.criterion.removeprefix("valid_")
    if not run.series(chosen):
        raise ValueError(f"the history has no {chosen!r}: choose what to draw from {recorded}")
    axes = axes_or_new(ax, 6.4, 4.0)
    legend_beside(axes, handles=draw(axes, run, chosen, rule))
    return axes


def smoothing(run: Run, smoothed: bool | None) -> SmoothedError | None:
    """Return the rule whose smoothed error is drawn, if one is."""
    if smoothed is None:
        return run.rule
    if not smoothed:
        return None
    if run.criterion not in run.history:
        raise ValueError("smoothed=True needs the errors of an evaluation set in the history; there was no eval_set")
    if np.isnan(run.numbers(run.criterion)).any():
        raise ValueError(f"smoothed=True needs {run.criterion!r} of every round, but the first fit did not record it")
    return run.rule or SmoothedError()


def panels(run: Run, recorded: list[str], rule: SmoothedError | None) -> Figure:
    """Draw the quantities side by side, two in a row."""
    n_columns = min(2, len(recorded))
    n_rows = -(-len(recorded) // n_columns)
    figure = new_figure(4.3 * n_columns, 3.0 * n_rows + 0.4)
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    handles: dict[str, Any] = {}
    for axes, what in zip(grid, recorded, strict=False):
        handles |= {str(handle.get_label()): handle for handle in draw(axes, run, what, rule)}
    listed = sorted(handles.values(), key=is_vertical)
    if len(grid) > len(recorded):  # the place of a panel is free for the legend
        grid[-1].axis("off")
        grid[-1].legend(handles=listed, loc="center", frameon=False)
    else:
        figure.legend(handles=listed, loc="outside lower center", ncols=2, frameon=False)
    return figure


def is_vertical(handle: Any) -> bool:
    """Whether a line marks a round; such lines stand last in the legend."""
    x = handle.get_xdata()
    return len(x) == 2 and x[0] == x[1]


def draw(axes: Axes, run: Run, what: str, rule: SmoothedError | None) -> list[Any]:
    """Draw one quantity of all sets; return what belongs into the legend."""
    rounds = np.arange(1, run.n_rounds + 1)
    scale = 100.0 if what == "error" else 1.0
    handles, drawn = [], []
    for i, (name, key) in enumerate(run.series(what).items()):
        values = scale * run.numbers(key)
        is_training = name == "training"
        color = TRAINING if is_training else SETS[(i - 1) % len(SETS)]
        style = "-" if is_training else LINE_STYLES[(i - 1) % len(LINE_STYLES)]
        width = 1.0 if is_training else 1.6
        handles += axes.plot(rounds, values, color=color, linestyle=style, linewidth=width, label=name)
        drawn.append(values)
    chosen = run.kept
    if rule is not None and f"valid_{what}" == run.criterion:
        smoothed = rule.smoothed(run.numbers(run.criterion).tolist())
        candidates = slice(rule.first_candidate(run.n_rounds) - 1, None)  # no lower minimum that is none
        label = f"smoothed {what} of valid (eq. 15)"
        handles += axes.plot(rounds[candidates], scale * smoothed[candidates], "k", dashes=(4, 2), linewidth=1.2, label=label)
    if rule is not None and chosen is None:
        chosen = rule.best(run.numbers(run.criterion).tolist())
    if chosen is not None:
        handles.append(mark_rounds(axes, chosen, run.n_rounds, "kept" if run.kept else "chosen"))
    kind = "Hamming error" if what == "error" and run.multi_label else TITLES.get(what, what)
    axes.set(title=kind, xlabel="round", ylabel=UNITS.get(what, what), xlim=(min(1, run.n_rounds - 1), run.n_rounds))
    # An error that goes to 0 on the training set must not squeeze those of the evaluation sets.
    scale_from_zero(axes, np.concatenate(drawn if what == "loss" else drawn[1:] or drawn))
    quiet(axes)
    return handles
