"""Pictures of models and of their training, drawn with matplotlib, which is loaded when one is drawn.

``model.plot`` has a method for each kind; `HistoryPlots` draws what a history alone has to show. Nothing here shows a picture,
or changes matplotlib's settings or backend.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuboost.plotting.accessor import HistoryPlots, Plots

__all__ = ["KINDS", "HistoryPlots", "Kind", "Plots"]


@dataclass(frozen=True)
class Kind:
    """A kind of picture.

    Attributes
    ----------
    method : str
        The method of `Plots`, and of `HistoryPlots` if ``from_history``.
    summary : str
        What it shows, in one line.
    from_history : bool
        Whether a training history is enough.
    needs_data : bool
        Whether rows and their labels have to be given.
    """

    method: str
    summary: str
    from_history: bool = False
    needs_data: bool = False


KINDS = {
    "learning-curves": Kind("learning_curves", "loss, error, cost and edge by rounds", from_history=True),
    "confusion": Kind("confusion", "true classes against predicted ones", needs_data=True),
    "costs": Kind("costs", "the cost matrix beside the confusion matrix", needs_data=True),
    "reliability": Kind("reliability", "how often it is right where it is that sure", needs_data=True),
    "importances": Kind("importances", "the columns that matter most"),
    "tree": Kind("tree", "one tree with its thresholds and votes"),
    "base-classes": Kind("base_classes", "ABC-Boost: the base class of every round", from_history=True),
    "candidate-losses": Kind("candidate_losses", "ABC-Boost: what other base classes would have given", from_history=True),
    "stream": Kind("stream", "FilterBoost: error, its bound and the rows drawn by rounds", from_history=True),
    "decision-map": Kind("decision_map", "the predicted class over two columns", needs_data=True),
}
"""The kinds of pictures by the names that the command line uses."""
