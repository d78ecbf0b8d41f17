"""Active GAMBLE: let the committee choose which rows are worth a label (Huang, Ertekin, Song, Zha and Giles 2007, section 4).

This file is long because the class is documented in full.

>>> from sklearn.datasets import load_digits
>>> from gpuboost import ActiveLearner
>>> X, y = load_digits(return_X_y=True)
>>> learner = ActiveLearner(X, random_state=0)
>>> for _ in range(3):  # ask and tell
...     rows = learner.query()
...     learner = learner.teach(rows, y[rows])
>>> learner.run(y, max_rows=100)  # or all at once: with all labels, or with a function of row indices that returns labels
ActiveLearner(GambleClassifier(), 100 of 1797 rows labelled)
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gpuboost.active.checks import (
    answers,
    check_candidates,
    checked_committee,
    checked_labels,
    checked_weights,
    joined,
    pool_labels,
    watched_set,
)
from gpuboost.active.pools import checked_pool, distinct_first, take
from gpuboost.active.state import State, Trial, fitted
from gpuboost.active.utility import Oracle, Rows, margins, scores_of, seeded
from gpuboost.errors import is_interrupt
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.estimators.gamble import GambleClassifier
from gpuboost.inputs import parameters
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.label_values import label_list, ordered
from gpuboost.inputs.parameters import draw_seed, evaluation_tuples
from gpuboost.stopping import Patience

STRATEGIES = ("margin", "random")


class ActiveLearner:
    """A classifier that asks for the labels which it can learn most from (algorithm 3, "Active GAMBLE").

    Every trial trains a committee on all rows labelled so far, from scratch as in the paper, and asks for the rows of the pool
    whose two best classes are closest. There are two ways to use it, which choose the same rows: `query` and `teach` in turn,
    or `run` with an oracle, which may be a function or the labels of the whole pool.

    Parameters
    ----------
    X : array-like or data frame, shape (n_rows, n_features)
        The pool. Rows are spoken of by their position, 0 to n_rows - 1. The learner keeps a reference, also in pickles: do not
        change the values. An array on a device is copied to the host.
    estimator : classifier, optional
        The committee, ``GambleClassifier()`` by default. Any classifier of this library, or of scikit-learn's kind with
        ``decision_function`` or ``predict_proba``. It is cloned for every trial; random states in it that are None are set.
        The paper's committee is ``GambleClassifier(learning_rate=1)``: with up to about ten classes and some hundred rows it
        errs less than with the default rate, which is made for more of both.
    strategy : {"margin", "random"}, default "margin"
        "random" asks for rows at random: the baseline, "Random GAMBLE".
    n_initial : int, default 20
        Rows of the first batch, which are drawn at random.
    batch_size : int, default 10
        Rows of every later batch, the paper's R.
    max_candidates : int, float or None, default None
        Score only that many rows of the pool in a trial, or that share of it (a float in (0, 1]), drawn at random.
    eval_set : tuple or list of tuples, optional
        ``(X, y)`` or ``(X, y, sample_weight)``: labelled sets whose errors `history_` records as "valid_error",
        "valid_1_error", ... The first is the hold-out set: it says which committee is the `model_`, and when `run` stops.
    n_iter_no_change : int, optional
        `run` stops when the hold-out error has not fallen for that many trials. By default it goes on.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Decides all that is drawn: the first batch, random batches, the candidates, and between rows of the same utility.

    Notes
    -----
    - Rows of the same utility are drawn from at random, not taken in their order. A committee that is a single tree gives most
      rows the same utility, and as long as all labels are alike every row has an infinite one: the choice then is random.
    - A batch of the margin strategy has no two rows that are the same, unless it cannot be filled otherwise.
    - A query draws with a generator of its own, made from the seed and the number of rows that have left the pool. So asking
      twice gives the same answer, and it does not matter whether a batch is taught at once or in parts.
    - Labels need not all be known at the start: a label that appears later is a new class.
    - Labels may be dear, so an estimator that refuses to be trained on those so far (a class that ``class_weight`` or
      ``base_class`` names has not appeared yet, ...) raises its error, but they are kept. Until a later batch satisfies it,
      `query` asks the last committee, or at random if there is none.
    - Copies, and what pickle loads, go their own way from there on and choose what the original would.

    References
    ----------
    J. Huang, S. Ertekin, Y. Song, H. Zha and C. L. Giles (2007), Efficient multiclass boosting classification with active
    learning, SDM.
    """

    def __init__(
        self,
        X: Any,
        estimator: Any = None,
        *,
        strategy: str = "margin",
        n_initial: int = 20,
        batch_size: int = 10,
        max_candidates: float | None = None,
        eval_set: Any = None,
        n_iter_no_change: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.X = checked_pool(X)
        self.estimator = checked_committee(GambleClassifier() if estimator is None else estimator)
        self.strategy = parameters.check_choice("strategy", strategy, STRATEGIES)
        self.n_initial = parameters.check_integer("n_initial", n_initial, 1)
        self.batch_size = parameters.check_integer("batch_size", batch_size, 1)
        self.max_candidates = check_candidates(max_candidates)
        self._watched = [watched_set(self.X.shape[1], i, *one) for i, one in enumerate(evaluation_tuples(eval_set))]
        if n_iter_no_change is not None:
            parameters.check_integer("n_iter_no_change", n_iter_no_change, 1)
            if not self._watched:
                raise ValueError(f"n_iter_no_change={n_iter_no_change} needs an eval_set whose error it watches, got none")
        self.n_iter_no_change = n_iter_no_change
        self._seed = draw_seed(random_state)
        self._state = State()

    def __repr__(self) -> str:
        return f"ActiveLearner({self.estimator!r}, {len(self.rows_)} of {self.X.shape[0]} rows labelled)"

    # ---- what it knows -----------------------------------------------------------------------------------------------------

    @property
    def rows_(self) -> Rows:
        """The labelled rows in the order in which they were taught, intp (n_labelled,)."""
        return self._state.rows.copy()

    @property
    def labels_(self) -> NDArray[Any]:
        """The labels of `rows_`."""
        return self._state.labels.copy()

    @property
    def pool_(self) -> Rows:
        """The rows that can still be asked for, in ascending order."""
        left = np.ones(self.X.shape[0], bool)
        left[self._state.rows] = left[self._state.discarded] = False
        return np.flatnonzero(left)

    @property
    def history_(self) -> dict[str, list[float]]:
        """What the trials were like: lists with one entry per trained committee.

        "n_rows" is the number of labelled rows, "seconds" the wall time of the training, "valid_error", "valid_1_error", ...
        the share of wrong predictions on the evaluation sets.
        """
        names = ["n_rows", *(f"{self._name(i)}_error" for i in range(len(self._watched))), "seconds"]
        return {name: [record[name] for record in self._state.records] for name in names}

    @property
    def committee_(self) -> Any:
        """The classifier trained on all labelled rows, which chooses the next ones.

        Raises
        ------
        NotFittedError
            If no label is known, or the estimator refuses to be trained on labels that are all alike.
        ValueError, TypeError
            If it refuses the labels for another reason. They are kept.
        """
        self._catch_up()
        return fitted(self._state.latest).committee

    @property
    def model_(self) -> Any:
        """The resulting classifier: the first one with the lowest hold-out error, without an ``eval_set`` the `committee_`."""
        self._catch_up()
        return fitted(self._state.best).committee

    def predict(self, X: Any) -> Any:
        """Predict the classes of the rows of X with the `model_`."""
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Estimate the probabilities of the classes with the `model_`, in the order of ``model_.classes_``."""
        return self.model_.predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that the `model_` predicts right."""
        return float(self.model_.score(X, y, sample_weight=sample_weight))

    # ---- ask and tell ------------------------------------------------------------------------------------------------------

    def query(self, n: int | None = None) -> Rows:
        """Choose the rows to be labelled next. This changes nothing: asking again gives the same rows.

        Parameters
        ----------
        n : int, optional
            How many, ``batch_size`` by default, ``n_initial`` as long as no label is known.

        Returns
        -------
        ndarray of intp, shape (n,)
            Positions in the pool, the most useful first. Fewer than n, perhaps none, if the pool has no more.

        Raises
        ------
        ValueError, TypeError
            If n is not a positive integer.
        """
        usual = self.batch_size if len(self._state.rows) else self.n_initial
        n = parameters.check_integer("n", usual if n is None else n, 1)
        self._catch_up(retry=False)
        pool = self.pool_
        if not len(pool):
            return pool
        generator = np.random.default_rng([self._seed, self.X.shape[0] - len(pool)])
        if self.strategy == "random":
            return generator.permutation(pool)[:n]
        candidates = generator.permutation(pool)[: max(n, self._n_candidates(len(pool)))]
        if self._state.latest is not None:
            ahead = margins(scores_of(self._state.latest.committee, take(self.X, candidates)))
            candidates = candidates[np.argsort(ahead, kind="stable")]
        return distinct_first(self.X, candidates, n)

    def teach(self, indices: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Take in labels, and train the committee on all labels so far, from scratch.

        Parameters
        ----------
        indices : array-like of int, shape (n,)
            Rows of the pool that have no label yet, whether `query` chose them or not.
        labels : array-like, shape (n,)
            Their labels, of any type that the estimator takes and that can be ordered among those known already.
        sample_weight : array-like, shape (n,), optional
            Their weights, 1 by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the arguments are not usable: nothing has changed then. Or if the estimator refuses to be trained on the labels
            so far: they are kept then, as the message says, and the next ones may satisfy it.
        KeyboardInterrupt
            If the training is interrupted. The labels are kept, and the committee is trained when it is needed next.
        """
        rows = self._checked_rows(indices)
        labels = checked_labels(labels, len(rows))
        weights = np.ones(len(rows)) if sample_weight is None else checked_weights(sample_weight, len(rows))
        before = self._state
        labels = joined(before.labels, labels) if len(before.rows) else labels
        LabelEncoder.fit(labels, "labels")  # for its errors
        self._state = replace(
            before,
            rows=np.concatenate([before.rows, rows]),
            labels=labels,
            weights=np.concatenate([before.weights, weights]),
            weighted=before.weighted or sample_weight is not None,
        )
        self._catch_up()
        return self

    def discard(self, indices: Any) -> Self:
        """Take rows out of the pool that nobody can label: `query` offers them no more.

        Raises the errors of `teach`.
        """
        rows = self._checked_rows(indices)
        self._state = replace(self._state, discarded=np.concatenate([self._state.discarded, rows]))
        return self

    # ---- all at once -------------------------------------------------------------------------------------------------------

    def run(self, oracle: Any, *, max_rows: int | None = None) -> Self:
        """Query and teach until there are labels enough, the hold-out error falls no more, or the pool is empty.

        Parameters
        ----------
        oracle : callable or array-like, shape (n_rows,)
            A function from row indices, intp (n,), to their labels; or the labels of the whole pool, of which only those of the
            chosen rows are used: others may be missing.
        max_rows : int, optional
            Stop with that many labelled rows, those of before included; the last batch may be smaller for it.

        Returns
        -------
        self
            After an interrupt, or an error of the oracle, another `run` goes on where this one ended.

        Raises
        ------
        ValueError, TypeError
            If an argument or what the oracle returns is not usable, or the estimator refuses to be trained on the labels so
            far. What has been taught remains, the last batch included if it was the estimator that refused.
        """
        limit = self.X.shape[0]
        if max_rows is not None:
            limit = min(limit, parameters.check_integer("max_rows", max_rows, 1))
        if callable(oracle):
            ask: Oracle = oracle
        else:
            ask = pool_labels(oracle, self.X.shape[0])
        self._catch_up(retry=False)
        while len(self._state.rows) < limit and not self._should_stop():
            rows = self.query()[: limit - len(self._state.rows)]
            if not len(rows):
                break
            self.teach(rows, answers(ask(rows.copy()), len(rows)))
        return self

    def _should_stop(self) -> bool:
        if self.n_iter_no_change is None or not self._state.records:
            return False
        return Patience(self.n_iter_no_change).should_stop(self.history_["valid_error"])

    # ---- within ------------------------------------------------------------------------------------------------------------

    @staticmethod
    def _name(i: int) -> str:
        return f"valid_{i}" if i else "valid"

    def _n_candidates(self, n_left: int) -> int:
        """Return how many of the rows that are left are scored."""
        limit = self.max_candidates
        if limit is None:
            return n_left
        return int(limit) if isinstance(limit, Integral) else int(np.ceil(limit * n_left))

    def _catch_up(self, *, retry: bool = True) -> None:
        """Train a committee, unless there is one of all labelled rows (or, without ``retry``, there could be none)."""
        state, n_rows = self._state, len(self._state.rows)
        if n_rows == (state.latest.n_rows if state.latest else 0) or (n_rows == state.refused and not retry):
            return
        try:
            trial = self._trial(state)
        except Exception as error:
            if isinstance(error, SystemError) and is_interrupt(error):
                raise KeyboardInterrupt from error
            if not isinstance(error, (ValueError, TypeError)):
                error.add_note(f"The {n_rows} labels taught so far are kept; the committee is trained when it is needed next.")
                raise
            self._state = replace(state, refused=n_rows)
            kind = ValueError if isinstance(error, ValueError) else TypeError
            raise kind(
                f"{error} [in training on the {n_rows} labels taught so far; they are kept: teach more of them, or run again]"
            ) from error
        if trial is None:
            return
        best = state.best
        if best is None or not self._watched or trial.record["valid_error"] < best.record["valid_error"]:
            best = trial
        self._state = replace(state, records=(*state.records, trial.record), latest=trial, best=best)

    def _trial(self, state: State) -> Trial | None:
        """Train a committee and look at the evaluation sets; None if there is no committee yet."""
        started = time.perf_counter()
        committee = self._train(state)
        if committee is None:
            return None
        record = {"n_rows": len(state.rows), "seconds": time.perf_counter() - started}
        known = LabelEncoder(np.asarray(committee.classes_), multi_label=False)
        for i, (X, y, weights) in enumerate(self._watched):
            ordered([*label_list(state.labels), *label_list(y)], f"y of eval_set[{i}] and those taught")
            predicted = known.encode(np.asarray(committee.predict(X)))
            wrong = predicted != known.encode(y, unknown_ok=True)
            record[f"{self._name(i)}_error"] = float(np.average(wrong, weights=weights))
        return Trial(committee, len(state.rows), record)

    def _train(self, state: State) -> Any:
        """Return a new committee; None if the estimator needs a second class that is not there yet."""
        order = np.argsort(state.rows)  # the committee depends on what is known, not on the order in which it was asked
        rows, labels = state.rows[order], state.labels[order]
        weights = {"sample_weight": state.weights[order]} if state.weighted else {}
        committee = seeded(clone(self.estimator), self._seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "interrupted after")  # that model is not kept
            try:
                committee.fit(take(self.X, rows), labels, **weights)
            except ValueError:
                if isinstance(committee, BoostingClassifier) or len(ordered(label_list(labels), "labels")) > 1:
                    raise
                return None
        if getattr(committee, "stop_reason_", "") == "interrupted":
            raise KeyboardInterrupt("the training was interrupted; the labels are kept")
        return committee

    def _checked_rows(self, indices: Any) -> Rows:
        """Return ``indices`` as rows that are still in the pool."""
        rows, n_rows = np.asarray(to_host(indices, "indices")), self.X.shape[0]
        if rows.ndim != 1 or not rows.size:
            raise ValueError(f"indices must be a list of at least one row, got shape {rows.shape}")
        if rows.dtype.kind not in "iu":
            raise TypeError(f"indices must be integers, positions of rows in the pool, got dtype {rows.dtype}")
        outside = rows[(rows < 0) | (rows >= n_rows)]
        if outside.size:
            raise ValueError(f"indices must be from 0 to {n_rows - 1}, the rows of the pool, got {outside[0]}")
        rows = rows.astype(np.intp)
        distinct, counts = np.unique(rows, return_counts=True)
        if len(distinct) < len(rows):
            raise ValueError(f"indices must not repeat a row, got {distinct[counts.argmax()]} {counts.max()} times")
        for known, what in ((self._state.rows, "has a label already"), (self._state.discarded, "has been discarded")):
            if (again := np.intersect1d(rows, known)).size:
                raise ValueError(f"indices must be of rows that are in the pool, but row {again[0]} {what}")
        return rows
