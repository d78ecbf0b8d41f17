"""The progress of a training: a bar on a terminal, a line every few seconds in a log."""

from __future__ import annotations

import sys
import time
from typing import Any

from gpuboost.progress import StreamRate

SECONDS = 5.0
"""Between two lines of a log."""


class ProgressReport:
    """A callback that reports the rounds on the standard error.

    Parameters
    ----------
    n_rounds : int
        How many the model will have.
    done : int
        How many it has.
    """

    def __init__(self, n_rounds: int, done: int = 0) -> None:
        self.n_rounds, self.done = n_rounds, done
        self.begun = self.last = time.monotonic()
        self.first: float | None = None
        self.bar: Any = None
        self.rate = StreamRate()

    def __call__(self, progress: Any) -> None:
        """Report a round."""
        errors = [(k.replace("_", " "), f"{100 * v[-1]:.2f} %") for k, v in progress.history.items() if k.endswith("_error")]
        row = {name: values[-1] for name, values in progress.history.items()}
        self.rate.add(row)
        if self.bar is None and sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=self.n_rounds, initial=self.done, unit="round", dynamic_ncols=True, file=sys.stderr)
        if self.bar is not None:
            self.bar.set_postfix({**dict(errors), **self.rate.texts(row)}, refresh=False)
            self.bar.update(progress.n_rounds - self.bar.n)
            return
        now = time.monotonic()
        if self.first is None:  # the first round waits for what is compiled
            self.first, self.done = now, progress.n_rounds
        elif now - self.last < SECONDS and progress.n_rounds < self.n_rounds:
            return
        self.last = now
        shown = [*errors, *self.rate.texts(row).items()]
        texts = [f"round {progress.n_rounds} of {self.n_rounds}", *map(" ".join, shown), f"{now - self.begun:.0f} s"]
        if self.done < progress.n_rounds < self.n_rounds:
            left = (now - self.first) / (progress.n_rounds - self.done) * (self.n_rounds - progress.n_rounds)
            texts.append(f"about {left:.0f} s left")
        print("  ".join(texts), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Finish the bar."""
        if self.bar is not None:
            self.bar.close()
