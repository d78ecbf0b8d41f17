"""Training and prediction on columns that are computed when they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import gpuboost
from gpuboost.features import ComputedMatrix, HaarFeatures

X, Y = load_digits(return_X_y=True)
X, Y = X[:400].astype(np.uint8).reshape(-1, 8, 8), Y[:400]


class Products(ComputedMatrix):
    """The products of all pairs of two neighbouring columns, and a list of the columns that were read of more than 64 rows."""

    dtype = np.dtype(np.float64)

    def __init__(self, values: NDArray[Any], read: list[tuple[int, int]] | None = None) -> None:
        self.values, self.read = values, [] if read is None else read

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.values), self.values.shape[1] - 1

    def take(self, rows: Any) -> Products:
        return type(self)(self.values[rows], self.read)

    def columns(self, first: int, stop: int) -> NDArray[Any]:
        if len(self.values) > 64:  # that many rows are remembered, to know the training set by
            self.read.append((first, stop))
        return self.values[:, first:stop] * self.values[:, first + 1 : stop + 1]


def products(n_columns: int = 151) -> Products:
    return Products(np.random.default_rng(0).normal(size=(300, n_columns)))


def labels(matrix: ComputedMatrix) -> NDArray[Any]:
    values = np.asarray(matrix)
    return (values[:, 0] > 0).astype(int) + (values[:, 70] > 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_a_matrix_of_ones_own(device: str) -> None:
    matrix = products()
    settings = {"device": device, "n_estimators": 6, "max_leaf_nodes": 5, "random_state": 0, "max_features": 0.4}
    y, weight = labels(matrix), np.arange(300) % 4  # rows without a weight
    evaluation = Products(matrix.values[::-1])
    model = gpuboost.fit(matrix, y, sample_weight=weight, eval_set=(evaluation, y[::-1]), **settings)
    expected = gpuboost.fit(np.asarray(matrix), y, sample_weight=weight, eval_set=(np.asarray(evaluation), y[::-1]), **settings)
    assert model.ensemble_.digest() == expected.ensemble_.digest()
    assert model.bin_mapper_.digest() == expected.bin_mapper_.digest()
    assert model.history_["valid_error"] == expected.history_["valid_error"]
    assert model.n_features_in_ == 150
    np.testing.assert_array_equal(model.decision_function(matrix), expected.decision_function(np.asarray(matrix)))
    for one, other in zip(model.staged_predict(matrix), expected.staged_predict(np.asarray(matrix)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_column_is_computed_twice_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.inputs.samples.BLOCK_BYTES", 8 * 300 * 20)
    monkeypatch.setattr("gpuboost.backends.cpu.matrix.PART_BYTES", 8 * 300 * 64)
    matrix = products()
    gpuboost.fit(matrix, Y[:300], n_estimators=2, max_leaf_nodes=4, device="cpu", n_jobs=1)
    cuts = [(first, min(first + 20, 150)) for first in range(0, 150, 20)]
    assert matrix.read == [*cuts, (0, 64), (64, 128), (128, 150)]  # a block of codes has 64 features


@pytest.mark.parametrize("name", ["early_stopping", "max_leaf_nodes", "class_weight"])
def test_what_reads_rows_and_what_holds_some_out(name: str) -> None:
    matrix = products(72)
    values = {"early_stopping": True, "max_leaf_nodes": "auto", "class_weight": "balanced"}
    settings = {"n_estimators": 4, "max_leaf_nodes": 4, "device": "cpu", "random_state": 0, name: values[name]}
    one, other = (gpuboost.fit(given, labels(matrix), **settings) for given in (matrix, np.asarray(matrix)))
    assert one.ensemble_.digest() == other.ensemble_.digest()


def test_regressors_get_the_values() -> None:
    matrix = products(72)
    settings = {"algorithm": "gamble", "n_estimators": 2, "regressor": DecisionTreeRegressor(max_depth=2, random_state=0)}
    settings |= {"random_state": 0, "device": "cpu"}
    one, other = (gpuboost.fit(given, labels(matrix), **settings) for given in (matrix, np.asarray(matrix)))
    np.testing.assert_array_equal(one.decision_function(matrix), other.decision_function(np.asarray(matrix)))


def test_slices() -> None:
    matrix = products(12)
    values = np.asarray(matrix)
    assert isinstance(matrix[3:9], Products)
    np.testing.assert_array_equal(np.asarray(matrix[3:9]), values[3:9])
    np.testing.assert_array_equal(np.asarray(matrix[np.array([5, 0])]), values[[5, 0]])
    np.testing.assert_array_equal(matrix[:, 2:5], values[:, 2:5])
    np.testing.assert_array_equal(matrix[4:6, 2:], values[4:6, 2:])
    assert np.asarray(matrix, np.float32).dtype == np.float32
    assert len(matrix) == 300
    mask = np.arange(300) % 7 == 0
    for rows in (mask, mask.tolist(), [5, 0], [], np.array([2], np.uint8), slice(None, None, -1)):
        assert isinstance(matrix[rows], Products)
        np.testing.assert_array_equal(np.asarray(matrix[rows]), values[rows])
        np.testing.assert_array_equal(np.asarray(matrix[rows, ...]), values[rows])
    np.testing.assert_array_equal(matrix[-1], values[-1])
    np.testing.assert_array_equal(np.array(list(matrix)), values)
    with pytest.raises(IndexError, match="step 1"):
        matrix[:, ::2]
    with pytest.raises(IndexError, match="out of bounds"):
        matrix[300]
    for wrong in ((slice(None), 3), (slice(None), [1, 2]), (3, 4, 5), (0, slice(None)), None, "a", 1.5, True, [0.5], Ellipsis):
        with pytest.raises(IndexError, match=r"(rows|columns) must be a slice"):
            matrix[wrong]


def test_folds_of_scikit_learn() -> None:
    matrix = products(12)
    y = np.asarray(matrix)[:, 0] > 0
    model = gpuboost.AdaBoostMHClassifier(n_estimators=2, max_leaf_nodes=4, device="numpy")
    computed, array = (cross_val_score(model, given, y, cv=3, error_score="raise") for given in (matrix, np.asarray(matrix)))
    np.testing.assert_array_equal(computed, array)
    assert isinstance(train_test_split(matrix, y, random_state=0)[0], Products)


@pytest.mark.parametrize("device", ["cpu", "numpy"])
@pytest.mark.parametrize("wrong", ["one row less", "a column more", "float32", "list", "mask", "text", "no rows"])
def test_columns_that_are_not_what_was_said_are_refused(wrong: str, device: str) -> None:
    class Wrong(Products):
        def columns(self, first: int, stop: int) -> Any:
            values = super().columns(first, stop)
            return {
                "one row less": values[:-1],
                "a column more": np.hstack([values, values[:, :1]]),
                "float32": values.astype(np.float32),
                "list": values.tolist(),
                "mask": np.ma.masked_greater(values, 0.0),
                "text": values.astype(str),
                "no rows": values[0],
            }[wrong]

    good, message = products(100), r"columns\(.*\) of Wrong must be an ndarray of shape \(.*\), float64, got "
    bad = Wrong(good.values)
    model = gpuboost.fit(good, labels(good), n_estimators=2, max_leaf_nodes=4, device=device)
    similar = gpuboost.LocalizedSimilaritiesClassifier(n_estimators=2, device=device)
    with pytest.raises(TypeError, match=message):
        gpuboost.fit(bad, labels(good), device=device)
    with pytest.raises(TypeError, match=message):
        similar.fit(bad, labels(good))
    with pytest.raises(TypeError, match=message):
        model.predict(bad)


def test_what_cannot_be_used_is_refused() -> None:
    model = gpuboost.fit(products(12), labels(products()), n_estimators=2, device="cpu")
    with pytest.raises(ValueError, match="X has 12 features, but AdaBoostMHClassifier is expecting 11"):
        model.predict(products(13))
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(products(12)[:0])
    with pytest.raises(ValueError, match="0 feature"):
        gpuboost.fit(products(1), labels(products()))
    complex_values = products(12)
    complex_values.dtype = np.dtype(np.complex128)
    with pytest.raises(ValueError, match="Complex data not supported"):
        gpuboost.fit(complex_values, labels(products()))
    with pytest.raises(ValueError, match="300"):
        gpuboost.fit(products(12), labels(products())[:299])


def test_a_lazy_pipeline_makes_the_same_model() -> None:
    scores, digests = [], []
    for lazy, device in ((False, "cpu"), (True, "cpu"), (True, "numpy")):
        haar = HaarFeatures(n_features=150, lazy=lazy, random_state=0, device=device)
        model = gpuboost.AdaBoostMHClassifier(n_estimators=5, max_leaf_nodes=6, max_features=0.1, random_state=0, device=device)
        pipeline = make_pipeline(haar, model).fit(X[:300], Y[:300])
        digests.append(pipeline[-1].ensemble_.digest())
        scores.append(pipeline.decision_function(X[300:]))
    assert len(set(digests)) == 1
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_what_is_lazy_is_an_array_to_others() -> None:
    haar = HaarFeatures(n_features=30, lazy=True, random_state=0).fit(X)
    lazy, eager = haar.transform(X), haar.set_params(lazy=False).transform(X)
    np.testing.assert_array_equal(np.asarray(lazy), eager)
    assert lazy.shape == eager.shape == (400, 30)
    assert lazy.dtype == eager.dtype == np.int32
