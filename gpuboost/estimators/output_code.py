"""Several classes by a binary booster: error-correcting output codes (`gpuboost.codes`)."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from gpuboost.array_types import Floats
from gpuboost.codes.decoding import MARGIN_OF_LOG_ODDS, Decoding, decode
from gpuboost.codes.matrices import RANDOM_CODES, Code, CodeName, check_code, code_matrix, minimum_distance
from gpuboost.estimators.predictor import BLOCK_BYTES, share_right, take_over
from gpuboost.inputs.arrays import as_type_of, to_host
from gpuboost.inputs.columns import compare_columns, compare_number, record_columns
from gpuboost.inputs.features import to_matrix
from gpuboost.inputs.label_encoder import LabelEncoder, class_array, label_array, shown
from gpuboost.inputs.parameters import check_bool, check_choice, draw_seed
from gpuboost.inputs.weights import row_weights
from gpuboost.persistence.model_file import save
from gpuboost.streams.contract import Source
from gpuboost.streams.signs import SignSource


class OutputCodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Several classes by binary boosters, one for each column of a coding matrix (Allwein, Schapire and Singer 2000).

    The booster of column s is trained to tell the classes with a 1 in that column from those with a -1; the rows of classes
    with a 0 are left out. Their margins decide together. The same data and parameters give the same model on every backend.

    Parameters
    ----------
    estimator : classifier of gpuboost
        The booster; it is cloned for each column, whose labels are -1 and 1. Its ``class_weight``, ``early_stopping`` and
        ``callbacks`` act in every column by itself.
    code : {"all-pairs", "one-vs-all", "dense", "sparse", "exhaustive"} or array-like, default "all-pairs"
        The coding matrix, or its kind: see `gpuboost.codes.matrices.code_matrix`. An array of -1, 0 and 1 has a row for each of
        the sorted classes. Two classes have one column unless an array says otherwise.
    decoding : {"loss", "hamming"}, default "loss"
        Whether the class is predicted whose row has the least loss with the margins, or the one that agrees with the most
        signs. The loss is the one that the booster was trained by.
    joint : bool, default False
        Whether one booster has all columns as its labels, and they share its trees: AdaBoost.MO (Schapire and Singer 1999) of
        an `AdaBoostMHClassifier`. The code must be without zeros.
    random_state : int, Generator, RandomState or None, default None
        Seed of the random codes. If it is given, a booster without one gets another in each column, which follows from it.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The sorted labels of the rows with non-zero weight, in the dtype of y.
    code_matrix_ : ndarray of int8, shape (n_classes, n_columns)
    minimum_distance_ : float
        The least distance of two rows of the code, see `gpuboost.codes.matrices.minimum_distance`.
    estimators_ : list of classifiers
        The fitted boosters of the columns; with ``joint=True`` the one of all.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features,)
        Names of the columns of X, if it was a data frame with names.

    See Also
    --------
    AdaBoostMHClassifier : One booster of all classes, which is mostly faster than a code.

    Notes
    -----
    There is no ``predict_proba``: decoding compares losses, and neither the softmax of the scores nor the share of votes is a
    probability where columns overlap. ``CalibratedClassifierCV`` of scikit-learn makes some of the scores.

    The exponential loss leaves the decision to the largest margins that are wrong, and a booster that has fitted a small column
    to the last row has margins that mean little. Hamming decoding can err much less then: on the digits of scikit-learn, with
    the sparse code and 30 rounds of `GambleClassifier`, 1.8 and not 13 %.

    References
    ----------
    E. Allwein, R. Schapire and Y. Singer (2000), Reducing multiclass to binary: a unifying approach for margin classifiers,
    JMLR 1. T. Dietterich and G. Bakiri (1995), Solving multiclass learning problems via error-correcting output codes, JAIR 2.
    R. Schapire and Y. Singer (1999), Improved boosting algorithms using confidence-rated predictions, Machine Learning 37.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import AdaBoostMHClassifier, OutputCodeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OutputCodeClassifier(AdaBoostMHClassifier(n_estimators=20)).fit(X, y)
    >>> model.code_matrix_
    array([[ 1,  1,  0],
           [-1,  0,  1],
           [ 0, -1, -1]], dtype=int8)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    classes_: NDArray[Any]
    code_matrix_: Code
    minimum_distance_: float
    estimators_: list[Any]
    n_features_in_: int
    _column_names: list[Any] | None
    _seed: int
    _seed_matters: bool

    multi_label_ = False
    _own_fitted = ("code_matrix_", "minimum_distance_")

    def __init__(
        self,
        estimator: Any,
        *,
        code: CodeName | Any = "all-pairs",
        decoding: Literal["loss", "hamming"] = "loss",
        joint: bool = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.code = code
        self.decoding = decoding
        self.joint = joint
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a booster for each column of the code.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
            As the booster takes it.
        y : array-like, shape (n_rows,)
            Labels of any type that can be ordered, of at least two classes.
        sample_weight : array-like, shape (n_rows,), optional
            Not negative. A row of weight 0 does not exist.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are not usable. A note of the error names the column if it came of one.
        KeyboardInterrupt
            If it is interrupted (Ctrl-C), whatever the columns have so far: some of the columns are no code.

        A fit that fails leaves an earlier one of this estimator as it was.
        """
        return self._fitted_by(lambda fitted: fitted._fit(X, y, sample_weight))

    def fit_stream(self, source: Any, classes: Any, **options: Any) -> Self:
        """Train a booster for each column of the code on a stream, one after another, each from its beginning.

        Parameters
        ----------
        source, **options
            As `FilterBoostClassifier.fit_stream` takes them; it must be possible to read the source again.
        classes : array-like, shape (n_classes,)
            The labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError, StreamError
            If a parameter or the source is not usable, or the booster knows no streams. An earlier fit is left as it was.
        """
        from gpuboost.streams import as_source

        return self._fitted_by(lambda fitted: fitted._fit_stream(as_source(source, **options), classes))

    def _fitted_by(self, fit: Callable[[Self], None]) -> Self:
        """Let ``fit`` train a copy, and take over what it has made."""
        fitted = copy.copy(self)
        fit(fitted)
        take_over(self, fitted)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_parameters()
        matrix = to_matrix(X, self)
        record_columns(self, X, matrix.shape[1])
        n_rows = matrix.shape[0]
        weights = row_weights(sample_weight, n_rows)
        rows = np.flatnonzero(weights)
        encoder = self._encoder(labels := label_array(y, n_rows, rows=rows))
        self._make_code(encoder)
        target = encoder.encode(labels)
        if self._is_joint():
            self.estimators_ = [self._fit_joint(matrix, target, rows, sample_weight)]
            return
        self.estimators_ = []
        for s, column in enumerate(self.code_matrix_.T):
            signs = np.zeros(n_rows, np.int64)
            signs[rows] = column[target]
            # Rows are left out by a weight of 0, so that X is not copied.
            unweighted = sample_weight is None and bool(signs.all())
            binary = (np.where(signs, signs, 1), None if unweighted else np.where(signs, weights, 0.0))
            self.estimators_.append(self._fit_column(s, "fit", matrix, binary[0], sample_weight=binary[1]))

    def _is_joint(self) -> bool:
        """Whether there is one booster of several columns."""
        return bool(self.joint) and self.code_matrix_.shape[1] > 1

    def _fit_joint(self, matrix: Any, target: NDArray[Any], rows: NDArray[np.intp], sample_weight: Any) -> Any:
        """Return the booster of all columns, whose labels are those where the row's class has a 1."""
        if not self.code_matrix_.all():
            raise ValueError("joint=True needs a code without zeros: every row is a row of every column")
        has_label = np.zeros((matrix.shape[0], self.code_matrix_.shape[1]), np.int64)
        has_label[rows] = self.code_matrix_[target] > 0
        return self._fit_column(0, "fit", matrix, has_label, sample_weight=sample_weight)

    def _fit_stream(self, source: Source, classes: Any) -> None:
        self._check_parameters()
        if self.joint:
            raise ValueError("joint=True needs all rows at once, in fit")
        if not hasattr(self.estimator, "fit_stream"):
            raise TypeError(f"estimator must have fit_stream, as FilterBoostClassifier has, got {self.estimator!r:.200}")
        if not source.repeatable:
            raise ValueError(
                f"every column reads the source from its beginning, but a {type(source).__name__} gives its rows once"
            )
        encoder = self._encoder(class_array(classes))
        self._make_code(encoder)
        self.estimators_ = []
        for column in self.code_matrix_.T:
            signs = SignSource(source, encoder, column)
            self.estimators_.append(self._fit_column(len(self.estimators_), "fit_stream", signs, classes=[-1, 1]))
        first = self.estimators_[0]
        self.n_features_in_, self._column_names = first.n_features_in_, first._column_names
        if hasattr(first, "feature_names_in_"):
            self.feature_names_in_ = first.feature_names_in_

    def _make_code(self, encoder: LabelEncoder) -> None:
        self._seed = draw_seed(self.random_state)
        is_drawn = isinstance(self.code, str) and self.code in RANDOM_CODES
        self._seed_matters = is_drawn or self.random_state is not None
        self.classes_ = encoder.classes
        self.code_matrix_ = code_matrix(self.code, encoder.classes, self._seed)
        self.minimum_distance_ = minimum_distance(self.code_matrix_)

    def _fit_column(self, s: int, method: str, *rows: Any, **others: Any) -> Any:
        """Return the booster of a column, fitted by one of its methods."""
        booster = clone(self.estimator)
        if self.random_state is not None and booster.get_params(deep=False).get("random_state", 0) is None:
            booster.set_params(random_state=int(np.random.default_rng([self._seed, s]).integers(2**31)))
        which = "all" if self._is_joint() else f"column {s} of the"
        where = f"{which} {self.code_matrix_.shape[1]} columns of the code"
        try:
            getattr(booster, method)(*rows, **others)
        except (ValueError, TypeError) as error:
            labels = "which are its labels" if self._is_joint() else "whose labels are -1 and 1"
            error.add_note(f"(in {where}, {labels})")
            raise
        if getattr(booster, "stop_reason_", "") == "interrupted":
            raise KeyboardInterrupt(f"interrupted in {where}")
        return booster

    def _check_parameters(self) -> None:
        booster = self.estimator
        if isinstance(booster, type) or not hasattr(booster, "_margin_loss") or not hasattr(booster, "decision_function"):
            raise TypeError(f"estimator must be a classifier of gpuboost, such as AdaBoostMHClassifier(), got {booster!r:.200}")
        check_choice("decoding", self.decoding, ("loss", "hamming"))
        if check_bool("joint", self.joint) and not get_tags(booster).classifier_tags.multi_label:
            raise TypeError(f"joint=True needs a booster of several labels a row, AdaBoostMHClassifier(), got {booster!r:.200}")
        if getattr(booster, "calibration", None) is not None:
            raise ValueError(
                f"estimator must have calibration=None, got {booster.calibration!r}: margins decide here, and there are no "
                "probabilities to calibrate"
            )
        if self.decoding == "loss" and booster._margin_loss is None:
            raise TypeError(
                f'decoding="loss" needs a booster with a loss of the margin, which {type(booster).__name__} does not name; '
                'decoding="hamming" takes it'
            )
        if self.random_state is not None and not isinstance(self.random_state, (np.random.Generator, np.random.RandomState)):
            draw_seed(self.random_state)

    def _encoder(self, labels: NDArray[Any]) -> LabelEncoder:
        """Find the classes."""
        encoder, kind = LabelEncoder.fit(labels), type(self).__name__
        if encoder.multi_label:
            raise ValueError(f"{kind} needs one label a row, but y is an indicator matrix; AdaBoostMHClassifier takes it")
        if len(encoder.classes) < 2:
            raise ValueError(f"{kind} needs a y of at least two classes, got one class: {shown(encoder.classes)}")
        return encoder

    def _costs(self) -> None:
        """Return the costs that it was trained by: the columns have none of the classes."""

    def _check_own_fitted(self) -> None:
        """Raise a ValueError or TypeError if the code and the boosters, from a file, do not fit."""
        self.code_matrix_ = check_code(self.code_matrix_, self.classes_)
        if self.minimum_distance_ != minimum_distance(self.code_matrix_):
            raise ValueError("its minimum distance is not that of its code")
        n_columns, joint = self.code_matrix_.shape[1], self._is_joint()
        if len(self.estimators_) != (1 if joint else n_columns):
            raise ValueError(f"it has {len(self.estimators_)} boosters for a code of {n_columns} columns")
        labels = list(range(n_columns)) if joint else [-1, 1]
        for one in self.estimators_:
            if one.n_features_in_ != self.n_features_in_ or one.multi_label_ != joint or one.classes_.tolist() != labels:
                raise ValueError("one of its boosters is of another problem")

    # ---- prediction --------------------------------------------------------------------------------------------------------

    def _margins(self, matrix: Any) -> Floats:
        """Return the margins of the columns, shape (n_rows, n_columns)."""
        if self._is_joint():
            margins: Floats = to_host(self.estimators_[0].decision_function(matrix))
            return margins
        loss = self.estimators_[0]._margin_loss
        scale = MARGIN_OF_LOG_ODDS[loss] if loss is not None else 1.0
        return np.stack([scale * to_host(one.decision_function(matrix)) for one in self.estimators_], axis=1)

    def _scores(self, X: Any) -> Floats:
        """Return the scores of the classes, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        compare_columns(self, X)
        matrix = to_matrix(X, self)
        compare_number(self, matrix.shape[1])
        loss: Decoding = "hamming" if self.decoding == "hamming" else self.estimators_[0]._margin_loss
        step = max(1, BLOCK_BYTES // (8 * (4 * self.code_matrix_.shape[1] + len(self.classes_))))
        blocks = [matrix[first : first + step] for first in range(0, matrix.shape[0], step)]
        return np.concatenate([decode(self._margins(block), self.code_matrix_, loss) for block in blocks])

    def decision_function(self, X: Any) -> Any:
        """Return the scores of the classes, see `gpuboost.codes.decoding.decode`.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)

        Returns
        -------
        array of float64, shape (n_rows, n_classes), or (n_rows,) for two classes
            For two classes the difference of their scores: ``classes_[1]`` is predicted where it is positive.
        """
        scores = self._scores(X)
        return as_type_of(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores, X)

    def predict(self, X: Any) -> Any:
        """Predict the classes.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)

        Returns
        -------
        array, shape (n_rows,)
            The label with the largest score, the first of equals, in the dtype of ``classes_``.
        """
        numbers = self._scores(X).argmax(axis=1)
        return as_type_of(self.classes_[numbers], X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that are predicted right, see `AdaBoostMHClassifier.score`."""
        numbers = self._scores(X).argmax(axis=1)
        return share_right(numbers, y, LabelEncoder(self.classes_, False), sample_weight)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, which `gpuboost.load` reads; see `AdaBoostMHClassifier.save`."""
        save(self, path)

    # ---- scikit-learn's protocol -------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = (
            hasattr(self.estimator, "__sklearn_tags__") and get_tags(self.estimator).input_tags.allow_nan
        )
        return tags
