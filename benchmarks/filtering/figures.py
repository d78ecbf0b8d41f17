"""Figures in the manner of 7 to 14 of the FilterBoost paper. Needs matplotlib."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from filtering.claims import SET_NAMES, Results, mean_curve
from filtering.runs import Run

FILTERS = ("FilterBoost", "FilterBoost (C-R)")
ADABOOST, LOG = (
    tuple(f"{name}{kind}" for kind in ("", " (C-R)", " (resamp)", " (C-R, resamp)")) for name in ("AdaBoost", "AdaBoost-LOG")
)


class Panel(NamedTuple):
    """One plot: a measure against draws, rounds or seconds."""

    set_name: str
    learner: str
    boosters: Sequence[str]
    measure: str
    against: str = "seconds"


def _probabilities(name: str) -> list[Panel]:
    return [
        Panel(name, learner, (*FILTERS, *others), measure)
        for learner, others in (("stumps", ADABOOST), ("trees", LOG))
        for measure in ("log_loss", "rmse")
    ]


SYNTHETIC = ("adult", "majority", "majority500k", "twonorm")

FIGURES = {
    "7": [
        Panel(n, "stumps", ("AdaBoost", "FilterBoost", "MadaBoost"), "seconds", "round") for n in ("majority", "majority500k")
    ],
    "8": _probabilities("adult"),
    "9": _probabilities("majority"),
    "10": _probabilities("twonorm"),
    "11": _probabilities("covertype2"),
    "12": [Panel(n, learner, (*FILTERS, "MadaBoost"), "error", "draws") for learner in ("stumps", "trees") for n in SET_NAMES],
    "13": [Panel(n, learner, (*FILTERS, *ADABOOST), "error") for learner in ("stumps", "trees") for n in SYNTHETIC],
    "14": [Panel("covertype2", learner, (*FILTERS, *ADABOOST), "error") for learner in ("stumps", "trees")],
}


def draw(runs: Sequence[Run], folder: Path, stem: str) -> list[Path]:
    """Draw what there are runs for; return the files, none without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print("no figures: matplotlib cannot be imported")
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams |= {"svg.fonttype": "none", "path.simplify": True}  # letters as outlines are most of a file
    results, files = Results(runs), []
    for number, panels in FIGURES.items():
        panels = [p for p in panels if any((p.set_name, p.learner, b) in results.groups for b in p.boosters)]
        if not panels:
            continue
        n_columns = min(4, len(panels))
        n_lines = -(-len(panels) // n_columns)
        figure, axes = pyplot.subplots(n_lines, n_columns, figsize=(4.2 * n_columns, 3.4 * n_lines), squeeze=False)
        for axis in axes.flat[len(panels) :]:
            axis.remove()
        for axis, panel in zip(axes.flat, panels, strict=False):
            for booster in panel.boosters:
                group = results.groups.get((panel.set_name, panel.learner, booster))
                if group:
                    points = mean_curve(group, panel.measure)
                    axis.plot([p[panel.against] for p in points], [p[panel.measure] for p in points], label=booster, lw=1.2)
            axis.set(xlabel=panel.against, ylabel=panel.measure.replace("_", " "), xscale="log")
            axis.set_title(f"{SET_NAMES[panel.set_name]}, {panel.learner}", fontsize=9)
            axis.legend(fontsize=6)
            axis.minorticks_off()
        figure.tight_layout()
        folder.mkdir(parents=True, exist_ok=True)
        files.append(folder / f"{stem}-figure-{number}.svg")
        figure.savefig(files[-1], metadata={"Date": None})
        files[-1].write_text(re.sub(r"\n\s+", "\n", files[-1].read_text()))  # a fifth of a file is indentation
        pyplot.close(figure)
    return files
