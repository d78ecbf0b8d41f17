"""Cost matrices, and what is decided and measured with them."""

from __future__ import annotations

import math
import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import gpuboost
from gpuboost import GambleClassifier, RebelClassifier, cost_scorer, mean_cost, min_cost_labels
from gpuboost.costs import metrics as decisions
from gpuboost.costs.matrix import check_cost_matrix

LABELS = ["a", "b", "c"]
COSTS = [[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 6.0, 0.0]]  # COSTS[true][predicted]
TABLE = {true: dict(zip(LABELS, row, strict=True)) for true, row in zip(LABELS, COSTS, strict=True)}


def without_diagonal(table: dict[Any, dict[Any, float]]) -> dict[Any, dict[Any, float]]:
    return {true: {k: cost for k, cost in row.items() if k != true} for true, row in table.items()}


# ---- what is accepted --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        COSTS,
        np.array(COSTS, np.float32),
        np.array(COSTS, int),
        np.asfortranarray(COSTS),
        np.array(COSTS, object),
        [[Fraction(cost) for cost in row] for row in COSTS],
        TABLE,
        without_diagonal(TABLE),
        pd.DataFrame(COSTS, index=LABELS, columns=LABELS),
        pd.DataFrame(COSTS, index=LABELS, columns=LABELS).loc[["c", "a", "b"], ["b", "c", "a"]],
        pd.DataFrame(COSTS, index=LABELS, columns=LABELS, dtype=object),
        {true: TABLE[true] for true in reversed(LABELS)},
    ],
)
def test_a_row_is_a_true_class_in_every_form(given: Any) -> None:
    costs = check_cost_matrix(given, np.array(LABELS))
    assert costs.dtype == np.float64
    assert costs.tolist() == COSTS


def test_the_caller_keeps_the_array() -> None:
    given = np.array(COSTS)
    given.flags.writeable = False
    costs = check_cost_matrix(given, LABELS)
    costs[:] = 7.0
    assert given.tolist() == COSTS


@pytest.mark.parametrize("classes", [np.array([-1, 1]), np.array([False, True]), np.array([0.5, 2.0]), np.array([b"n", b"y"])])
def test_labels_of_any_type(classes: np.ndarray) -> None:
    first, second = classes
    assert check_cost_matrix({first: {second: 10}, second: {first: 1}}, classes).tolist() == [[0, 10], [1, 0]]
    frame = pd.DataFrame([[0, 1], [10, 0]], index=classes[::-1], columns=classes[::-1])
    assert check_cost_matrix(frame, classes).tolist() == [[0, 10], [1, 0]]


def test_labels_are_compared_by_value() -> None:
    assert check_cost_matrix({1.0: {2.0: 5}, 2.0: {1.0: 6}}, np.array([1, 2])).tolist() == [[0, 5], [6, 0]]


def test_what_is_labelled_may_know_more_classes() -> None:
    """So a fold that lacks a class uses the costs of all."""
    assert check_cost_matrix(TABLE, ["a", "c"]).tolist() == [[0, 2], [5, 0]]
    assert check_cost_matrix(pd.DataFrame(COSTS, LABELS, LABELS), ["b", "c"]).tolist() == [[0, 4], [6, 0]]
    assert check_cost_matrix(TABLE, ["b"]).tolist() == [[0]]


@pytest.mark.parametrize("given", [[[0]], {"a": {}}, {"a": {"a": 0.0}}, np.zeros((1, 1))])
def test_one_class_has_no_mistakes(given: Any) -> None:
    assert check_cost_matrix(given, ["a"]).tolist() == [[0.0]]


def test_a_negative_zero_is_zero() -> None:
    assert not np.signbit(check_cost_matrix([[-0.0, 1], [1, -0.0]], [0, 1])).any()


def test_a_class_may_cost_nothing_to_miss_or_to_predict() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_cost_matrix([[0, 1, 2], [0, 0, 0], [5, 6, 0]], LABELS)[1].tolist() == [0, 0, 0]
        assert check_cost_matrix([[0, 0, 1], [1, 0, 1], [1, 0, 0]], LABELS)[:, 1].tolist() == [0, 0, 0]


