"""Early exit: a classifier that predicts a row by as few of its trees as the row needs."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuboost.array_types import IntArray
from gpuboost.backends.early_exit import ExitRule
from gpuboost.early_exit import EVERY, calibrated_rule, checkpoints, exact_rule, exit_lead, needs, rounds_of
from gpuboost.estimators.model import TreeModel
from gpuboost.estimators.predictor import BLOCK_BYTES, Predictor, to_backend
from gpuboost.inputs.arrays import as_type_of
from gpuboost.inputs.parameters import as_float

STAGE_BYTES = 256 << 20
"""Scores at the checkpoints of a block of rows take about this much memory."""


class Exiting(Predictor):
    """The part of a classifier that lets rows leave early."""

    exit_lead_: float
    exit_every_: int
    exit_bound_: float

    def fit_early_exit(self, X: Any, allowed: float = 0.0005) -> Self:
        """Find how far a class must lead for a row to be predicted without the trees that are left.

        Rows leave at every tenth (``exit_every_``) round where their leading class is more than ``exit_lead_`` ahead of the
        second. A new row,
        drawn as those of X, gets another label than by all trees with a probability of at most ``exit_bound_``, which is ``(k +
        1) / (n + 1)`` for n rows of X and k the whole part of ``allowed * (n + 1)``: on average over the X that could have been
        drawn.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
            Rows that the model was not trained on; labels are not needed. On training rows leads are large early, and the bound
            does not hold. A warning says so if most of the training set is among them, as far as this process has trained the
            model.
        allowed : float, default 0.0005
            The share of labels that may change, 0 <= allowed < 1. With 0 none of X does.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If X or ``allowed`` is not usable, or the model is multi-label, of one class, or has no trees.
        """
        ensemble = self._exitable("fit_early_exit")
        share = as_float(allowed)
        if not 0.0 <= share < 1.0:
            raise ValueError(f"allowed must be a number of at least 0 and below 1, got {allowed!r:.60}")
        matrix = self._matrix(X, reset=False)
        model: Any = self
        model._warn_of_training_rows(matrix)
        after = [0, *checkpoints(ensemble.n_rounds, EVERY).tolist()]
        step = max(1, STAGE_BYTES // (16 * ensemble.n_classes * len(after)))
        found = []
        with self._model.open(self.device, self.n_jobs) as backend:
            matrix = to_backend(backend, matrix)
            for first in range(0, matrix.shape[0], step):
                block = matrix[first : first + step]
                data = self._model.encode(backend, block)
                scores = backend.put(np.zeros((block.shape[0], ensemble.n_classes)))
                stages = np.empty((len(after) - 1, *scores.shape))
                for stage, start, stop in zip(stages, after[:-1], after[1:], strict=True):
                    self._model.add_scores(backend, data, scores, start, stop)
                    stage[:] = backend.get(scores)
                found.append(needs(stages))
        self.exit_lead_, self.exit_bound_ = exit_lead(np.concatenate(found), share)
        self.exit_every_ = EVERY
        return self

    def predict(self, X: Any, cost_matrix: Any = None, early_exit: bool | Literal["exact"] = False) -> Any:
        """Predict the classes.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
        cost_matrix : array-like, pandas DataFrame, or dict of dicts, optional
            ``C[true, predicted]``, what mistakes cost: see `gpuboost.costs.check_cost_matrix`. With it the labels are those of
            least expected cost by the probabilities of `predict_proba`, see `gpuboost.min_cost_labels`. What a classifier was
            trained by plays no part in that.
        early_exit : bool or "exact", default False
            True: rows leave as soon as their lead is that of `fit_early_exit`, mostly after a tenth of the trees; a few labels
            can change. "exact": rows leave when no tree that is left can change their label; most trees are used. Not with
            ``cost_matrix``, nor for multi-label problems.

        Returns
        -------
        array, shape (n_rows,) or (n_rows, n_classes)
            The label with the largest score, the first of equals, in the dtype of ``classes_``; or the 0/1 matrix of a
            multi-label problem, int64. A CuPy array or PyTorch tensor on the device of X if X is one, which is so of the other
            methods, too; else an ndarray. Labels that are no numbers, such as strings, always come in an ndarray.

        Raises
        ------
        ValueError
            If X has no rows, or not the columns of the training set: all methods that take X raise it. If the cost matrix does
            not fit the classes, or the problem is multi-label and there is one. If ``early_exit`` is True without
            `fit_early_exit`.
        TypeError
            If X is sparse.
        """
        if isinstance(early_exit, (bool, np.bool_)) and not early_exit:
            return super().predict(X, cost_matrix)
        if cost_matrix is not None:
            raise ValueError("early_exit must be False with a cost_matrix: rows that leave early have no probabilities")
        return as_type_of(self._labels_and_rounds(X, early_exit)[0], X)

    def predict_rounds(self, X: Any, early_exit: Literal[True, "exact"] = True) -> Any:
        """Return how many rounds ``predict(X, early_exit=early_exit)`` takes for each row.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
        early_exit : True or "exact", default True

        Returns
        -------
        array of int64, shape (n_rows,)
            1 to ``n_estimators_``; their mean by ``n_estimators_`` is about the share of the time that trees take.
        """
        if isinstance(early_exit, (bool, np.bool_)) and not early_exit:
            raise ValueError(f'early_exit must be True or "exact", got {early_exit!r}: without it every row takes all rounds')
        return as_type_of(self._labels_and_rounds(X, early_exit)[1], X)

    def _labels_and_rounds(self, X: Any, early_exit: Any) -> tuple[Any, IntArray]:
        """Return the labels of the rows of X, and the rounds that they took, on the host."""
        ensemble = self._exitable("early_exit")
        rule, every = self._exit_rule(early_exit)
        matrix = self._matrix(X, reset=False)
        (n_rows, n_features), n_classes = matrix.shape, ensemble.n_classes
        step = max(1, BLOCK_BYTES // (n_features + 8 * n_classes))
        labels, left_at = [], []
        with self._model.open(self.device, self.n_jobs) as backend:
            matrix = to_backend(backend, matrix)
            for first in range(0, n_rows, step):
                block = matrix[first : first + step]
                data = self._model.encode(backend, block)
                scores = backend.put(np.zeros((block.shape[0], n_classes)))
                left_at.append(backend.get(backend.predict_until(ensemble, data, scores, rule)))
                labels.append(self._labels(backend.get(scores)))
        return np.concatenate(labels), rounds_of(np.concatenate(left_at), ensemble.n_rounds, every)

    def _exit_rule(self, early_exit: Any) -> tuple[ExitRule, int]:
        """Return the rule that ``early_exit`` asks for, and the rounds between its checkpoints."""
        ensemble = self.ensemble_
        if isinstance(early_exit, str) and early_exit == "exact":
            return exact_rule(ensemble, EVERY), EVERY
        if not isinstance(early_exit, (bool, np.bool_)):
            raise ValueError(f'early_exit must be False, True or "exact", got {early_exit!r:.60}')
        if "exit_lead_" not in vars(self):
            raise ValueError(
                "early_exit=True needs a lead to leave with: call fit_early_exit with rows that the model was not trained on, "
                'or use early_exit="exact"'
            )
        return calibrated_rule(ensemble, self.exit_every_, self.exit_lead_), self.exit_every_

    def _exitable(self, asked_by: str) -> Any:
        """Return the trees; a ValueError or TypeError if rows cannot leave early."""
        check_is_fitted(self)
        if self.multi_label_:
            raise ValueError(f"{asked_by} is for problems of one label a row, but the model is multi-label")
        if len(self.classes_) < 2:
            raise ValueError(f"{asked_by} needs a model of at least two classes, got one")
        if "_model" in vars(self) and not isinstance(self._model, TreeModel):
            reason = self._model.without_trees.format(kind=type(self).__name__, attribute="trees")
            raise TypeError(f"{asked_by} needs a model of trees: {reason}")
        return self.ensemble_

    def _check_early_exit(self) -> None:
        """Raise a ValueError if what `fit_early_exit` has found, from a file, is wrong."""
        names = ("exit_lead_", "exit_every_", "exit_bound_")
        there = [vars(self)[name] for name in names if name in vars(self)]
        if not there:
            return
        if len(there) < len(names) or list(map(type, there)) != [float, int, float]:
            raise ValueError(f"its early exit is {there!r:.80}")
        lead, every, bound = there
        if (
            not (0.0 <= lead < np.inf and 1 <= every < 2**31 and 0.0 < bound <= 1.0)
            or self.multi_label_
            or len(self.classes_) < 2
        ):
            raise ValueError(f"its early exit is {there!r:.80}")
