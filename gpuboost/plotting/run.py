"""What is known of a training: its history, and which rounds were kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.stopping import SmoothedError

QUANTITIES = ("loss", "error", "cost", "edge")


@dataclass(frozen=True)
class Run:
    """A training.

    Attributes
    ----------
    history : mapping of str to list
        As ``history_`` of an estimator.
    classes : list of str, optional
        The labels of the classes; their numbers if not given.
    kept : int, optional
        How many rounds early stopping kept, if it was used.
    rule : SmoothedError, optional
        The rule that chose them, if it was that of eq. 15.
    multi_label : bool
        Whether the error is the Hamming error.
    """

    history: Mapping[str, list[Any]]
    classes: list[str] | None = None
    kept: int | None = None
    rule: SmoothedError | None = None
    multi_label: bool = False

    @property
    def n_rounds(self) -> int:
        """The rounds that were run."""
        return max((len(values) for values in self.history.values()), default=0)

    @property
    def criterion(self) -> str:
        """What early stopping looks at, and the smoothed error is made of."""
        return "valid_cost" if "valid_cost" in self.history else "valid_error"

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a recorded quantity, one number a round."""
        return np.array(self.history[name], np.float64)

    def series(self, what: str) -> dict[str, str]:
        """Return where a quantity is recorded: the names in the history by those of the sets, the training set first."""
        if what in self.history:
            return {"training": what}
        sets = [name.removesuffix(f"_{what}") for name in self.history if name.endswith(f"_{what}")]
        ordered = sorted(sets, key=lambda name: name != "train")
        return {"training" if name == "train" else name.replace("_", " "): f"{name}_{what}" for name in ordered}

    def recorded(self) -> list[str]:
        """Return the quantities that can be drawn by rounds."""
        return [what for what in QUANTITIES if self.series(what)]


def checked_history(history: Any) -> Mapping[str, list[Any]]:
    """Return a history that may have come from a file.

    Raises
    ------
    TypeError, ValueError
        If it is no dict of lists of one length.
    """
    if not isinstance(history, Mapping) or not all(isinstance(values, list) for values in history.values()):
        raise TypeError(f"a history is a dict of lists, as model.history_, got {history!r:.100}")
    lengths = {name: len(values) for name, values in history.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"all lists of a history must have one length, got {lengths}")
    if not lengths or not max(lengths.values()):
        raise ValueError("the history is empty: nothing can be drawn from it")
    return history
