"""The cost matrix beside the confusion matrix."""

from __future__ import annotations

from typing import Any

from gpuboost.costs.matrix import average_cost, check_cost_matrix
from gpuboost.plotting.confusion import count, draw_confusion
from gpuboost.plotting.figure import Figure, new_figure
from gpuboost.plotting.matrix import draw_matrix, side


def costs(model: Any, X: Any, y: Any, cost_matrix: Any, sample_weight: Any, min_cost: bool) -> Figure:
    """Draw both matrices, see `gpuboost.plotting.Plots.costs`."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    given = model._costs() if cost_matrix is None else cost_matrix
    if given is None:
        raise ValueError(f"cost_matrix is needed: this {type(model).__name__} was not trained by costs")
    table, rows = count(model, X, y, sample_weight, given if min_cost else None)
    if len(rows) > len(model.classes_):
        raise ValueError(f"y has the label {rows[len(model.classes_)]!r}, which is no class of the model and has no costs")
    matrix = check_cost_matrix(given, model.classes_)
    figure = new_figure(2 * side(len(rows)) + 3.4, side(len(rows)) + 1.0)
    left, right = figure.subplots(1, 2)
    from matplotlib.colors import Normalize

    draw_matrix(
        left,
        matrix,
        (rows, model.classes_),
        lambda i, j: f"{matrix[i, j]:.4g}" if matrix[i, j] else "",
        cmap="Oranges",
        norm=Normalize(0.0, matrix.max() or 1.0),
        label="cost of the mistake",
    )
    left.set_title("Cost matrix")
    draw_confusion(right, table, rows, model.classes_, weighted=sample_weight is not None)
    decided = "labels of least expected cost" if min_cost else "plain predictions"
    figure.suptitle(f"Mean cost {average_cost(table, matrix):.4g} with {decided}")
    return figure
