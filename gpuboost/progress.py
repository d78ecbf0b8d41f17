"""What a user sees of a training while it runs: the argument of callbacks, and the display."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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


class StreamRate:
    """What a booster that draws its rows has to show beside the error: the bound of it, the filter, and the speed."""

    def __init__(self) -> None:
        self.since: float | None = None
        self.rows = 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        """Count the rows that a round has drawn; nothing happens for other boosters."""
        if self.since is None:  # the first round waits for what is compiled
            self.since = time.perf_counter()
        else:
            self.rows += row.get("draws", 0.0)

    def texts(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return what to show, by name, of a round and of the time since this was last called; empty for other boosters."""
        if "draws" not in row:
            return {}
        shown = {name: f"{100 * row[name]:.2f}%" for name in ("bound", "acceptance")}
        if self.since is not None and self.rows:
            now = time.perf_counter()
            speed, self.since, self.rows = self.rows / max(now - self.since, 1e-9), now, 0.0
            shown["rows/s"] = f"{speed / 1e6:.2f}M" if speed >= 1e6 else f"{speed:.0f}"
        return shown


class Display:
    """The progress: a bar for ``verbose=1``, a line every n rounds for ``verbose=n > 1``."""

    def __init__(self, n_rounds: int, initial_rounds: int, verbose: int) -> None:
        self.verbose = int(verbose)
        self.bar: Any = None
        self.rate = StreamRate()
        if self.verbose == 1:
            from tqdm import tqdm

            self.bar = tqdm(total=n_rounds, initial=initial_rounds, unit="round", dynamic_ncols=True)

    def show(self, n_rounds: int, row: dict[str, Any]) -> None:
        self.rate.add(row)
        if self.bar is None and (self.verbose < 2 or n_rounds % self.verbose):
            return
        shown = {k.replace("_", " "): f"{100 * v:.2f}%" for k, v in row.items() if k.endswith("_error")}
        shown |= {k.replace("_", " "): f"{v:.4g}" for k, v in row.items() if k.endswith("_cost")}
        shown |= self.rate.texts(row)
        if self.bar is not None:
            self.bar.set_postfix(shown, refresh=False)
            self.bar.update()
        else:
            text = "  ".join(f"{what} {value}" for what, value in shown.items())
            print(f"round {n_rounds}  {text}  loss {row['train_loss']:.4g}  {row['seconds']:.1f} s", flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
