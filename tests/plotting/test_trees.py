"""Importances, trees and decision maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVR

import gpuboost
from gpuboost.plotting.decision_map import others
from gpuboost.plotting.labels import column_number, count_text, percent_text, text
from gpuboost.plotting.trees import conditions, threshold
from tests.plotting.fitted import COSTS, KINDS, NAMES, flowers, model


def texts(axes: Any) -> list[str]:
    return [one.get_text() for one in axes.texts]


def test_importances_are_the_bars() -> None:
    fitted = model()
    axes = fitted.plot.importances()
    order = np.argsort(-fitted.feature_importances_, kind="stable")
    assert [bar.get_width() for bar in axes.patches] == (100 * fitted.feature_importances_[order]).tolist()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [NAMES[i] for i in order]
    assert axes.yaxis_inverted()


def test_the_first_importances() -> None:
    shares = model().feature_importances_
    axes = model().plot.importances(top=1)
    assert [bar.get_width() for bar in axes.patches] == [100 * shares.max()]
    assert axes.get_title() == "The 1 most important of 3 columns"
    assert percent_text(1 - shares.max()) in axes.get_xlabel()


def test_a_tree_has_its_thresholds_names_and_votes() -> None:
    fitted = model()
    tree = fitted.ensemble_.tree(2)
    axes = fitted.plot.tree(2)
    assert axes.get_title() == f"Tree 2 (round 3), {tree.n_leaves} leaves"
    drawn = texts(axes)
    for node, feature in enumerate(tree.feature.tolist()):
        value = fitted.bin_mapper_.cuts(feature)[tree.cut[node] - 1]
        assert NAMES[feature] in drawn
        left, right = conditions(fitted, tree, node)
        assert left in drawn
        assert right in drawn
        assert float(left.split()[1]) == pytest.approx(value, rel=1e-5)
        assert left.endswith("or missing") == (feature == 0 and tree.missing_left[node])
        assert right.endswith("or missing") == (feature == 0 and not tree.missing_left[node])
    # Bars go down the y axis for negative heights, which is up in the picture: the axis is turned.
    heights = np.array([bar.get_height() for bar in axes.patches]).reshape(tree.n_leaves, 3)
    rows = sorted((-heights / 0.45 * abs(tree.values).max()).round(12).tolist())
    assert rows == sorted(tree.values.round(12).tolist())
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_leaves_are_drawn_in_the_order_of_the_branches() -> None:
    fitted = gpuboost.fit(np.arange(4.0)[:, None], [0, 1, 2, 1], n_estimators=1, max_leaf_nodes=4, device="numpy")
    tree = fitted.ensemble_.tree(0)
    axes = fitted.plot.tree()
    leaves = [np.array([-bar.get_height() for bar in axes.patches[i : i + 3]]) for i in range(0, 3 * tree.n_leaves, 3)]
    assert [axes.patches[3 * i].get_y() for i in range(tree.n_leaves)] == list(range(tree.n_leaves))
    # There is one column: the larger its value, the lower the leaf, and its score is what is drawn there.
    cuts = sorted(float(fitted.bin_mapper_.cuts(0)[cut - 1]) for cut in tree.cut)
    for x in range(4):
        drawn = leaves[int(np.searchsorted(cuts, x, "right"))]
        assert drawn / 0.45 * abs(tree.values).max() == pytest.approx(fitted.decision_function([[x]])[0])


def test_large_trees_are_truncated_with_a_note() -> None:
    fitted = model(max_leaf_nodes=8, n_estimators=1)
    tree = fitted.ensemble_.tree(0)
    assert tree.n_leaves > 4
    axes = fitted.plot.tree(max_leaves=3)
    missing = [int(one.split()[1]) for one in texts(axes) if one.startswith("+ ")]
    n_drawn = 3 - len(missing)
    assert sum(missing) + n_drawn == tree.n_leaves
    assert axes.get_title() == f"Tree 0 (round 1); {sum(missing)} of its {tree.n_leaves} leaves are not drawn"
    assert len(axes.patches) == 3 * n_drawn


def test_trees_of_one_leaf_and_of_one_class() -> None:
    with pytest.warns(UserWarning, match="no column of X"):
        constant = gpuboost.fit(np.zeros((9, 2)), np.arange(9) % 3, n_estimators=1, device="numpy")
    assert constant.plot.tree().get_title() == "Tree 0 (round 1), one leaf"
    two = model("abc-boost", n_estimators=2).plot.tree(3)
    assert two.get_title().startswith("Tree 3 (round 2)")
    heads = [one for one in texts(two) if one in {*KINDS}]
    assert len(set(heads)) == 2


def test_map_draws_predictions() -> None:
    X, y = flowers()
    fitted = model()
    axes = fitted.plot.decision_map(X, y, ("length", "width"), at={"noise": 2}, n_points=12)
    image = np.asarray(axes.images[0].get_array())
    left, right, bottom, top = axes.images[0].get_extent()
    step = (right - left) / 12, (top - bottom) / 12
    x, width = np.meshgrid(left + step[0] * (np.arange(12) + 0.5), bottom + step[1] * (np.arange(12) + 0.5))
    rows = X.iloc[:0].reindex(range(144)).assign(width=width.ravel(), length=x.ravel(), noise=2.0)
    classes = np.searchsorted(fitted.classes_, fitted.predict(rows)).reshape(12, 12)
    hues = [image[classes == k] - 1 for k in np.unique(classes)]
    for hue in hues:  # one colour a class, mixed with more or less white
        unit = hue / np.linalg.norm(hue, axis=1, keepdims=True)
        assert unit == pytest.approx(np.broadcast_to(unit[0], unit.shape), abs=1e-9)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("length", "width")


def test_map_draws_rows_with_both_values() -> None:
    X, y = flowers()
    axes = model().plot.decision_map(X, y, (1, 0), n_points=5)
    drawn = np.vstack([one.get_offsets() for one in axes.collections if hasattr(one, "get_sizes")])
    shown = X[["length", "width"]].dropna().to_numpy()
    assert sorted(drawn.tolist()) == sorted(shown.tolist())
    assert {one.get_text() for one in axes.get_legend().get_texts()} == set(KINDS)


def test_map_of_a_model_without_probabilities_and_of_two_columns() -> None:
    X, y = flowers()
    two = X[["width", "length"]]
    fitted = gpuboost.RebelClassifier(n_estimators=3, cost_matrix=COSTS, device="numpy").fit(two, y)
    axes = fitted.plot.decision_map(two, n_points=4)
    assert axes.get_title() == "Predicted class"
    assert axes.images[0].get_array().shape == (4, 4, 3)


@pytest.mark.parametrize(
    ("at", "fixed"),
    [
        ({}, "the other column at its median"),
        ({"noise": 2.5}, "noise = 2.5"),
        ({2: float("nan")}, "noise = missing"),
    ],
)
def test_the_title_says_at_what_the_others_are_fixed(at: Any, fixed: str) -> None:
    axes = model().plot.decision_map(flowers()[0], columns=(0, 1), at=at, n_points=4)
    assert axes.get_title() == f"Predicted class\n{fixed}"


@pytest.mark.parametrize(
    ("given", "fixed"),
    [
        ({}, ["the other 4 columns at their medians"]),
        ({2: 1.0, 3: 0.125}, ["c = 1, d = 0.125", "the other 2 columns at their medians"]),
        ({2: 1.0, 3: 0.0, 4: 0.0}, ["3 columns at given values", "the other column at its median"]),
        ({2: 1.0, 3: 0.0, 4: 0.0, 5: 0.0}, ["4 columns at given values"]),
    ],
)
def test_what_is_said_of_many_columns_that_are_fixed(given: dict[int, float], fixed: list[str]) -> None:
    assert others(list("abcdef"), given) == fixed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "the model has 3 columns: choose two"),
        ({"columns": ("width", "lenght")}, "no column 'lenght'.*did you mean 'length'"),
        ({"columns": ("width", 3)}, "no column 3"),
        ({"columns": ("width", "width")}, "two different"),
        ({"columns": "width"}, "two names or numbers"),
        ({"columns": (0, 1, 2)}, "two names or numbers"),
        ({"columns": (0, 1), "at": {"width": 1}}, "one of the two"),
        ({"columns": (0, 1), "at": {"colour": 1}}, "no column 'colour'"),
        ({"columns": (0, 1), "at": {2: "x"}}, "must be a number"),
        ({"columns": (0, 1), "n_points": 1}, "n_points must be"),
    ],
)
def test_maps_that_cannot_be_drawn(options: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        model().plot.decision_map(flowers()[0], **options)


@pytest.mark.parametrize("number", [-1, 8, 1.0, True])
def test_trees_that_are_not_there(number: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="number must be an integer from 0 to 7"):
        model().plot.tree(number)


def test_regressors_have_no_trees() -> None:
    X, y = flowers()
    fitted = gpuboost.GambleClassifier(n_estimators=1, regressor=SVR(), device="numpy").fit(X.fillna(0), y)
    for draw in (fitted.plot.tree, fitted.plot.importances):
        with pytest.raises(ValueError, match="boosts a regressor"):
            draw()


def test_columns_without_names() -> None:
    X, y = flowers()
    fitted = gpuboost.fit(X.to_numpy(), y, n_estimators=1, device="numpy")
    assert column_number(fitted, 2) == column_number(fitted, "column 2") == 2
    assert "column" in fitted.plot.importances().get_yticklabels()[0].get_text()


def test_numbers_and_labels_as_text() -> None:
    assert [count_text(n) for n in (0.5, 12.0, 99_999.0, 123_456.0, 1.5e7, 2.0e10)] == [
        "0.5",
        "12",
        "99999",
        "123.5k",
        "15M",
        "20G",
    ]
    assert [percent_text(p) for p in (0.0, 1.0, 0.004, 0.5, 0.9951, 1e-9)] == [
        *("0 %", "100 %", "0.4 %", "50 %", "99.5 %", "< 0.1 %"),
    ]
    assert [threshold(x) for x in (2.0, 0.1, 2.4500000000000002, 12345678.5, -1e300)] == [
        "2",
        "0.1",
        "2.45",
        "1.23457e+07",
        "-1e+300",
    ]
    assert text("a\nb  c") == "a b c"
    assert text("x" * 30) == "x" * 23 + "…"