# ---- what is not -------------------------------------------------------------------------------------------------------------


def changed(i: int, j: int, cost: Any) -> list[list[Any]]:
    costs: list[list[Any]] = [list(row) for row in COSTS]
    costs[i][j] = cost
    return costs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            changed(0, 1, -1.0),
            r"predicting 'b' where 'a' is true \(row 0, column 1 of cost_matrix\) must be a finite.*got -1.0",
        ),
        (changed(2, 0, np.nan), r"predicting 'a' where 'c' is true \(row 2, column 0 .*not negative, got nan"),
        (changed(2, 0, np.inf), "must be a finite number that is not negative, got inf"),
        (changed(2, 0, None), "must be a finite number that is not negative, got None"),
        (changed(1, 1, 0.5), r"predicting 'b' where 'b' is true .* must be 0, as the right class costs nothing .*got 0.5"),
        (changed(1, 0, 1e101), "must be 0 or from 1e-100 to 1e.100: choose another unit of cost, got 1e.101"),
        (changed(1, 0, 1e-101), "choose another unit of cost, got 1e-101"),
        (changed(1, 0, 10**400), "must be a finite number that is not negative, got 1000"),
        (np.zeros((3, 3)), r"zero everywhere: no mistake among the classes \['a', 'b', 'c'\] costs anything"),
        ({**TABLE, "a": {"b": 0, "c": 0}, "d": {"a": 1, "b": 1, "c": 1}}, "has no cost for the predicted class 'd'"),
        (COSTS[:2], r"a row for every true class and .* of \['a', 'b', 'c'\], the shape \(3, 3\), got the shape \(2, 3\)"),
        (np.zeros((2, 2)), r"the shape \(3, 3\), got the shape \(2, 2\)"),
        ([0, 1, 2], r"matrix of numbers, a pandas DataFrame or a dict of dicts by label, got an array of shape \(3,\)"),
        ([[0, 1], [2]], "must be a matrix of numbers"),
        ("balanced", "must be a matrix of numbers, .* got 'balanced'"),
        (7, "must be a matrix of numbers, .* got 7"),
        (np.array(COSTS, complex), "got an array of shape .* and dtype complex128"),
        (np.array(COSTS, str), "got an array of shape .* and dtype <U"),
        (np.ma.masked_equal(COSTS, 4.0), "some of its entries are masked"),
        ({"a": TABLE["a"], "b": TABLE["b"]}, r"no row for the true class 'c', only for \['a', 'b'\]"),
        ({**TABLE, "a": {"b": 1}}, "cost_matrix\\['a'\\] has no cost for the predicted class 'c'"),
        ({**TABLE, "b": 3.0}, r"cost_matrix\['b'\] must be a dict of costs by predicted label, got 3.0"),
        ({**TABLE, "d": {"a": 1}}, r"cost_matrix\['a'\] has no cost for the predicted class 'd'"),
        ({**TABLE, "a": {**TABLE["a"], "x": 1}}, r"no row for the true class 'x', only for \['a', 'b', 'c'\]"),
        ({**TABLE, "c": {"a": 5, "b": "6"}}, r"predicting 'b' where 'c' is true \(row 2, column 1 .*got '6'"),
        ({0: {1: 1, 2: 1}, 1: {0: 1, 2: 1}, 2: {0: 1, 1: 1}}, r"no costs for the class 'a'; its labels are \[0, 1, 2\]"),
        (pd.DataFrame(COSTS), r"no costs for the class 'a'; its labels are \[0, 1, 2\]"),
        (pd.DataFrame(COSTS, LABELS, ["a", "b", "b"]), "must have one column for each label, but 'b' stands 2 times"),
        (pd.DataFrame(COSTS, ["a", "c", "c"], LABELS), "must have one row for each label, but 'c' stands 2 times"),
    ],
)
def test_what_cannot_be_costs_is_named(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_cost_matrix(given, np.array(LABELS))


def test_a_frame_without_row_labels() -> None:
    with pytest.raises(TypeError, match="cost_matrix is a polars DataFrame, which has no row labels; pass a pandas DataFrame"):
        check_cost_matrix(pl.DataFrame(COSTS, schema=LABELS), LABELS)


def test_labels_must_be_those_of_the_classes_and_not_their_text() -> None:
    with pytest.raises(ValueError, match=r"no costs for the class 0; its labels are \['0', '1'\]"):
        check_cost_matrix({"0": {"1": 1}, "1": {"0": 1}}, [0, 1])


def test_a_part_of_the_classes_without_costs() -> None:
    table = {"a": {"b": 0, "c": 1}, "b": {"a": 0, "c": 1}, "c": {"a": 1, "b": 1}}
    with pytest.raises(ValueError, match=r"no mistake among the classes \['a', 'b'\] costs anything"):
        check_cost_matrix(table, ["a", "b"])


# ---- the labels of least expected cost ---------------------------------------------------------------------------------------


def test_least_expected_costs_by_hand() -> None:
    """COSTS and (1/2, 1/4, 1/4): a costs 3/4 + 5/4 = 2, b 1/2 + 6/4 = 2, c 2/2 + 4/4 = 2; ties go to the first class."""
    assert min_cost_labels([[0.5, 0.25, 0.25]], COSTS).tolist() == [0]
    # (1/4, 1/2, 1/4): a 11/4, b 7/4, c 10/4. (1/8, 1/8, 3/4): a 33/8, b 37/8, c 6/8. (0, 1/2, 1/2): a 4, b 3, c 2.
    proba = np.array([[0.25, 0.5, 0.25], [0.125, 0.125, 0.75], [0.0, 0.5, 0.5]])
    assert min_cost_labels(proba, TABLE, LABELS).tolist() == ["b", "c", "c"]
    # A class that costs nothing to miss is not there: (1/4, 3/4) of a and b leave a alone.
    assert min_cost_labels([[0.25, 0.75]], [[0, 1], [0, 0]]).tolist() == [0]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    """Rows of 64ths that sum to 1, and small integer costs: every product and sum is exact, so that ties are ties."""
    k = draw(st.integers(1, 5))
    costs = [[0 if i == j else draw(st.integers(0, 3)) for j in range(k)] for i in range(k)]
    if k > 1:
        costs[0][k - 1] = 1
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        cuts = sorted(draw(st.lists(st.integers(0, 64), min_size=k - 1, max_size=k - 1)))
        rows.append([high - low for low, high in zip([0, *cuts], [*cuts, 64], strict=True)])
    return rows, costs


@settings(deadline=None)
@given(cases())
def test_least_expected_costs_by_brute_force(case: tuple[list[list[int]], list[list[int]]]) -> None:
    rows, costs = case
    expected = []
    for row in rows:
        sums = [sum(Fraction(p, 64) * cost[k] for p, cost in zip(row, costs, strict=True)) for k in range(len(costs))]
        expected.append(sums.index(min(sums)))
    for dtype in (np.float64, np.float32):
        assert min_cost_labels(np.array(rows, dtype) / 64, costs).tolist() == expected


def test_sums_are_taken_in_the_order_of_the_classes() -> None:
    """0.1 + 0.2 + 0.3 is 0.6000000000000001, and 0.3 + 0.2 + 0.1 is 0.6: only the order tells these two classes apart."""
    proba = [[0.1, 0.2, 0.3, 0.4]]
    free = [0.0, 0.0, 0.0, 0.0]
    last = [100.0, 100.0, 100.0, 0.0]
    costs = np.array([free, free, free, last])
    costs[:3, 3] = 1.0  # class 3 costs 0.1 + 0.2 + 0.3
    costs[3, 2] = 1.5  # class 2 costs 0.4 * 1.5 = 0.6000000000000001
    assert 0.1 + 0.2 + 0.3 == 0.4 * 1.5 != 0.3 + 0.2 + 0.1
    assert min_cost_labels(proba, costs).tolist() == [2]


@pytest.mark.parametrize(
    "classes",
    [LABELS, np.array(LABELS), np.array(LABELS, object), [7, 8, 9], np.array([0.5, 1.5, 2.5]), np.array([b"a", b"b", b"c"])],
)
def test_labels_keep_their_dtype(classes: Any) -> None:
    found = min_cost_labels([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], COSTS, classes)
    assert found.dtype == np.asarray(classes).dtype
    assert found.tolist() == [np.asarray(classes).tolist()[k] for k in (0, 2)]
    assert min_cost_labels(np.zeros((0, 3)), COSTS, classes).shape == (0,)


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        ([0.5, 0.25, 0.25], r"shape \(n_rows, n_classes\), got the shape \(3,\)"),
        ([["a", "b", "c"]], "must be numbers"),
        (np.zeros((2, 0)), r"got the shape \(2, 0\)"),
        ([[0.5, 0.5, 0.0], [1.5, -0.5, 0.0]], r"not negative and sum to 1, got \[1.5, -0.5, 0.0\] in row 1"),
        ([[0.5, np.nan, 0.5]], "in row 0, which sum to nan"),
        ([[0.9, 0.9, 0.9]], "in row 0, which sum to 2.7"),
        ([[0.5, 0.3, 0.19]], "in row 0, which sum to 0.99"),
        ([[0.5, 0.5]], r"the shape \(2, 2\), got the shape \(3, 3\)"),
    ],
)
def test_what_cannot_be_probabilities_is_named(proba: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        min_cost_labels(proba, COSTS)


def test_rounded_probabilities_will_do() -> None:
    assert min_cost_labels([[0.333, 0.333, 0.333]], 1 - np.eye(3)).tolist() == [0]


def test_classes_are_distinct() -> None:
    with pytest.raises(ValueError, match="classes must be distinct, but 'a' stands 2 times"):
        min_cost_labels([[0.5, 0.25, 0.25]], COSTS, ["a", "a", "b"])
    with pytest.raises(ValueError, match="classes must be distinct, but 1 stands 2 times"):
        mean_cost([1, 2], [2, 1], COSTS, classes=[1, 2, True])


def test_classes_of_several_types_stay_what_they_are() -> None:
    assert min_cost_labels(np.eye(3), 1 - np.eye(3), ["a", 1, 2.5]).tolist() == ["a", 1, 2.5]


def test_labels_of_several_types_have_no_order() -> None:
    with pytest.raises(TypeError, match="labels in y_true and y_pred must be of one type that can be ordered, got int, str"):
        mean_cost([1, 2], ["a", "b"], 1 - np.eye(4))


def test_a_dict_of_series_is_one_of_dicts() -> None:
    rows = {true: pd.Series(TABLE[true]) for true in TABLE}
    assert check_cost_matrix(rows, LABELS).tolist() == check_cost_matrix(TABLE, LABELS).tolist()
    assert check_cost_matrix(pd.DataFrame(COSTS, LABELS, LABELS).to_dict("index"), LABELS).tolist() == np.array(COSTS).tolist()


def test_classes_name_the_columns() -> None:
    with pytest.raises(ValueError, match="classes must have one entry for each of the 3 columns of proba, got 2"):
        min_cost_labels([[0.5, 0.25, 0.25]], COSTS, ["a", "b"])


# ---- what predictions cost ---------------------------------------------------------------------------------------------------

TRUE, PREDICTED = ["a", "b", "b", "c", "c", "c"], ["a", "a", "c", "b", "b", "c"]  # 0, 3, 4, 6, 6, 0: 19/6 each


@pytest.mark.parametrize("given", [TABLE, COSTS, pd.DataFrame(COSTS, LABELS, LABELS)])
def test_the_mean_cost_by_hand(given: Any) -> None:
    assert mean_cost(TRUE, PREDICTED, given) == 19 / 6
    assert mean_cost(np.array(TRUE, object), pd.Series(PREDICTED, dtype="category"), given) == 19 / 6
    weights = [7, 0, 1, 2, 0, 2]  # 0 + 4 + 12 + 0
    assert mean_cost(TRUE, PREDICTED, given, sample_weight=weights) == 16 / 12
    assert mean_cost(TRUE, PREDICTED, given, sample_weight=np.array(weights) * 1e-300) == 16 / 12


def test_without_costs_it_is_the_error_rate() -> None:
    assert mean_cost(TRUE, PREDICTED) == 4 / 6
    assert mean_cost([1, 2], [1.0, 3.0]) == 0.5  # labels are compared by value
    assert mean_cost([1, 2], ["1", "2"]) == 1.0


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=20))
def test_the_mean_cost_is_a_sum_over_the_confusion_matrix(rows: list[tuple[int, int, int]]) -> None:
    true, predicted, weights = (list(column) for column in zip(*rows, strict=True))
    weights[0] += 1
    table = confusion_matrix(true, predicted, labels=[0, 1, 2], sample_weight=weights)
    expected = Fraction(int((table * np.array(COSTS, int)).sum()), sum(weights))
    assert mean_cost(true, predicted, COSTS, classes=[0, 1, 2], sample_weight=weights) == float(expected)


