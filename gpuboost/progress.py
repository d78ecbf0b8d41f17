"""What a user sees of a training while it runs: the argument of callbacks, and the display."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

History = dict[str, list[Any]]


@dataclass(frozen=True)
class Progress:
    """What a callback sees after every round.

    Attributes
    ----------
    n_rounds : int
        The number of rounds of the model.
    history : dict of list of float
        One list per quantity with one entry per round, see `Training.history`.
    model : callable
        Called without arguments, returns the fitted classifier of the rounds so far: to look at it, to predict, to save it. It
        joins all trees, so it takes time; what is not called costs nothing.
    """

    n_rounds: int
    history: History
    model: Callable[[], Any]


Callback = Callable[[Progress], Any]
"""Called after every round; a true return value ends the training."""


class Display:
    """The progress: a bar for ``verbose=1``, a line every n rounds for ``verbose=n > 1``."""

    def __init__(self, n_rounds: int, initial_rounds: int, verbose: int) -> None:
        self.verbose = int(verbose)
        self.bar: Any = None
        if self.verbose == 1:
            from tqdm import tqdm

            self.bar = tqdm(total=n_rounds, initial=initial_rounds, unit="round", dynamic_ncols=True)

    def show(self, n_rounds: int, row: dict[str, Any]) -> None:
        if self.bar is None and (self.verbose < 2 or n_rounds % self.verbose):
            return
        shown = {k.replace("_", " "): f"{100 * v:.2f}%" for k, v in row.items() if k.endswith("_error")}
        shown |= {k.replace("_", " "): f"{v:.4g}" for k, v in row.items() if k.endswith("_cost")}
        if self.bar is not None:
            self.bar.set_postfix(shown, refresh=False)
            self.bar.update()
        else:
            text = "  ".join(f"{what} {value}" for what, value in shown.items())
            print(f"round {n_rounds}  {text}  loss {row['train_loss']:.4g}  {row['seconds']:.1f} s", flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
