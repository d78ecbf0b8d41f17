"""FilterBoostClassifier on rows that hardly say anything, and on weights and labels at the ends of their ranges."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from gpuboost import FilterBoostClassifier, OutputCodeClassifier
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.filtering.weak_learners import voted
from gpuboost.errors import StreamError
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.streams import ArraySource, BatchSource
from gpuboost.tree import Tree
from tests.candidates import thinned

N = 300
RNG = np.random.default_rng(0)
X = RNG.integers(-40, 40, (N, 3)).astype(float)
Y = (X[:, 0] > 0) * 1 + (X[:, 1] > 20)
QUICK: dict[str, Any] = {
    "n_estimators": 4,
    "max_leaf_nodes": 3,
    "examples_per_round": 60,
    "n_bin_rows": 200,
    "random_state": 1,
    "device": "numpy",
    "n_jobs": 1,
}


def stream(source: Any, classes: Any = None, **params: Any) -> FilterBoostClassifier:
    return FilterBoostClassifier(**{**QUICK, **params}).fit_stream(source, classes)


PLAIN = stream((X, Y)).ensemble_.digest()


@pytest.mark.parametrize("dtype", thinned(["float16", "float32", "int8", "int64", ">f8", ">i2", "longdouble", "object"], 4))
def test_the_dtype_of_the_rows_does_not_matter(dtype: str) -> None:
    assert stream((X.astype(dtype), Y)).ensemble_.digest() == PLAIN


@pytest.mark.parametrize(
    "labels",
    thinned(
        [
            np.array(["a", "b", "c"], object),
            np.array([b"a", b"b", b"c"]),
            np.array([0.5, 1.5, np.float16(2.5)], np.float16),
            np.array([2**63, 2**63 + 1, 2**63 + 2], np.uint64),
            np.array(["2020-01-01", "2020-01-02", "2021-01-01"], "M8[D]"),
        ],
        5,
    ),
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_any_kind(labels: np.ndarray) -> None:
    model = stream((X, labels[Y]))
    assert model.ensemble_.digest() == PLAIN
    assert model.classes_.tolist() == labels.tolist()
    assert (model.predict(X) == labels[stream((X, Y)).predict(X)]).all()


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (3, "classes must be an array or a list of the labels of all classes, got the int 3"),
        (np.array(3), "classes must be an array or a list of the labels of all classes, got the ndarray"),
        (iter([0, 1, 2]), "classes must be an array or a list of the labels of all classes, got the list_iterator"),
        ([0, 1, None], "missing value in classes"),
        (np.eye(3), r"classes must be one label for each class, got the shape \(3, 3\)"),
    ],
)
def test_what_cannot_be_classes(classes: Any, message: str) -> None:
    booster = FilterBoostClassifier(**QUICK)
    for model in (booster, OutputCodeClassifier(booster)):
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit_stream((X, Y), classes)


def test_as_many_classes_as_rows() -> None:
    classes = np.arange(200)
    for params in ({}, {"multiclass": "oc"}, {"leaf_values": "vote"}):
        model = stream((X[:200], classes), n_estimators=2, **params)
        assert model.predict_proba(X).shape == (N, 200)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("leaf_values", ["newton", "vote", "paper", "fresh"])
@pytest.mark.parametrize("draw", ["filter", "weight"])
def test_a_stream_with_nothing_to_learn(draw: str, leaf_values: str) -> None:
    """Of one class, of one row, and of rows that are all the same or missing."""
    params = {"draw": draw, "leaf_values": leaf_values, "n_estimators": 6}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows, labels in ((X, np.ones(N, int)), (X[:1], np.ones(1, int))):
            model = stream((rows, labels), [0, 1, 2], **params)
            assert (model.predict(X) == 1).all()
            assert model.n_estimators_ == 6 or "nothing is left to learn" in model.stop_reason_
        for constant in (np.zeros((N, 1)), np.full((N, 2), np.nan)):
            model = stream((constant, Y), **params)
            assert len(np.unique(model.predict(constant))) == 1


@pytest.mark.parametrize("draw", ["all", "resample"])
def test_a_set_whose_weights_have_all_vanished(draw: str) -> None:
    """The logistic weight of a margin above 23 is below half a unit of 2**-32: confidences of pure leaves get there."""
    A, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20)
    model = FilterBoostClassifier(**{**QUICK, "n_estimators": 30, "draw": draw, "leaf_values": "paper"}).fit(A, y)
    assert 1 <= model.n_estimators_ < 30
    assert "has a weight: nothing is left to learn" in model.stop_reason_
    assert (model.predict(A) == y).all()


def test_weights_at_the_ends_of_their_range() -> None:
    weight = np.ones(N)
    # All weights may be as small as they like: a power of two is another unit.
    assert stream((X, Y, weight * 2.0**-1060)).ensemble_.digest() == PLAIN
    assert stream((X, Y, weight * 2.0**900)).ensemble_.digest() == PLAIN
    weight[250] = 2.0**900
    assert np.isfinite(stream((X, Y, weight), n_estimators=20).history_["train_loss"]).all()
    weight[250] = 1e300
    with pytest.raises((ValueError, StreamError), match=r"not negative and at most 2\*\*900, got 1e\+300 in row 250"):
        stream((X, Y, weight))
    with pytest.raises(ValueError, match="at least two classes, got no row with a weight above 0; name all of them by classes"):
        stream((X, Y, np.zeros(N)))
    with pytest.raises(StreamError, match="there is no model, as there is no round"):
        stream((X, Y, np.zeros(N)), [0, 1, 2])


def test_a_model_that_goes_on_with_a_smaller_set() -> None:
    model = FilterBoostClassifier(**QUICK).fit(X, Y)
    row, pass_ = (int(model.history_[name][-1]) for name in ("row", "pass"))
    before = model.ensemble_.digest()
    model.set_params(warm_start=True, n_estimators=9)
    with pytest.raises(ValueError, match=rf"goes on with row {row} of pass {pass_}, .*, but there are {row - 1} rows"):
        model.fit(X[: row - 1], Y[: row - 1])
    assert model.ensemble_.digest() == before


def test_after_the_end_of_a_stream_more_rows_are_needed() -> None:
    def given(*parts: Any) -> BatchSource:
        return BatchSource(iter(parts))

    model = stream(given((X, Y)), n_estimators=100)
    n_rounds = model.n_estimators_
    assert model.stop_reason_ == f"the source has ended after {N} rows"
    model.set_params(warm_start=True).fit_stream(given((X, Y)))
    assert (model.n_estimators_, model.stop_reason_) == (n_rounds, f"the source has ended after {N} rows")
    model.fit_stream(given((X, Y), (X[::-1], Y[::-1])))
    assert model.n_estimators_ > n_rounds
    both = stream(given((X, Y), (X[::-1], Y[::-1])), n_estimators=100)
    assert model.ensemble_.digest() == both.ensemble_.digest()


def test_a_fitted_model_holds_nothing_of_its_source() -> None:
    class Unpicklable(ArraySource):
        def __reduce__(self) -> Any:
            raise TypeError("a connection cannot be pickled")

    model = stream(Unpicklable(X, Y))
    assert pickle.loads(pickle.dumps(model)).ensemble_.digest() == PLAIN


def test_edges_over_all_classes_may_need_more_than_64_bits() -> None:
    """K classes, whose weights add up to R in each leaf: their edges are up to K R, as only one of them has a share."""
    n_classes, weight = 200, 2**60

    class Backend(NumpyBackend):
        def leaf_sums(self, stats: Any, leaf_index: Any, n_leaves: int) -> Any:
            sums = np.zeros((n_leaves, n_classes), np.int64)
            sums[[0, 1], [3, 7]] = weight
            return sums, sums

    one_cut = np.zeros(1, np.int32)
    tree = Tree(one_cut, one_cut.astype(np.uint8), one_cut > 0, ~one_cut, ~(one_cut + 1), np.zeros((2, n_classes)), np.zeros(1))
    with Backend() as backend:
        found = voted(GrownTree(tree, np.zeros(1, np.int32)), backend, None)  # type: ignore[arg-type]
    assert found.edge == 2 * n_classes * weight  # above 2**63
    assert found.tree.values.sum(axis=1).tolist() == [2 - n_classes] * 2
    assert found.tree.values[[0, 1], [3, 7]].tolist() == [1, 1]


def test_a_generator_that_ends_before_the_first_round_says_what_to_do() -> None:
    rows = (np.arange(40.0).reshape(20, 2), np.arange(20) % 2)
    model = FilterBoostClassifier(n_estimators=2, device="numpy", random_state=0)
    with pytest.raises(StreamError, match="the source has ended after 20 rows; lower examples_per_round, or give a source"):
        model.fit_stream(iter([rows]))


def test_parameters_of_the_classifier_are_none_of_fit_stream() -> None:
    with pytest.raises(TypeError, match=r"kept_bytes is a parameter of FilterBoostClassifier\(...\), not of fit_stream"):
        FilterBoostClassifier().fit_stream(([[0.0], [1.0]], [0, 1]), kept_bytes=0)