def test_an_array_needs_its_classes_where_not_all_of_them_stand_in_the_rows() -> None:
    assert mean_cost(["a", "c"], ["c", "c"], COSTS, classes=LABELS) == 1.0
    assert mean_cost(["a", "c"], ["c", "c"], TABLE) == 1.0
    with pytest.raises(ValueError, match=r"of \['a', 'c'\], the shape \(2, 2\), got the shape \(3, 3\)"):
        mean_cost(["a", "c"], ["c", "c"], COSTS)


@pytest.mark.parametrize(
    ("true", "predicted", "options", "message"),
    [
        (
            ["a", "z"],
            ["a", "b"],
            {},
            r"y_true has the label 'z', for which cost_matrix has no costs: its labels are \['a', 'b', 'c'\]",
        ),
        (["a", "b"], ["z", "b"], {}, "y_pred has the label 'z'"),
        (["a", None], ["a", "b"], {}, "missing value in y_true"),
        (["a"], ["a", "b"], {}, "y_true must have one entry for each of the 2 labels in y_pred, got 1"),
        ([], [], {}, "y_pred must have at least one label"),
        (["a"], ["a"], {"sample_weight": [-1.0]}, "sample_weight must be finite and not negative"),
        (np.eye(3), LABELS, {}, r"costs need one label a row, but y_true is an indicator matrix"),
        (["a", "b"], ["a", "b"], {"sample_weight": [0, 0]}, "sample_weight is zero in every row"),
    ],
)
def test_what_has_no_cost(true: Any, predicted: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        mean_cost(true, predicted, TABLE, **options)


# ---- in scikit-learn ---------------------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(90, 3))
Y = np.array(LABELS)[np.digitize(X[:, 0] + 0.7 * X[:, 1], [-0.5, 0.5])]
FOLDS = KFold(3, shuffle=True, random_state=0)


def by_hand(model: Any, costs: Any, *, min_cost: bool) -> list[float]:
    """The scores of FOLDS."""
    scores = []
    for train, test in FOLDS.split(X):
        fitted = clone(model).fit(X[train], Y[train])
        predicted = fitted.predict(X[test])
        if min_cost:
            predicted = min_cost_labels(fitted.predict_proba(X[test]), costs, fitted.classes_)
        numbers = [(LABELS.index(t), LABELS.index(p)) for t, p in zip(Y[test], predicted, strict=True)]
        scores.append(-math.fsum(COSTS[t][p] for t, p in numbers) / len(test))
    return scores


@pytest.mark.parametrize("min_cost", [False, True])
@pytest.mark.parametrize("model", [GambleClassifier(n_estimators=3, device="cpu", n_jobs=1), LogisticRegression()])
@pytest.mark.parametrize("given", [COSTS, TABLE])
def test_scores_are_costs_with_a_minus_sign(model: Any, given: Any, min_cost: bool) -> None:
    scorer = cost_scorer(given, min_cost=min_cost)
    scores = cross_val_score(make_pipeline(StandardScaler(), model), X, Y, scoring=scorer, cv=FOLDS)
    assert scores.tolist() == by_hand(make_pipeline(StandardScaler(), model), given, min_cost=min_cost)
    again = cross_validate(model, X, Y, scoring={"cost": pickle.loads(pickle.dumps(scorer)), "accuracy": "accuracy"}, cv=FOLDS)
    assert again["test_cost"].tolist() == by_hand(model, given, min_cost=min_cost)


def test_the_two_ways_differ() -> None:
    model = LogisticRegression()
    assert by_hand(model, COSTS, min_cost=True) != by_hand(model, COSTS, min_cost=False)


def test_a_grid_search_by_costs() -> None:
    grid = {"n_estimators": [1, 4]}
    model = GambleClassifier(device="cpu", n_jobs=1, max_leaf_nodes=3)
    search = clone(GridSearchCV(model, grid, scoring=cost_scorer(TABLE), cv=FOLDS)).fit(X, Y)
    means = [np.mean(by_hand(clone(model).set_params(n_estimators=n), TABLE, min_cost=False)) for n in grid["n_estimators"]]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, rtol=1e-14)
    assert search.best_params_["n_estimators"] == grid["n_estimators"][int(np.argmax(means))]
    assert search.score(X, Y) == -mean_cost(Y, search.predict(X), TABLE)


