from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import StumpProduct
from gpuboost.progress import Progress
from gpuboost.stopping import Patience, SmoothedError
from gpuboost.training import Training, WatchedSet, train
from gpuboost.tree import constant_tree
from tests.candidates import thinned
from tests.problems import Data, blobs, digest, fit, scores, sign_matrix

BOOSTER = AdaBoostMH(HammingTree(3), "single-label")
DATA = blobs(60, 3, 3, seed=0, noise=2.0)
OTHER = blobs(60, 3, 3, seed=100, noise=2.0)  # as many rows, and labels that the training set says nothing about


@dataclass
class Scripted(Booster[Any]):
    """A booster whose rounds are constant trees that give class 1 these scores, and count the work asked for."""

    values: Sequence[float]
    log: list[str] = field(default_factory=list)

    @dataclass
    class State:
        n: int = 0

        def update(self, trees: Sequence[GrownTree]) -> None:
            self.n += 1

        def loss(self) -> float:
            return float(self.n)

    def row_state(self, problem: Problem) -> State:
        return self.State()

    def rounds(self, problem: Problem, state: Any, n_rounds: int) -> Iterator[Round]:
        leaf_index = problem.backend.put(np.zeros(len(problem.target), np.int32))
        for value in self.values[n_rounds:]:
            tree = constant_tree(np.array([0.0, value]))
            self.log.append("round")
            yield Round([GrownTree(tree, leaf_index)], 0.25, {"edge": 0.5})


def one_row(label: int, backend: Backend) -> Problem:
    return Data(np.zeros((1, 1)), sign_matrix([label], 2)).on(backend)


def watch(data: Data, backend: Backend, costs: Any = None) -> WatchedSet:
    return WatchedSet(data.on(backend), Scripted.State(), costs)


def two_leaves(values: NDArray[np.float64], leaf_index: Any) -> GrownTree:
    return GrownTree(replace(constant_tree(values[0]), values=values), leaf_index)


def scripted_run(values: Sequence[float], **options: Any) -> tuple[Training, Scripted]:
    """Train on a row of class 0; the validation row is of class 1, so its error is 1 until its score is above 0."""
    backend, booster = NumpyBackend(), Scripted(values)
    options = {"n_rounds": len(values)} | options
    result = train(booster, one_row(0, backend), evaluation={"valid": one_row(1, backend)}, **options)
    return result, booster


# ---- history -----------------------------------------------------------------------------------------------------------------


def test_history_has_a_value_a_round() -> None:
    backend = NumpyBackend()
    mapper = DATA.mapper()
    sets = {"valid": OTHER.on(backend, mapper), "more": OTHER.subset(slice(10)).on(backend, mapper)}
    result = train(BOOSTER, DATA.on(backend, mapper), n_rounds=7, evaluation=sets)
    assert set(result.history) == {
        *("train_loss", "train_error", "edge", "seconds"),
        *("valid_loss", "valid_error", "more_loss", "more_error"),
    }
    assert {len(values) for values in result.history.values()} == {7}
    assert all(type(value) is float for values in result.history.values() for value in values)
    assert result.history["seconds"] == sorted(result.history["seconds"])
    assert result.history["seconds"][0] >= 0
    assert result.reason == "n_estimators reached"
    assert len(result.trees) == 7


@pytest.mark.parametrize("variant", ["discrete", "real"])
@pytest.mark.parametrize("learner", thinned([HammingTree(4), StumpProduct(2)], 2))
@pytest.mark.parametrize("weighted", [False, True])
def test_watching_the_training_set_shows_the_training(backend: Backend, learner: Any, variant: Any, weighted: bool) -> None:
    data = replace(DATA, weights=np.random.default_rng(0).uniform(0.2, 1.0, 60)) if weighted else DATA
    booster = AdaBoostMH(learner, "single-label", variant)
    history = fit(booster, data, backend, 15, evaluation=data).history
    assert history["valid_loss"] == history["train_loss"]
    assert history["valid_error"] == history["train_error"]
    assert len(set(history["train_error"])) > 3


