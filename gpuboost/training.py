"""The controller: it drives a booster's rounds and does everything that is not the algorithm.

It keeps the history, watches the evaluation sets, decides when to stop, calls the callbacks, shows the progress, and turns an
interrupt into a model of the rounds so far.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsFloat, SupportsInt

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.statistics import Device
from gpuboost.boosters.base import Booster, Problem, Round, RowState
from gpuboost.costs.matrix import average_cost
from gpuboost.errors import DeviceLostError, is_interrupt
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.peers.base import agree, mark
from gpuboost.progress import Callback, Display, History, Progress
from gpuboost.stopping import Stopping
from gpuboost.tree import Tree

TRAIN = "train"
"""The name of the training set in the history."""


@dataclass
class Share:
    """A share of a whole that a device may still be working out: only ``float()`` of it waits."""

    part: SupportsInt
    whole: int

    def __float__(self) -> float:
        return int(self.part) / self.whole


class WatchedSet:
    """A set whose scores are followed from round to round.

    Parameters
    ----------
    problem : Problem
    state : RowState
        The booster's state of the set. That of the training set is updated by the booster's rounds.
    costs : ndarray of float64, shape (n_classes, n_classes), optional
        What mistakes cost, ``C[true, predicted]``, in a single-label problem.
    """

    def __init__(self, problem: Problem, state: RowState, costs: NDArray[np.float64] | None = None) -> None:
        backend, weights = problem.backend, problem.integer_weights
        self.problem, self.state, self.costs = problem, state, costs
        self.target: Device = backend.put(problem.target if problem.single_label else problem.signs)
        self.weights: Device = backend.put(weights)
        total = backend.peers.sum(weights.sum(keepdims=True), "weight of a set")
        agree(backend.peers, "weight of a set", total)
        self.total = int(total[0]) * (1 if problem.single_label else problem.n_classes)
        self.scores: Device = backend.put(np.zeros((len(problem.target), problem.n_classes)))

    def apply(self, trees: Sequence[Tree]) -> list[GrownTree]:
        """Let the rows go through the trees of a round."""
        return [self.problem.apply(tree) for tree in trees]

    def add_scores(self, trees: Sequence[GrownTree]) -> None:
        """Add a round's values to the scores."""
        indices, values = [grown.leaf_index for grown in trees], [grown.values for grown in trees]
        self.problem.backend.add_trees(self.scores, indices, values)

    def update(self, trees: Sequence[GrownTree]) -> None:
        """Add a round to the scores and to the row state."""
        self.add_scores(trees)
        self.state.update(trees)

    def mistakes(self) -> dict[str, SupportsFloat]:
        """Return the "error", the share of the weight that is predicted wrong, and with costs the "cost", their mean."""
        backend = self.problem.backend
        if self.costs is None:
            return {"error": Share(backend.error(self.scores, self.target, self.weights), self.total)}
        counts = backend.confusion(self.scores, self.target, self.weights)
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
        time since the start of the fit), for every evaluation set "<name>_loss" and "<name>_error", and the booster's metrics,
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
    booster: Booster[Any],
    problem: Problem | None,
    *,
    n_rounds: int,
    initial_rounds: Sequence[Sequence[Tree]] = (),
    history: History | None = None,
    evaluation: dict[str, Problem] | None = None,
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
        The algorithm and the training set; without one, if the booster draws its rows from a stream.
    n_rounds : int
        The number of rounds of the model, those of ``initial_rounds`` included.
    initial_rounds, history
        A model to continue: the result is that of one long training.
    evaluation : dict of Problem
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
    DeviceLostError
        If the device stops working.
    """
    started = time.perf_counter() if started is None else started
    before = len(initial_rounds)
    result = Training(list(initial_rounds), {k: list(v[:before]) for k, v in (history or {}).items()})
    seconds_before = seconds_of(result.history)
    display = Display(n_rounds, before, verbose)
    somebody_looks = bool(callbacks or verbose or stopping)  # else the numbers of a round may come with the next one's
    criterion = f"{next(iter(evaluation or ()), None)}_{'error' if costs is None else 'cost'}"
    try:
        reason = reason_to_end(result, n_rounds, stopping, criterion)
        sets = {} if reason else {**({TRAIN: problem} if problem else {}), **(evaluation or {})}
        watched = {name: WatchedSet(one, booster.row_state(one), costs) for name, one in sets.items()}
        has_ended = bool(reason) or replay(booster, watched, initial_rounds)
        for step in () if has_ended else rounds_of(booster, watched.get(TRAIN), before):
            settle(result.history)
            row = {"train_loss": step.loss, **step.metrics, **observe(step, watched)}
            row["seconds"] = seconds_before + time.perf_counter() - started
            for key, value in row.items():
                result.history.setdefault(key, []).append(value)
            if somebody_looks:
                settle(result.history)
            result.rounds.append([grown.tree for grown in step.trees])
            display.show(len(result.rounds), {key: values[-1] for key, values in result.history.items()})
            progress = Progress(len(result.rounds), result.history, lambda: model_of(so_far(result)))
            asked = sum(bool(callback(progress)) for callback in callbacks)  # all of them are called
            reason = reason_to_end(result, n_rounds, stopping, criterion, somebody_asks(asked, problem, row))
            if reason:
                break
        result.reason = reason or booster.ended or "the weak learner has nothing left to learn"
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        if len(result.rounds) == before:
            raise KeyboardInterrupt from error
        result.history = {key: values[: len(result.rounds)] for key, values in result.history.items()}
        result.reason = "interrupted"
    except DeviceLostError as error:
        error.args = (f"{error} {what_is_lost(len(result.rounds) - before)}",)
        raise
    finally:
        display.close()
    settle(result.history)
    if stopping and len(result.rounds) > 0:
        result.rounds = result.rounds[: stopping.best(result.history[criterion])]
    return result


def rounds_of(booster: Booster[Any], own: WatchedSet | None, before: int) -> Iterator[Round]:
    """Return a booster's rounds on the training set, or on rows that it draws itself."""
    nothing: Any = None
    return booster.rounds(own.problem, own.state, before) if own else booster.rounds(nothing, nothing, before)


