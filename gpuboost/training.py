"""The controller: it drives a booster's rounds and does everything that is not the algorithm.

It keeps the history, watches the evaluation sets, decides when to stop, calls the callbacks, shows the progress, and turns an
interrupt into a model of the rounds so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.statistics import Device
from gpuboost.boosters.base import Booster, Part, Problem, Round, RowState, apply
from gpuboost.costs.matrix import average_cost
from gpuboost.errors import is_interrupt
from gpuboost.stopping import Stopping
from gpuboost.tree import Tree

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


class WatchedSet:
    """A set whose scores are followed from round to round.

    Parameters
    ----------
    problem : Problem
    units : ndarray of int64, shape (n_rows,)
        Integer row weights for the error rate.
    costs : ndarray of float64, shape (n_classes, n_classes), optional
        What mistakes cost, ``C[true, predicted]``, in a single-label problem.
    """

    def __init__(self, problem: Problem, units: NDArray[np.int64], costs: NDArray[np.float64] | None = None) -> None:
        backend, signs = problem.backend, problem.signs
        target = signs.argmax(axis=1).astype(np.int32) if problem.single_label else signs
        self.problem, self.costs = problem, costs
        self.target: Device = backend.put(target)
        self.units: Device = backend.put(units)
        self.total = int(units.sum()) * (1 if problem.single_label else signs.shape[1])
        self.scores: Device = backend.put(np.zeros(signs.shape))

    def add(self, parts: Sequence[Part]) -> None:
        """Add a round's values to the scores."""
        self.problem.backend.add_trees(self.scores, [part.leaf_index for part in parts], [part.values for part in parts])

    def mistakes(self) -> dict[str, float]:
        """Return the "error", the share of the weight that is predicted wrong, and with costs the "cost", their mean."""
        backend = self.problem.backend
        if self.costs is None:
            return {"error": backend.error(self.scores, self.target, self.units) / self.total}
        counts = backend.confusion(self.scores, self.target, self.units)
        return {"error": (self.total - int(counts.trace())) / self.total, "cost": average_cost(counts, self.costs)}


@dataclass
class Training:
    """A finished training.

    Attributes
    ----------
    rounds : list of sequences of Tree
        The trees of the model by rounds: all of them, or those up to the best one under early stopping.
    history : dict of list of float
        "train_loss" (share of the empty model's loss), "train_error" (weighted; Hamming error for multi-label), "seconds" (wall
        time since the start of the fit), for every evaluation set "<name>_loss" and "<name>_error", and what the booster notes,
        such as "edge". With costs also "train_cost" and "<name>_cost", the mean cost of the predictions.
        All rounds that were run, also those after the best one.
    reason : str
        Why the training ended.
    """

    rounds: list[Sequence[Tree]]
    history: History = field(default_factory=dict)
    reason: str = ""

    @property
    def trees(self) -> list[Tree]:
        """The trees of all rounds in order."""
        return [tree for one in self.rounds for tree in one]