def test_watching_does_not_touch_the_training(backend: Backend) -> None:
    alone = fit(BOOSTER, DATA, backend, 10)
    for evaluation in (DATA, OTHER, OTHER.subset(slice(7))):
        watched = fit(BOOSTER, DATA, backend, 10, evaluation=evaluation)
        assert digest(watched.trees, 3) == digest(alone.trees, 3)
        assert all(watched.history[key] == alone.history[key] for key in ("train_loss", "train_error", "edge"))


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_the_scores(backend: Backend, weighted: bool) -> None:
    weights = np.random.default_rng(1).integers(1, 5, 60).astype(float)
    data, other = (replace(d, weights=weights) if weighted else d for d in (DATA, OTHER))
    result = fit(BOOSTER, data, backend, 12, evaluation=other)
    mapper = data.mapper()
    for name, one in (("train", data), ("valid", other)):
        w = weights if weighted else np.ones(60)
        for n in (1, 6, 12):
            f = scores(result.trees[:n], one, backend, mapper)
            wrong = f.argmax(axis=1) != one.signs.argmax(axis=1)
            assert result.history[f"{name}_error"][n - 1] == w[wrong].sum() / w.sum()


def test_multi_label_errors_count_signs(backend: Backend) -> None:
    rng = np.random.default_rng(2)
    data = Data(rng.normal(size=(50, 3)), rng.choice(np.array([-1, 1], np.int8), (50, 4)))
    result = fit(AdaBoostMH(HammingTree(3), "uniform"), data, backend, 5)
    f = scores(result.trees, data, backend, data.mapper())
    assert result.history["train_error"][-1] == ((f > 0) != (data.signs > 0)).mean()


def now(watched: WatchedSet) -> dict[str, float]:
    """What a set's predictions are worth, without a device to wait for."""
    return {name: float(value) for name, value in watched.mistakes().items()}


def test_first_of_equal_scores_is_predicted(backend: Backend) -> None:
    # Before any round all scores are 0: class 0 is predicted, so 2 + 3 of 10 units are wrong.
    data = Data(np.zeros((3, 1)), sign_matrix([0, 1, 2], 3), np.array([5.0, 2.0, 3.0]))
    watched = watch(Data(data.X, data.signs), backend)
    assert now(watched) == {"error": 2 / 3}
    watched = watch(data, backend)
    assert now(watched)["error"] == pytest.approx(5 / 10, abs=1e-9)
    values = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.5]])
    watched.add_scores([two_leaves(values, backend.put(np.array([0, 0, 1], np.int32)))])
    assert now(watched)["error"] == pytest.approx(5 / 10, abs=1e-9)  # now row 0 is wrong, 1 and 2 right


def test_multi_label_sets_count_every_sign(backend: Backend) -> None:
    signs = np.array([[1, -1, 1], [1, 1, 1]], np.int8)
    watched = watch(Data(np.zeros((2, 1)), signs, np.array([1.0, 3.0])), backend)
    assert watched.total == 3 * (1 + 3)
    assert now(watched) == {"error": (2 * 1 + 3 * 3) / 12}  # a score of 0 predicts -1


def test_costs_by_hand(backend: Backend) -> None:
    """Rows of the classes 0, 1, 2, 2 with the weights 1, 2, 4, 8; class 0 is predicted, then 1 in the last row."""
    costs = np.array([[0.0, 3.0, 1.0], [5.0, 0.0, 1.0], [0.25, 7.0, 0.0]])
    data = Data(np.zeros((4, 1)), sign_matrix([0, 1, 2, 2], 3), np.array([1.0, 2.0, 4.0, 8.0]))
    watched = watch(data, backend, costs)
    assert now(watched) == {"error": 14 / 15, "cost": (2 * 5 + 12 * 0.25) / 15}
    values = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    watched.add_scores([two_leaves(values, backend.put(np.array([0, 0, 0, 1], np.int32)))])
    assert now(watched) == {"error": 14 / 15, "cost": (2 * 5 + 4 * 0.25 + 8 * 7) / 15}


