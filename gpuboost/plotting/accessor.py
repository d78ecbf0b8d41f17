"""``model.plot``: the kinds of pictures as methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboost.plotting.figure import Axes, Figure
from gpuboost.plotting.labels import class_texts
from gpuboost.plotting.run import Run, checked_history
from gpuboost.stopping import SmoothedError


class HistoryPlots:
    """The pictures that a training history is enough for.

    Parameters
    ----------
    history : dict of list
        As ``model.history_``, one entry a round.

    Raises
    ------
    TypeError, ValueError
        If it is no dict of lists of one length, or empty.
    """

    def __init__(self, history: Mapping[str, list[Any]]) -> None:
        self._history = checked_history(history)

    def _run(self) -> Run:
        return Run(self._history)

    def learning_curves(self, ax: Any = None, *, what: str | None = None, smoothed: bool | None = None) -> Axes | Figure:
        """Draw loss, error, cost and edge by rounds, of the training set and all evaluation sets.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw one quantity. A new figure if not given.
        what : str, optional
            "loss", "error", "cost", "edge", or anything else that the history has by rounds. By default all that is recorded in
            a figure with a panel for each, and in a given ``ax`` the cost if there is one, else the error.
        smoothed : bool, optional
            Whether to draw the smoothed error of eq. 15 of Kégl (2014), and the round that it chooses. By default where it
            chose the model's rounds. It begins with the first round that the rule may keep, the 51st of more than 50. The
            rounds that early stopping kept are always drawn.

        Returns
        -------
        Axes or Figure
            The Axes of one quantity, or the figure of all.

        Raises
        ------
        ValueError
            If the history has nothing of the kind.
        """
        from gpuboost.plotting.learning_curves import learning_curves

        return learning_curves(self._run(), what, smoothed, ax)

    def base_classes(self, ax: Any = None) -> Axes:
        """Draw the base class of every round of ABC-Boost, and each class's share of the rounds.

        Where early stopping kept some of the rounds, the last of them is marked, and the shares are of those.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        Axes

        Raises
        ------
        ValueError
            If the history has no base class.
        """
        from gpuboost.plotting.base_classes import base_classes

        return base_classes(self._run(), ax)

    def candidate_losses(self, ax: Any = None) -> Axes:
        """Draw how far above the loss of the chosen base class the training loss of the others would have been.

        Only the rounds of ABC-Boost that searched are drawn: the median and the worst of the candidates, in percent of the loss
        of the best.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        Axes

        Raises
        ------
        ValueError
            If the history has no losses of candidates.
        """
        from gpuboost.plotting.candidate_losses import candidate_losses

        return candidate_losses(self._run(), ax)

    def stream(self) -> Figure:
        """Draw the errors of FilterBoost with their bound, and the rows that were drawn, by rounds.

        The error of the rows that a round has drawn, before its tree is added, is one of rows that no tree has seen, until they
        come again. The bound is twice the share of the rows that the filter accepts; with more than two classes it may be
        above 100 %, which is not drawn.

        Returns
        -------
        Figure

        Raises
        ------
        ValueError
            If the history is that of another booster.
        """
        from gpuboost.plotting.stream import stream

        return stream(self._run())


class Plots(HistoryPlots):
    """The pictures of a model: what ``model.plot`` is.

    Every method raises scikit-learn's NotFittedError (a ValueError) before the model is fitted, an ImportError that says what
    to install without matplotlib, and a TypeError if ``ax`` is no Axes.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"<plots of {type(self._model).__name__}: {', '.join(name for name in dir(self) if name[0] != '_')}>"

    def _run(self) -> Run:
        from sklearn.utils.validation import check_is_fitted

        model = self._model
        check_is_fitted(model)
        history = checked_history(model.history_)
        rule = model._stopping() if "valid_error" in history else None
        stopped = rule is not None or model.n_estimators_ < len(history["train_loss"])
        return Run(
            history,
            class_texts(model.classes_),
            model.n_estimators_ if stopped else None,
            rule if isinstance(rule, SmoothedError) else None,
            model.multi_label_,
        )

    def confusion(self, X: Any, y: Any, *, sample_weight: Any = None, cost_matrix: Any = None, ax: Any = None) -> Axes:
        """Draw the confusion matrix: counts (or weights), and the shares of each true class, by which cells are shaded.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
        y : array-like, shape (n_rows,)
            Labels. Those that are no class of the model have rows of their own at the bottom.
        sample_weight : array-like, shape (n_rows,), optional
        cost_matrix : array-like, pandas DataFrame, or dict of dicts, optional
            Draw the predictions of least expected cost, as `predict` does.
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        Axes

        Raises
        ------
        ValueError
            If the data are not usable, or the model is multi-label.
        """
        from gpuboost.plotting.confusion import confusion

        return confusion(self._model, X, y, sample_weight, cost_matrix, ax)

    def costs(self, X: Any, y: Any, cost_matrix: Any = None, *, sample_weight: Any = None, min_cost: bool = False) -> Figure:
        """Draw the cost matrix beside the confusion matrix, with the mean cost.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
        y : array-like, shape (n_rows,)
        cost_matrix : array-like, pandas DataFrame, or dict of dicts, optional
            ``C[true, predicted]``, see `gpuboost.costs.check_cost_matrix`; by default the one that the model was trained by.
        sample_weight : array-like, shape (n_rows,), optional
        min_cost : bool, default False
            Whether the predictions are those of least expected cost.

        Returns
        -------
        Figure

        Raises
        ------
        ValueError
            If there is no cost matrix, it does not fit the classes, a label is no class, or the model is multi-label.
        """
        from gpuboost.plotting.costs import costs

        return costs(self._model, X, y, cost_matrix, sample_weight, min_cost)

    def reliability(self, X: Any, y: Any, *, sample_weight: Any = None, n_bins: int = 15, ax: Any = None) -> Axes:
        """Draw how often the model is right against how sure it is, in bins of the predicted class's probability.

        Points below the diagonal say that it is surer than it is right: see `calibrate`. The title has the expected calibration
        error, the mean distance from the diagonal. In a multi-label problem every class of a row counts for itself.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
            Rows that the model was neither trained nor calibrated on.
        y : array-like, shape (n_rows,) or (n_rows, n_classes)
            Labels. One that is no class counts as predicted wrong.
        sample_weight : array-like, shape (n_rows,), optional
        n_bins : int, default 15
            Of equal width.
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        Axes

        Raises
        ------
        ValueError, TypeError
            If the data are not usable, or the model has no probabilities.
        """
        from gpuboost.plotting.reliability import reliability

        return reliability(self._model, X, y, sample_weight, n_bins, ax)

    def importances(self, ax: Any = None, *, top: int = 20) -> Axes:
        """Draw the columns with the largest ``feature_importances_`` as bars, in percent.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if not given.
        top : int, default 20
            How many columns are drawn at most.

        Returns
        -------
        Axes

        Raises
        ------
        ValueError, TypeError
            If ``top`` is no positive integer, or the model has no trees.
        """
        from gpuboost.plotting.importances import importances

        return importances(self._model, top, ax)

    def tree(self, number: int = 0, *, max_leaves: int = 24, ax: Any = None) -> Axes:
        """Draw a tree from its root on the left to its leaves on the right, whose votes are bars on one scale.

        Parameters
        ----------
        number : int, default 0
            As in ``ensemble_.tree(number)``. MART, LogitBoost and ABC-Boost have several trees a round.
        max_leaves : int, default 24
            Of larger trees only the cuts that were made first are drawn, and how many leaves are missing below them.
        ax : matplotlib Axes, optional
            A new figure of the size that the tree needs if not given.

        Returns
        -------
        Axes

        Raises
        ------
        ValueError, TypeError
            If there is no such tree.

        Notes
        -----
        Which way missing values go is written where the training set had some; elsewhere they go with the larger values.
        """
        from gpuboost.plotting.trees import draw_tree

        return draw_tree(self._model, number, max_leaves, ax)

    def decision_map(
        self,
        X: Any,
        y: Any = None,
        columns: tuple[Any, Any] | None = None,
        *,
        at: Mapping[Any, float] | None = None,
        n_points: int = 200,
        max_rows: int = 500,
        ax: Any = None,
    ) -> Axes:
        """Draw the predicted class over two columns; the stronger the colour, the higher its probability.

        The title says at what the other columns are fixed. In the map of a `LocalizedSimilaritiesClassifier` of two columns the
        training points that it compares rows with have rings around them.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
            Rows that give the ranges of the two columns and the medians of the others.
        y : array-like, shape (n_rows,), optional
            Their labels: with them the rows are drawn, but those with missing or infinite values in the two columns.
        columns : pair of names or numbers, optional
            The columns of the axes x and y. Only a model of two columns can do without.
        at : dict, optional
            Values at which other columns are fixed, by name or number, in place of their medians. NaN is missing.
        n_points : int, default 200
            Points along each axis at which the model predicts.
        max_rows : int, default 500
            Of more rows every n-th is drawn, so that these are not exceeded.
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        Axes

        Raises
        ------
        ValueError, TypeError
            If the data or the columns are not usable, or the model is multi-label.
        """
        from gpuboost.plotting.decision_map import decision_map

        return decision_map(self._model, X, y, columns, at, n_points, max_rows, ax)


class PlotAccessor:
    """Makes ``model.plot`` without keeping anything in the model: copies, pickles and parameters know nothing of it."""

    def __get__(self, model: Any, owner: type | None = None) -> Plots | PlotAccessor:
        return self if model is None else Plots(model)