def settle(history: History) -> None:
    """Wait for the numbers of the last round."""
    for values in history.values():
        if values and isinstance(values[-1], Share):
            values[-1] = float(values[-1])


def seconds_of(history: History) -> float:
    """Return the wall time of the rounds so far; 0 if there are none, or if it is NaN as in a model from a file."""
    seconds = history.get("seconds") or [0.0]
    return 0.0 if math.isnan(seconds[-1]) else float(seconds[-1])


def reason_to_end(
    result: Training, n_rounds: int, stopping: Stopping | None, criterion: str, asked_to_stop: bool = False
) -> str:
    """Return why a training should end here, "" if it should not.

    It is also called before the first round, since a model that is continued may have ended by the same rule.
    """
    if stopping and result.rounds and stopping.should_stop(result.history[criterion]):
        return "early stopping"
    if asked_to_stop:
        return "a callback asked to stop"
    return "n_estimators reached" if len(result.rounds) >= n_rounds else ""


def somebody_asks(n_callbacks: int, problem: Problem | None, row: dict[str, Any]) -> bool:
    """Return whether callbacks have asked to stop, here or on another worker, which must have the same numbers of the round."""
    if problem is None or problem.backend.peers.size == 1:
        return n_callbacks > 0
    numbers = {name: value for name, value in row.items() if name != "seconds"}
    asked = problem.backend.peers.sum(np.array([n_callbacks]), f"who asks to stop after a round of {mark(str(numbers))}")
    return bool(asked[0])


def what_is_lost(n_rounds: int) -> str:
    """Return what becomes of a training whose device has gone after ``n_rounds`` rounds."""
    return (
        f"The {n_rounds} rounds of this training are lost, but for those that a gpuboost.Checkpoint among its callbacks has "
        "written to a file: load it and fit with warm_start=True to go on from there."
    )


def so_far(result: Training) -> Training:
    """Return a copy of an unfinished training, which later rounds do not change."""
    return Training(list(result.rounds), {key: list(values) for key, values in result.history.items()}, "not finished")


def replay(booster: Booster[Any], watched: dict[str, WatchedSet], initial_rounds: Sequence[Sequence[Tree]]) -> bool:
    """Update all sets by the rounds of the model that is continued. Return whether the last of them ended its training."""
    has_ended = False
    for name, one in watched.items():
        for t, trees in enumerate(initial_rounds):
            grown = one.apply(trees)
            if name == TRAIN and t == len(initial_rounds) - 1:
                has_ended = booster.is_last_round(one.problem, one.state, grown, t)
            one.update(grown)
    return has_ended


def observe(step: Round, watched: dict[str, WatchedSet]) -> dict[str, SupportsFloat]:
    """Add a round to all sets, and return their errors, costs and losses."""
    row: dict[str, SupportsFloat] = {}
    for name, one in watched.items():
        if name == TRAIN:
            one.add_scores(step.trees)  # the booster has updated the row state
        else:
            one.update(one.apply([grown.tree for grown in step.trees]))
            row[f"{name}_loss"] = one.state.loss()
        row |= {f"{name}_{what}": value for what, value in one.mistakes().items()}
    return row