def train(
    booster: Booster,
    problem: Problem,
    units: NDArray[np.int64],
    *,
    n_rounds: int,
    initial_rounds: Sequence[Sequence[Tree]] = (),
    history: History | None = None,
    evaluation: dict[str, tuple[Problem, NDArray[np.int64]]] | None = None,
    costs: NDArray[np.float64] | None = None,
    stopping: Stopping | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
    started: float | None = None,
    model_of: Callable[[Training], Any] = lambda training: training,
) -> Training:
    """Run ``booster`` on ``problem`` until the model has ``n_rounds`` rounds.

    Parameters
    ----------
    booster, problem
        The algorithm and the training set.
    units : ndarray of int64, shape (n_rows,)
        Integer row weights for the training error.
    n_rounds : int
        The number of rounds of the model, those of ``initial_rounds`` included.
    done, history
        A model to continue: the result is that of one long training.
    evaluation : dict of (Problem, units)
        Evaluation sets by name. Early stopping looks at the first: at its cost if there are costs, else at its error.
    costs : ndarray of float64, shape (n_classes, n_classes), optional
        What mistakes cost, ``C[true, predicted]``.
    stopping : Stopping, optional
        An early-stopping rule; needs an evaluation set.
    callbacks, verbose
        See `gpuboost.AdaBoostMHClassifier`.
    started : float, optional
        ``time.perf_counter()`` at the start of the fit.
    model_of : callable, optional
        What makes the model of a training that goes on, for callbacks that ask for it.

    Returns
    -------
    Training

    Raises
    ------
    KeyboardInterrupt
        Only if there is no finished round to keep.
    """
    started = time.perf_counter() if started is None else started
    before = len(initial_rounds)
    result = Training(list(initial_rounds), {k: list(v[:before]) for k, v in (history or {}).items()})
    seconds = result.history.get("seconds", [])[-1:]
    seconds_before = seconds[0] if seconds and seconds[0] == seconds[0] else 0.0  # nobody knows of a model from a file
    display = Display(n_rounds, before, verbose)
    criterion = f"{next(iter(evaluation or ()), None)}_{'error' if costs is None else 'cost'}"
    try:
        sets = {"train": (problem, units), **(evaluation or {})}
        watched = {name: WatchedSet(*one, costs) for name, one in sets.items()}
        states = {name: booster.row_state(watched[name].problem) for name in watched if name != "train"}
        for name, trees in ((name, trees) for name in watched for trees in initial_rounds):
            update(watched[name], states.get(name), trees)
        reason = reason_to_end(result, n_rounds, stopping, criterion)
        for step in booster.rounds(problem, initial_rounds) if not reason else ():
            row = {"train_loss": step.loss, **step.metrics}
            row |= observe(step, watched, states)
            row["seconds"] = seconds_before + time.perf_counter() - started
            for key, value in row.items():
                result.history.setdefault(key, []).append(value)
            result.rounds.append([part.tree for part in step.parts])
            display.show(len(result.rounds), row)
            progress = Progress(len(result.rounds), result.history, lambda: model_of(so_far(result)))
            asked_to_stop = sum(bool(callback(progress)) for callback in callbacks)  # all of them are called
            reason = reason_to_end(result, n_rounds, stopping, criterion, asked_to_stop > 0)
            if reason:
                break
        result.reason = reason or "the weak learner has nothing left to learn"
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        if len(result.rounds) == before:
            raise KeyboardInterrupt from error
        result.history = {key: values[: len(result.rounds)] for key, values in result.history.items()}
        result.reason = "interrupted"
    finally:
        display.close()
    if stopping and len(result.rounds) > 0:
        best = stopping.best(result.history[criterion])
        result.rounds = result.rounds[:best]
    return result


def reason_to_end(
    result: Training, n_rounds: int, stopping: Stopping | None, criterion: str, asked_to_stop: bool = False
) -> str:
    """Return why a training should end here, "" if it should not.

    It is also asked of a model that is continued: that may be one that was kept in the round in which its training has ended.
    """
    if stopping and result.rounds and stopping.should_stop(result.history[criterion]):
        return "early stopping"
    if asked_to_stop:
        return "a callback asked to stop"
    return "n_estimators reached" if len(result.rounds) >= n_rounds else ""


def so_far(result: Training) -> Training:
    """Return what a training has made by now; what is to come does not change it."""
    return Training(list(result.rounds), {key: list(values) for key, values in result.history.items()}, "not finished")


def update(watched: WatchedSet, state: RowState | None, trees: Sequence[Tree]) -> None:
    """Let a watched set, and its row state if it has one, take in a round."""
    parts = [apply(tree, watched.problem) for tree in trees]
    watched.add(parts)
    if state is not None:
        state.update(parts)


def observe(step: Round, watched: dict[str, WatchedSet], states: dict[str, RowState]) -> dict[str, float]:
    """Let all watched sets take in a round, and return their errors, costs and losses."""
    row = {}
    for name, one in watched.items():
        if name == "train":
            one.add(step.parts)
        else:
            update(one, states[name], [part.tree for part in step.parts])
            row[f"{name}_loss"] = states[name].loss()
        row |= {f"{name}_{what}": value for what, value in one.mistakes().items()}
    return row


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