def test_costs_are_those_of_the_confusion_matrix(backend: Backend) -> None:
    costs = np.array([[0.0, 1.0, 10.0], [2.0, 0.0, 1.0], [1.0, 4.0, 0.0]])
    result = fit(BOOSTER, DATA, backend, 12, evaluation=OTHER, costs=costs)
    plain = fit(BOOSTER, DATA, backend, 12, evaluation=OTHER)
    assert digest(result.trees, 3) == digest(plain.trees, 3)
    assert set(result.history) - set(plain.history) == {"train_cost", "valid_cost"}
    assert all(result.history[f"{name}_error"] == plain.history[f"{name}_error"] for name in ("train", "valid"))
    for name, one in (("train", DATA), ("valid", OTHER)):
        for n in (1, 6, 12):
            predicted = scores(result.trees[:n], one, backend, DATA.mapper()).argmax(axis=1)
            assert result.history[f"{name}_cost"][n - 1] == costs[one.signs.argmax(axis=1), predicted].sum() / 60


@pytest.mark.slow
def test_early_stopping_looks_at_the_cost(backend: Backend) -> None:
    """To take class 1 for 0 costs so much that the other way does not count."""
    costs = np.array([[0.0, 1.0, 1.0], [900.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    whole = fit(BOOSTER, DATA, backend, 40, evaluation=OTHER, costs=costs)
    cost, error = whole.history["valid_cost"], whole.history["valid_error"]
    best = cost.index(min(cost)) + 1
    assert best != error.index(min(error)) + 1
    assert len(fit(BOOSTER, DATA, backend, 40, evaluation=OTHER, costs=costs, stopping=Patience(40)).rounds) == best
    short = fit(BOOSTER, DATA, backend, 40, evaluation=OTHER, costs=costs, stopping=Patience(3))
    stops = next(t for t in range(1, 41) if t - cost.index(min(cost[:t])) - 1 >= 3)
    assert len(short.history["valid_cost"]) == stops < 40
    assert short.reason == "early stopping"


# ---- ends --------------------------------------------------------------------------------------------------------------------


def test_callback_ends_the_training() -> None:
    seen: list[Progress] = []
    result, booster = scripted_run([1.0] * 9, callbacks=[lambda p: seen.append(p), lambda p: p.n_rounds == 4])
    assert [progress.n_rounds for progress in seen] == [1, 2, 3, 4]
    assert all(len(values) == 4 for values in seen[-1].history.values())
    assert len(result.trees) == 4
    assert len(booster.log) == 4
    assert result.reason == "a callback asked to stop"


def test_every_callback_sees_every_round() -> None:
    # Also in the round in which the first of them, or the stopping rule, ends the training.
    counts = [0, 0]

    def counter(i: int, at: int) -> Callable[[Progress], bool]:
        def callback(progress: Progress) -> bool:
            counts[i] += 1
            return progress.n_rounds == at

        return callback

    scripted_run([1.0] * 9, callbacks=[counter(0, 3), counter(1, 99)])
    assert counts == [3, 3]
    counts[:] = [0, 0]
    result, _ = scripted_run([-1.0] * 9, callbacks=[counter(0, 99), counter(1, 99)], stopping=Patience(4))
    assert result.reason == "early stopping"
    assert counts == [5, 5]


def raise_at(n_rounds: int) -> Callable[[Progress], None]:
    def callback(progress: Progress) -> None:
        if progress.n_rounds == n_rounds:
            raise KeyboardInterrupt

    return callback


def test_interrupt_keeps_the_finished_rounds(backend: Backend) -> None:
    interrupted = fit(BOOSTER, DATA, backend, 20, evaluation=OTHER, callbacks=[raise_at(6)])
    alone = fit(BOOSTER, DATA, backend, 6, evaluation=OTHER)
    assert interrupted.reason == "interrupted"
    assert digest(interrupted.trees, 3) == digest(alone.trees, 3)
    assert {len(values) for values in interrupted.history.values()} == {6}
    assert all(interrupted.history[key] == alone.history[key] for key in alone.history if key != "seconds")


class InterruptedBooster(Scripted):
    """Interrupted while it works on the third round."""

    def rounds(self, problem: Problem, state: Any, n_rounds: int) -> Iterator[Round]:
        for n, step in enumerate(super().rounds(problem, state, n_rounds)):
            if n == 2:
                raise KeyboardInterrupt
            yield step


def test_interrupt_within_a_round() -> None:
    backend = NumpyBackend()
    result = train(InterruptedBooster([1.0] * 9), one_row(0, backend), n_rounds=9)
    assert len(result.trees) == 2
    assert {len(values) for values in result.history.values()} == {2}


def test_interrupt_between_history_and_model() -> None:
    class Late:
        """A round that is interrupted when its tree is taken, after its numbers went into the history."""

        def __init__(self, step: Round) -> None:
            self.loss, self.metrics, self.looks, self.step = step.loss, step.metrics, 0, step

        @property
        def trees(self) -> Sequence[GrownTree]:
            self.looks += 1
            if self.looks == 2:  # the first is for the scores
                raise KeyboardInterrupt
            return self.step.trees

    class InterruptedLate(Scripted):
        def rounds(self, problem: Problem, state: Any, n_rounds: int) -> Iterator[Any]:
            for n, step in enumerate(super().rounds(problem, state, n_rounds)):
                yield Late(step) if n == 2 else step

    result = train(InterruptedLate([1.0] * 9), one_row(0, NumpyBackend()), n_rounds=9)
    assert len(result.trees) == 2
    assert {len(values) for values in result.history.values()} == {2}


def test_interrupt_before_the_first_round_is_raised() -> None:
    class Impatient(Scripted):
        def rounds(self, problem: Problem, state: Any, n_rounds: int) -> Iterator[Round]:
            raise KeyboardInterrupt

    backend = NumpyBackend()
    for trees in ([], [constant_tree(np.array([0.0, 1.0]))] * 3):  # the caller still has the model it wants to continue
        with pytest.raises(KeyboardInterrupt):
            train(Impatient([1.0] * 9), one_row(0, backend), n_rounds=9, initial_rounds=[[tree] for tree in trees])


def test_other_exceptions_are_not_caught() -> None:
    def fail(progress: Progress) -> None:
        raise RuntimeError("full disk")

    with pytest.raises(RuntimeError, match="full disk"):
        scripted_run([1.0] * 3, callbacks=[fail])


def test_booster_that_ends_by_itself() -> None:
    result, _ = scripted_run([1.0] * 3, n_rounds=10)
    assert len(result.trees) == 3
    assert result.reason == "the weak learner has nothing left to learn"


def test_no_more_rounds_than_asked_for() -> None:
    result, booster = scripted_run([1.0] * 9, n_rounds=2)
    assert len(result.trees) == len(booster.log) == 2


# ---- early stopping ----------------------------------------------------------------------------------------------------------

# Scores of class 1 after each round: -1, 1, 2, -1, -1, 1, ...; the validation error is 0 where they are above 0.
SCRIPT = [-1.0, 2.0, 1.0, -3.0, 0.0, 2.0, -2.0, 0.0, 0.0, 0.0]
ERRORS = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0]


def test_patience_keeps_the_first_best_round() -> None:
    for patience, n_run in ((1, 3), (2, 4), (4, 6), (20, 10)):
        result, _ = scripted_run(SCRIPT, stopping=Patience(patience))
        assert result.history["valid_error"] == ERRORS[:n_run]
        assert len(result.trees) == 2
        assert [tree.values[0, 1] for tree in result.trees] == SCRIPT[:2]
        assert result.reason == ("early stopping" if n_run < 10 else "n_estimators reached")


@pytest.mark.slow
def test_longer_patience_gives_the_same_model_if_nothing_better_comes(backend: Backend) -> None:
    rng = np.random.default_rng(3)
    noise = replace(OTHER, signs=OTHER.signs[rng.permutation(60)])
    short, long = (fit(BOOSTER, DATA, backend, 60, evaluation=noise, stopping=Patience(n)) for n in (10, 50))
    errors = long.history["valid_error"]
    best = errors.index(min(errors)) + 1
    assert len(short.history["valid_error"]) == best + 10 < len(errors)
    assert len(short.trees) == len(long.trees) == best
    assert digest(short.trees, 3) == digest(long.trees, 3)
    assert digest(fit(BOOSTER, DATA, backend, best).trees, 3) == digest(short.trees, 3)


def test_smoothed_error_looks_back() -> None:
    # Means over rounds floor(0.8 T) .. T: 1, 1/2, 0, 1/2, 1, 1/2 of 4 .. 6 = 2/3, ... The lowest is that of T = 3.
    result, _ = scripted_run(SCRIPT, stopping=SmoothedError())
    assert result.history["valid_error"] == ERRORS
    assert len(result.trees) == 3
    result, _ = scripted_run(SCRIPT, stopping=SmoothedError(n_iter_no_change=2, min_rounds=0))
    assert len(result.history["valid_error"]) == 5
    assert len(result.trees) == 3
    assert result.reason == "early stopping"


def test_stopping_looks_at_the_first_set() -> None:
    backend = NumpyBackend()
    good, bad = one_row(1, backend), one_row(0, backend)
    for sets, kept in (({"a": good, "b": bad}, 2), ({"b": bad, "a": good}, 1)):
        # The row of class 0 is right as long as the score of class 1 is at most 0: first in round 1.
        result = train(Scripted(SCRIPT), bad, n_rounds=10, evaluation=sets, stopping=Patience(20))
        assert len(result.trees) == kept


def test_interrupt_keeps_the_best_round() -> None:
    result, _ = scripted_run(SCRIPT, stopping=Patience(20), callbacks=[raise_at(5)])
    assert result.reason == "interrupted"
    assert result.history["valid_error"] == ERRORS[:5]
    assert len(result.trees) == 2


# ---- continuing --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["discrete", "real"])
def test_continued_training_is_one_long_training(backend: Backend, variant: Any) -> None:
    booster = AdaBoostMH(HammingTree(3), "single-label", variant)
    long = fit(booster, DATA, backend, 15, evaluation=OTHER)
    for k in (0, 1, 9, 15):
        short = fit(booster, DATA, backend, k, evaluation=OTHER)
        more = fit(booster, DATA, backend, 15, evaluation=OTHER, initial_rounds=short.rounds, history=short.history)
        assert digest(more.trees, 3) == digest(long.trees, 3)
        assert {len(values) for values in more.history.values()} == {15}
        assert all(more.history[key] == long.history[key] for key in long.history if key != "seconds")
        assert more.history["seconds"] == sorted(more.history["seconds"])
        assert len(short.trees) == k  # the caller's model is not touched


def test_continuing_a_truncated_model_forgets_the_later_rounds() -> None:
    # Early stopping left a history of 10 rounds for 2 trees.
    first, _ = scripted_run(SCRIPT, stopping=Patience(20))
    more, _ = scripted_run(SCRIPT, n_rounds=5, initial_rounds=first.rounds, history=first.history)
    assert more.history["valid_error"] == ERRORS[:5]
    assert len(more.trees) == 5


def test_nothing_to_do() -> None:
    first, _ = scripted_run(SCRIPT, n_rounds=4)
    more, booster = scripted_run(SCRIPT, n_rounds=3, initial_rounds=first.rounds, history=first.history)
    assert len(more.trees) == 4
    assert booster.log == []
    assert more.history == first.history


# ---- progress ----------------------------------------------------------------------------------------------------------------


def test_verbose_prints_a_line_every_so_many_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    scripted_run(SCRIPT, verbose=4)
    lines = capsys.readouterr().out.splitlines()
    # In round 4 the score of class 1 is -1, in round 8 too: the training row is right, the validation row wrong.
    assert [line.rsplit("  ", 1)[0] for line in lines] == [
        f"round {n}  train error 0.00%  valid error 100.00%  loss 0.25" for n in (4, 8)
    ]


def test_verbose_shows_what_mistakes_cost(capsys: pytest.CaptureFixture[str]) -> None:
    scripted_run(SCRIPT, verbose=4, costs=np.array([[0.0, 1.0], [12.5, 0.0]]))
    expected = "round 4  train error 0.00%  valid error 100.00%  train cost 0  valid cost 12.5  loss 0.25"
    assert capsys.readouterr().out.splitlines()[0].rsplit("  ", 1)[0] == expected


def test_verbose_one_shows_a_bar_and_zero_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scripted_run(SCRIPT, verbose=0)
    assert capsys.readouterr() == ("", "")
    scripted_run(SCRIPT, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "10/10" in err
