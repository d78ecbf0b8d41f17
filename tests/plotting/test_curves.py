"""Pictures of the training: the lines are the history."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gpuboost
from gpuboost.plotting import HistoryPlots
from gpuboost.stopping import SmoothedError
from tests.plotting.fitted import COSTS, flowers, model


def lines(axes: Any) -> dict[str, tuple[list[float], list[float]]]:
    return {str(line.get_label()): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()}


def test_every_recorded_quantity_has_a_panel_with_all_sets() -> None:
    fitted = model()
    figure = fitted.plot.learning_curves()
    panels = {axes.get_title(): lines(axes) for axes in figure.axes if axes.get_title()}
    assert list(panels) == ["Loss", "Error", "Edge of the weak learner"]
    history = fitted.history_
    rounds = list(range(1, 9))
    assert panels["Loss"] == {
        "training": (rounds, history["train_loss"]),
        "valid": (rounds, history["valid_loss"]),
        "valid 1": (rounds, history["valid_1_loss"]),
    }
    for name, key in (("training", "train"), ("valid", "valid"), ("valid 1", "valid_1")):
        assert_array_equal(panels["Error"][name][1], 100 * np.array(history[f"{key}_error"]))
    assert panels["Edge of the weak learner"] == {"training": (rounds, history["edge"])}


def test_costs_are_drawn_where_they_are_recorded() -> None:
    X, y = flowers()
    fitted = gpuboost.RebelClassifier(n_estimators=3, cost_matrix=COSTS, device="numpy").fit(X, y, eval_set=flowers(30, 1))
    axes = fitted.plot.learning_curves(what="cost")
    assert {name: y for name, (_, y) in lines(axes).items()} == {
        "training": fitted.history_["train_cost"],
        "valid": fitted.history_["valid_cost"],
    }


def test_early_stopping_shows_its_curve_and_its_choice() -> None:
    fitted = model(stopping="smoothed", n_estimators=60)
    errors = fitted.history_["valid_error"]
    drawn = lines(fitted.plot.learning_curves(what="error"))
    rounds, smoothed = drawn["smoothed error of valid (eq. 15)"]
    assert rounds == list(range(51, 61))  # those that the rule may keep
    assert_array_equal(smoothed, 100 * SmoothedError().smoothed(errors)[50:])
    best = SmoothedError().best(errors)
    assert rounds[int(np.argmin(smoothed))] == best
    assert drawn[f"kept: {best} of 60 rounds"][0] == [best, best]
    assert fitted.n_estimators_ == best


def test_patience_shows_its_choice_without_a_smoothed_curve() -> None:
    fitted = model(stopping="patience")
    drawn = lines(fitted.plot.learning_curves(what="error"))
    best = int(np.argmin(fitted.history_["valid_error"])) + 1
    assert drawn[f"kept: {best} of 8 rounds"][0] == [best, best]
    assert not any(name.startswith("smoothed") for name in drawn)


def test_smoothed_error_of_a_plain_training() -> None:
    history = {"train_error": [0.5, 0.25, 0.0, 0.0, 0.0], "valid_error": [0.5, 0.4, 0.3, 0.4, 0.5]}
    drawn = lines(HistoryPlots(history).learning_curves(what="error", smoothed=True))
    # Means over floor(0.8 T) .. T: rounds 1, 1-2, 2-3, 3-4, 4-5.
    assert drawn["smoothed error of valid (eq. 15)"][1] == pytest.approx([50, 45, 35, 35, 45])
    assert drawn["chosen: 3 of 5 rounds"][0] == [3, 3] or drawn["chosen: 4 of 5 rounds"][0] == [4, 4]


def test_given_axes_are_drawn_into() -> None:
    from matplotlib import pyplot

    _, axes = pyplot.subplots()
    assert model().plot.learning_curves(axes) is axes
    assert axes.get_title() == "Error"
    assert axes.get_ylabel() == "% of the weight"


def test_base_classes() -> None:
    fitted = model("abc-boost")
    axes = fitted.plot.base_classes()
    drawn = axes.collections[0].get_offsets()
    assert_array_equal(drawn, np.column_stack([np.arange(1, 9), fitted.history_["base_class"]]))
    assert [tick.get_text() for tick in axes.get_yticklabels()] == sorted(["daisy", "$rose$ & co", "_tulip"])
    beside = [tick.get_text() for tick in axes.child_axes[0].get_yticklabels()]
    counts = np.bincount(np.array(fitted.history_["base_class"], int), minlength=3)
    assert [float(text.removesuffix(" %")) for text in beside] == pytest.approx(100 * counts / 8, abs=0.5)


def test_base_classes_show_which_rounds_are_kept() -> None:
    fitted = model("abc-boost", stopping="patience", n_estimators=20)
    kept, n_rounds = fitted.n_estimators_, len(fitted.history_["base_class"])
    assert kept < n_rounds
    axes = fitted.plot.base_classes()
    label = f"kept: {kept} of {n_rounds} rounds"
    assert lines(axes)[label][0] == [kept, kept]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [label]
    assert axes.child_axes[0].get_ylabel() == "share of the\nkept rounds"
    counts = np.bincount(np.array(fitted.history_["base_class"][:kept], int), minlength=3)
    beside = [tick.get_text() for tick in axes.child_axes[0].get_yticklabels()]
    assert [float(text.removesuffix(" %")) for text in beside] == pytest.approx(100 * counts / kept, abs=0.5)
    assert lines(fitted.plot.candidate_losses())[label][0] == [kept, kept]


def test_candidate_losses() -> None:
    # Two searches: the excess over the best, in percent, is (0, 50, 100) and (25, 0, 75); the round between had none.
    history = {"base_class": [0, 0, 1], "candidate_losses": [[2.0, 3.0, 4.0], [], [1.25, 1.0, 1.75]]}
    axes = HistoryPlots(history).candidate_losses()
    assert lines(axes) == {"worst candidate": ([1, 3], [100, 75]), "median candidate": ([1, 3], [75, 50])}
    assert axes.collections[0].get_offsets().tolist() == [[1, 50], [1, 100], [3, 25], [3, 75]]


def test_real_candidate_losses() -> None:
    fitted = model("abc-boost", gap=3)
    searched = [losses for losses in fitted.history_["candidate_losses"] if losses]
    rounds, worst = lines(fitted.plot.candidate_losses())["worst candidate"]
    assert rounds == [1, 4, 7]
    assert worst == pytest.approx([100 * (max(losses) / min(losses) - 1) for losses in searched])


@pytest.mark.parametrize(
    ("history", "method", "options", "words"),
    [
        ({"train_loss": [1.0]}, "base_classes", {}, "no base class"),
        ({"train_loss": [1.0]}, "candidate_losses", {}, "no losses of candidates"),
        ({"train_loss": [1.0]}, "learning_curves", {"what": "cost"}, r"no 'cost' to draw by rounds, it has \['loss'\]"),
        ({"train_loss": [1.0]}, "learning_curves", {"smoothed": True}, "needs the errors of an evaluation set"),
        ({"valid_error": [float("nan"), 0.5]}, "learning_curves", {"smoothed": True}, "of every round"),
        ({"base_class": [1]}, "learning_curves", {}, "neither loss nor error"),
    ],
)
def test_what_a_history_has_not(history: Any, method: str, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        getattr(HistoryPlots(history), method)(**options)


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ({}, "empty"),
        ([], "dict of lists"),
        ({"a": 1}, "dict of lists"),
        ({"a": [1], "b": []}, "one length"),
        ({"a": []}, "empty"),
    ],
)
def test_histories_that_are_none(history: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        HistoryPlots(history)


def test_a_stream_shows_errors_bound_and_rows_drawn() -> None:
    fitted = model("filterboost", examples_per_round=50)
    history = fitted.history_
    left, right = fitted.plot.stream().axes
    percent = {name: 100 * np.array(history[name]) for name in ("train_error", "valid_error", "valid_1_error", "bound")}
    drawn = lines(left)
    assert {name: x for name, (x, _) in drawn.items()} == {name: list(range(1, 9)) for name in drawn}
    assert_array_equal(drawn["rows drawn, before they are trained on"][1], percent["train_error"])
    assert_array_equal(drawn["valid"][1], percent["valid_error"])
    assert_array_equal(drawn["valid 1"][1], percent["valid_1_error"])
    assert_array_equal(drawn["bound $2 p_t$"][1], percent["bound"])
    assert percent["bound"][0] > 105 >= left.get_ylim()[1]  # with three classes 2 p_1 is 4/3 or more
    assert right.get_lines()[0].get_ydata().tolist() == history["draws"]
    assert right.get_title() == f"Rows drawn: {sum(history['draws']):,.0f}"


def test_a_stream_marks_the_rounds_that_were_kept() -> None:
    fitted = model("filterboost", stopping="patience", examples_per_round=50)
    left = fitted.plot.stream().axes[0]
    best = fitted.n_estimators_
    assert lines(left)[f"kept: {best} of {len(fitted.history_['draws'])} rounds"][0] == [best, best]


def test_only_filterboost_draws_rows() -> None:
    with pytest.raises(ValueError, match="the history has no 'bound': only boosters that draw their rows, FilterBoost"):
        model().plot.stream()
