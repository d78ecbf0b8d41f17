"""True classes against predicted ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.inputs.label_values import python_labels
from gpuboost.plotting.figure import Axes, axes_or_new
from gpuboost.plotting.labels import count_text, percent_text
from gpuboost.plotting.matrix import draw_matrix, side

MOST_WITH_SHARES = 12
"""Up to so many classes, cells show their share below the count."""


def count(model: Any, X: Any, y: Any, sample_weight: Any, cost_matrix: Any) -> tuple[Floats, list[Any]]:
    """Return the weight of each pair of a true label (rows) and a predicted class (columns), and the labels of the rows.

    The rows are those of ``classes_``, followed by labels that are no class.
    """
    from sklearn.utils.validation import check_is_fitted

    from gpuboost.inputs.arrays import to_host
    from gpuboost.inputs.label_encoder import LabelEncoder, label_array
    from gpuboost.inputs.weights import row_weights

    check_is_fitted(model)
    if model.multi_label_:
        raise ValueError("a multi-label model has no confusion matrix: its rows can have several classes")
    encoder = LabelEncoder(model.classes_, False)
    predicted = encoder.encode(model.predict(X, cost_matrix=cost_matrix))
    y = label_array(y, len(predicted))
    true = encoder.encode(y, unknown_ok=True)
    unknown = list(dict.fromkeys(sorted(python_labels(y[true < 0]))))
    for k, label in enumerate(unknown):
        true[y == label] = len(model.classes_) + k
    n_classes = len(model.classes_)
    rows = [*model.classes_, *unknown]
    weights = np.ones(len(y)) if sample_weight is None else row_weights(sample_weight, len(y))
    if sample_weight is not None:  # row_weights scales by a power of two
        weights *= np.asarray(to_host(sample_weight), np.float64).max() / weights.max()
    table: Floats = np.bincount(true * n_classes + predicted, weights, len(rows) * n_classes).astype(np.float64)
    return table.reshape(len(rows), n_classes), rows


def draw_confusion(axes: Axes, table: Floats, rows: list[Any], classes: Any, *, weighted: bool) -> None:
    """Draw a confusion matrix, shaded by the shares of the true classes."""
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import FuncFormatter

    totals = table.sum(axis=1, keepdims=True)
    shares = np.divide(table, totals, out=np.zeros_like(table), where=totals > 0)

    def cell_text(i: int, j: int) -> str:
        if table[i, j] == 0:
            return ""
        number = count_text(table[i, j])
        return f"{number}\n{percent_text(shares[i, j])}" if max(table.shape) <= MOST_WITH_SHARES else number

    # The square root makes a share of 1 % visible beside one of 99 %.
    norm, percents = PowerNorm(0.5, 0.0, 1.0), FuncFormatter(lambda share, _: f"{100 * share:.0f} %")
    bar = {"label": "share of the true class", "ticks": [0, 0.01, 0.05, 0.2, 0.5, 1.0], "format": percents}
    draw_matrix(axes, shares, (rows, classes), cell_text, cmap="Blues", norm=norm, **bar)
    right = sum(table[k, k] for k in range(len(classes)))
    error = percent_text(1.0 - right / table.sum())
    what = f"of a weight of {count_text(table.sum())}" if weighted else f"of {count_text(table.sum())} rows"
    axes.set_title(f"Confusion matrix: error {error} {what}")


def confusion(model: Any, X: Any, y: Any, sample_weight: Any, cost_matrix: Any, ax: Any) -> Axes:
    """Draw a confusion matrix, see `gpuboost.plotting.Plots.confusion`."""
    table, rows = count(model, X, y, sample_weight, cost_matrix)
    axes = axes_or_new(ax, side(len(rows)) + 2.2, side(len(rows)) + 1.0)
    draw_confusion(axes, table, rows, model.classes_, weighted=sample_weight is not None)
    return axes