@pytest.mark.parametrize("wrap", [clone, make_pipeline])
def test_both_ways_compete_in_a_search(wrap: Any) -> None:
    """A model that was trained by costs has no probabilities to decide by: what it predicts is scored."""
    prefix = "" if wrap is clone else "rebelclassifier__"
    model = wrap(RebelClassifier(device="cpu", n_jobs=1, n_estimators=3))
    grid = {f"{prefix}cost_matrix": [None, TABLE]}
    search = GridSearchCV(model, grid, scoring=cost_scorer(TABLE, min_cost=True), cv=FOLDS, error_score="raise").fit(X, Y)
    means = [
        np.mean(by_hand(clone(model).set_params(**{f"{prefix}cost_matrix": costs}), TABLE, min_cost=costs is None))
        for costs in (None, TABLE)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, rtol=1e-14)


def test_others_without_probabilities_are_refused() -> None:
    with pytest.raises(AttributeError, match="predict_proba"):
        cost_scorer(TABLE, min_cost=True)(LinearSVC().fit(X, Y), X, Y)


@pytest.mark.parametrize("min_cost", [False, True])
@pytest.mark.parametrize(("given", "options"), [(TABLE, {}), (COSTS, {"classes": LABELS})])
def test_folds_without_a_class(given: Any, options: dict[str, Any], min_cost: bool) -> None:
    """Trained without c, the model is wrong on all of c, at the cost of a or b; tested without c, nothing is missing."""
    is_c = Y == "c"
    scorer = cost_scorer(given, min_cost=min_cost, **options)
    model = LogisticRegression().fit(X[~is_c], Y[~is_c])
    predicted = model.predict(X)
    if min_cost:
        predicted = min_cost_labels(model.predict_proba(X), [[0, 1], [3, 0]], ["a", "b"])
    assert scorer(model, X, Y) == -sum(TABLE[t][p] for t, p in zip(Y, predicted, strict=True)) / 90
    assert scorer(model, X[~is_c], Y[~is_c]) == -sum(TABLE[t][p] for t, p in zip(Y[~is_c], predicted[~is_c], strict=True)) / (
        (~is_c).sum()
    )


def test_the_scorer_takes_weights() -> None:
    model = LogisticRegression().fit(X, Y)
    weights = np.arange(90)
    expected = -mean_cost(Y, model.predict(X), TABLE, sample_weight=weights)
    assert cost_scorer(TABLE)(model, X, Y, sample_weight=weights) == expected


def test_costs_are_checked_when_a_scorer_is_made() -> None:
    with pytest.raises(ValueError, match="has no cost for the predicted class 'c'"):
        cost_scorer({**TABLE, "a": {"b": 1}})
    with pytest.raises(ValueError, match=r"the shape \(2, 2\), got the shape \(3, 3\)"):
        cost_scorer(COSTS, classes=["a", "b"])
    with pytest.raises(TypeError, match="min_cost must be True or False, got 1"):
        cost_scorer(COSTS, min_cost=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the shape \(3, 3\), got the shape \(2, 2\)"):
        cost_scorer([[0, 1], [1, 0]])(LogisticRegression().fit(X, Y), X, Y)


def test_all_of_it_is_loaded_on_use() -> None:
    for name in ("cost_scorer", "mean_cost", "min_cost_labels"):
        assert name in gpuboost.__all__
        assert getattr(gpuboost, name) is getattr(decisions, name)
