"""The estimator of FilterBoost and its family (`gpuboost.boosters.filtering`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.boosters.base import Metric
from gpuboost.boosters.exponential import MAX_STEP
from gpuboost.boosters.filtering.filterboost import FilterBoost, Schedule
from gpuboost.boosters.filtering.weak_learners import ClassVotes, ColourVotes, Criterion, WeakLearner
from gpuboost.codes.colourings import check_colourings
from gpuboost.estimators.base import SingleLabelClassifier
from gpuboost.estimators.stream_fitting import StreamFit
from gpuboost.exactmath import log
from gpuboost.inputs import parameters
from gpuboost.links import Link, Softmax
from gpuboost.peers.rows import RowOrder
from gpuboost.streams import as_source


class FilterBoostClassifier(SingleLabelClassifier):
    """FilterBoost: boosting on fresh rows of a stream, which are trained on if they pass a filter (Bradley 2008).

    Nothing is kept of the rows but the bins of their columns, so that data may be larger than memory, or never end: see
    `fit_stream`. Each round draws rows in the order of the stream. A row is accepted for training with the probability q that
    the model so far gives to its wrong label; the round's tree is then rated on fresh rows.

    Parameters
    ----------
    n_estimators : int, default 500
        Rounds of boosting, at most.
    max_leaf_nodes : int, default 8
        Leaves of a tree, at least 2; 2 are the stumps of the paper.
    multiclass : {"m2", "oc"}, default "m2"
        What a tree says with more than two classes: "m2" votes for or against every class (FilterBoost.M2), "oc" tells two
        halves of the classes apart that are drawn anew every round (FilterBoost.OC), which is faster with many classes. For a
        booster for each column of a coding matrix (one against all, all pairs, ...) see `OutputCodeClassifier`.
    colourings : array-like of -1 and +1, shape (n_colourings, n_classes), optional
        The halves for "oc", in the order of ``classes_``, which the rounds take in turns; random ones by default.
    leaf_values : {"newton", "vote", "paper", "fresh"}, default "newton"
        What a leaf adds to the scores. "vote" is algorithm 1, one coefficient a tree; "paper" the confidences of section 2.4,
        from the training rows, which overfit with trees; "fresh" the same from the rows of the edge; "newton" Newton steps of
        the logistic loss over all rows that the round has drawn, which learns fastest.
    learning_rate : float, default 0.3
        Multiplies Newton steps.
    examples_per_round : int or callable, default 3000
        How many rows a round trains on: the first thing to turn. More are better, and slower; the paper has 300 and says that
        Covertype wants 100,000. A callable gets the round, counted from 1, and returns the number. A small set is read 100
        times at most to find them.
    estimation_examples : int or callable, optional
        How many rows rate the round's tree; as many as it trains on by default.
    schedule : {"log", "constant"}, default "log"
        "log" multiplies both numbers by ``ln(t + 1)`` in round t, as the paper does; "constant" takes them as they are.
    draw : {"filter", "weight", "resample", "all"}, default "filter"
        "weight" trains on all rows that are drawn, with their weights q, in place of those that pass the filter. The others are
        the batch boosters that the paper compares with, for `fit` only: "all" trains on the whole set and "resample" on
        ``examples_per_round`` rows of it that are drawn by weight; both rate a tree on the whole set.
    weighting : {"logistic", "madaboost", "exponential"}, default "logistic"
        The weight of a margin m: ``1 / (1 + exp(m))``; ``min(1, exp(-m))`` as in MadaBoost (Domingo and Watanabe 2000); or
        ``exp(-m)``, which no filter can accept by. With ``draw="all"`` they are AdaBoost-LOG, MadaBoost and AdaBoost.
    edge_estimate : {"weighting", "egbstop", "nas"}, default "weighting"
        How a tree's edge is estimated for "vote": on ``estimation_examples`` rows, each with its weight (section 2.5); or, as
        in algorithm 2, on as many filtered rows as it takes to know it within a relative error ``tau``, by empirical Bernstein
        stopping or by nonmonotonic adaptive sampling. The latter two are for theory: an edge takes rows by its inverse square,
        so that trees of many ``examples_per_round``, which have larger edges, need fewer rows in all.
    target_error : float, optional
        Training ends as soon as the error is proven to be at most that, on rows drawn independently.
    delta : float, default 0.05
        The probability, at most, that anything that is proven is wrong.
    tau : float, default 0.2
        The relative error of edges.
    recycle : bool or "auto", default "auto"
        Whether to begin again where a source ends; "auto" does if the source can be read again, as all but generators and
        oracles can. Without, the model is that of the rounds so far, also if the source fails.
    max_examples : int, optional
        Training ends after so many rows.
    n_bin_rows : int, default 100000
        The cuts of the columns are the quantiles of that many rows from the beginning of the stream.
    kept_bytes : int, default 1000000000
        Of rows that come again codes, scores and weights are kept up to this size, so that only new trees are added to them.

    Attributes
    ----------
    history_ : dict of list of float
        See `gpuboost.training.Training`. Of every round, on the rows that it has drawn and before its tree is added:
        "train_loss" (logistic, in bits), "train_error", "acceptance" (p_t, the share of rows that the filter accepts), "bound"
        (2 p_t, which the error does not exceed), "draws" (rows read); then the tree's "edge", in -1/2 .. 1/2, with its standard
        error "edge_deviation", and "pass" and "row", where the next round begins.

    See Also
    --------
    AdaBoostMHClassifier : Lower errors in less time on data that fit into memory.
    gpuboost.streams : What `fit_stream` can read.

    References
    ----------
    J. K. Bradley (2008), FilterBoost: regression and classification on large datasets, Carnegie Mellon University.

    J. K. Bradley and R. E. Schapire (2007), the same title, NIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import FilterBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = FilterBoostClassifier(n_estimators=20, examples_per_round=100, random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    max_leaf_nodes: int = 8
    multiclass: Literal["m2", "oc"] = "m2"
    colourings: Any = None
    leaf_values: Literal["newton", "vote", "paper", "fresh"] = "newton"
    learning_rate: float = 0.3
    examples_per_round: int | Callable[[int], int] = 3000
    estimation_examples: int | Callable[[int], int] | None = None
    schedule: Literal["log", "constant"] = "log"
    draw: Literal["filter", "weight", "resample", "all"] = "filter"
    weighting: Literal["logistic", "madaboost", "exponential"] = "logistic"
    edge_estimate: Literal["weighting", "egbstop", "nas"] = "weighting"
    target_error: float | None = None
    delta: float = 0.05
    tau: float = 0.2
    recycle: bool | Literal["auto"] = "auto"
    max_examples: int | None = None
    n_bin_rows: int = 100_000
    kept_bytes: int = 1_000_000_000

    _margin_loss = "logistic"
    _metrics: ClassVar[Mapping[str, Metric]] = MappingProxyType(
        dict.fromkeys(("edge", "edge_deviation", "acceptance", "bound", "draws", "train_error", "pass", "row"), 0.0)
    )

    def fit_stream(self, source: Any, classes: Any = None, eval_set: Any = None, **options: Any) -> Self:
        """Train on a stream of rows.

        Parameters
        ----------
        source : Source, or what `gpuboost.streams.as_source` makes one of
            A tuple ``(X, y)`` of arrays or memory maps, a folder or list of files, an iterable or generator of such tuples, a
            function that draws n rows, ... Rows are taken in the order of the source; with ``warm_start=True`` training goes on
            at the row where it stopped.
        classes : array-like, optional
            The labels. By default those of the first ``n_bin_rows`` rows.
        eval_set : tuple or list of tuples, optional
            As in `fit`; these sets are in memory.
        **options
            Of `gpuboost.streams.as_source`: ``target``, ``weight`` and ``columns`` name columns of files, and ``shuffle`` is
            the seed of another order. Rows that lie sorted by class must be shuffled.

        Returns
        -------
        self
            If it is interrupted (Ctrl-C) after the first round, or a source that is not recycled fails, the model of the rounds
            so far.

        Raises
        ------
        StreamError
            If the source fails or changes in the middle, or has a label that is none of the classes.
        ValueError, TypeError
            If a parameter or the evaluation set is not usable.
        """
        if self.draw in ("resample", "all"):
            raise ValueError(f"draw={self.draw!r} holds the whole set in memory: use fit")
        if own := sorted(set(options) & set(self.get_params())):
            raise TypeError(f"{own[0]} is a parameter of {type(self).__name__}(...), not of fit_stream")
        return self._fitted_by(lambda fitted: StreamFit(fitted).from_source(as_source(source, **options), classes, eval_set))

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, order: RowOrder | None = None) -> list[str]:
        if order is not None:
            raise ValueError("FilterBoostClassifier reads one stream on one machine: it cannot train on several workers")
        return StreamFit(self).from_arrays(X, y, sample_weight, eval_set)

    # ---- what the base class asks for --------------------------------------------------------------------------------------

    def _check_own_parameters(self) -> None:
        check_choice, check_integer = parameters.check_choice, parameters.check_integer
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        asked: Any = self.multiclass
        if not isinstance(asked, str) or asked == "ovr":
            code = '"one-vs-all"' if isinstance(asked, str) else "matrix"
            raise ValueError(
                'multiclass must be "m2" or "oc"; a booster for each column of a coding matrix is '
                f"OutputCodeClassifier(FilterBoostClassifier(...), code={code}), which has fit_stream, too"
            )
        check_choice("multiclass", self.multiclass, ("m2", "oc"))
        check_choice("leaf_values", self.leaf_values, ("newton", "vote", "paper", "fresh"))
        parameters.check_learning_rate(self.learning_rate)
        for name in ("examples_per_round", "estimation_examples"):
            value = getattr(self, name)
            if not (callable(value) or (value is None and name == "estimation_examples")):
                check_integer(name, value, 1)
        check_choice("schedule", self.schedule, ("log", "constant"))
        check_choice("draw", self.draw, ("filter", "weight", "resample", "all"))
        check_choice("weighting", self.weighting, ("logistic", "madaboost", "exponential"))
        check_choice("edge_estimate", self.edge_estimate, ("weighting", "egbstop", "nas"))
        for name, high in (("target_error", 1), ("delta", 1), ("tau", 1)):
            if getattr(self, name) is not None or name != "target_error":
                parameters.check_between(name, getattr(self, name), high)
        if isinstance(self.recycle, str):
            check_choice("recycle", self.recycle, ("auto",))
        else:
            parameters.check_bool("recycle", self.recycle)
        if self.max_examples is not None:
            check_integer("max_examples", self.max_examples, 1)
        check_integer("n_bin_rows", self.n_bin_rows, 1)
        check_integer("kept_bytes", self.kept_bytes, 0)
        if self.edge_estimate != "weighting" and self.leaf_values != "vote":
            raise ValueError(
                f'edge_estimate={self.edge_estimate!r} is for leaf_values="vote", whose coefficient is made of the edge, '
                f"got leaf_values={self.leaf_values!r}"
            )
        if self.weighting == "exponential" and self.draw in ("filter", "weight"):
            raise ValueError(
                f'weighting="exponential" needs draw="resample" or "all", as its weights have no bound, got {self.draw!r}'
            )
        if self.edge_estimate != "weighting" and self.draw in ("resample", "all"):
            raise ValueError(f"edge_estimate={self.edge_estimate!r} draws fresh rows, but draw={self.draw!r} has none")
        if self.target_error is not None and (self.draw != "filter" or self.weighting != "logistic"):
            raise ValueError('target_error needs draw="filter" and weighting="logistic": the proof counts rejections by q')

    def _draws(self, eval_set: Any) -> bool:
        return True

    def _booster(self, examples: Any, n_classes: int, recycle: bool) -> FilterBoost:
        """Return the algorithm that draws from ``examples``."""
        logarithmic = self.schedule == "log"
        n_train = Schedule(self.examples_per_round, logarithmic)
        n_estimate = n_train if self.estimation_examples is None else Schedule(self.estimation_examples, logarithmic)
        in_halves = self.multiclass == "oc"
        # Votes want a large edge, confidences pure leaves (section 4.1); votes for more than two classes are no confidences.
        criterion: Criterion = "edge" if self.leaf_values == "vote" or (n_classes > 2 and not in_halves) else "entropy"
        learner: WeakLearner = ClassVotes(int(self.max_leaf_nodes), criterion)
        if in_halves:
            colourings = check_colourings(self.colourings, n_classes)
            learner = ColourVotes(int(self.max_leaf_nodes), n_classes, self._seed, colourings, criterion)
        return FilterBoost(
            examples,
            learner,
            n_train,
            n_estimate,
            leaf_values=self.leaf_values,
            learning_rate=float(self.learning_rate),
            filtering=self.draw in ("filter", "resample"),
            estimate=self.edge_estimate,
            tau=float(self.tau),
            delta=float(self.delta),
            epsilon=None if self.target_error is None else float(self.target_error),
            recycle=recycle,
        )

    def _prior_scores(self, positive: NDArray[np.int64], total: int) -> Floats:
        shares: Floats = log(positive / total)
        return np.clip(shares, -MAX_STEP, MAX_STEP)

    def _link(self, n_classes: int) -> Link:
        # With two classes sigma(F) of section 2.1: scores differ by F. For the exponential loss F is half the log odds.
        return Softmax(0.5 if self.weighting == "exponential" else 1)
