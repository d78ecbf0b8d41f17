"""The predicted class over two columns, the others fixed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.plotting.figure import Axes, axes_or_new, legend_beside
from gpuboost.plotting.labels import PLAIN, class_texts, column_names, column_number, text
from gpuboost.plotting.style import MARKERS, PALETTE, SMALL

LETTERS_ACROSS = 50
N_SHOWN = 2
"""The title shows that many values of columns that are fixed."""
MARGIN = 0.05
"""The map reaches beyond the rows by this share of their range."""


@dataclass(frozen=True)
class Grid:
    """What is predicted on a grid.

    Attributes
    ----------
    x, y : ndarray of float64, shape (n_points,)
        The values of the two columns.
    classes : ndarray of int64, shape (n_points, n_points)
        The predicted classes, the row being that of y.
    certainty : ndarray of float64, shape (n_points, n_points)
        The probability of the predicted class, scaled so that 0 is that of a guess; 1 if there are no probabilities.
    """

    x: Floats
    y: Floats
    classes: IntArray
    certainty: Floats

    @classmethod
    def of(cls, model: Any, fixed: Floats, columns: tuple[int, int], ranges: list[Floats]) -> Grid:
        """Predict on the grid of two ranges."""
        rows = np.tile(fixed, (len(ranges[0]) * len(ranges[1]), 1))
        x, y = np.meshgrid(*ranges)
        rows[:, columns[0]], rows[:, columns[1]] = x.ravel(), y.ravel()
        n_classes = len(model.classes_)
        if hasattr(model, "predict_proba"):
            proba = model.predict_proba(rows)
            numbers = proba.argmax(axis=1)
            certainty = (proba.max(axis=1) - 1 / n_classes) / max(1 - 1 / n_classes, 0.5)
        else:
            from gpuboost.inputs.label_encoder import LabelEncoder

            numbers = LabelEncoder(model.classes_, False).encode(model.predict(rows))
            certainty = np.ones(len(rows))
        return cls(ranges[0], ranges[1], numbers.reshape(x.shape), certainty.reshape(x.shape))

    def draw(self, axes: Axes) -> None:
        """Shade the classes by how certain they are, and draw their borders."""
        from matplotlib.colors import to_rgb

        colors = np.array([to_rgb(PALETTE[k % len(PALETTE)]) for k in range(int(self.classes.max()) + 1)])
        strength = (0.15 + 0.5 * np.clip(self.certainty, 0, 1))[..., None]
        image = 1 - strength * (1 - colors[self.classes])
        half = [(values[1] - values[0]) / 2 for values in (self.x, self.y)]
        extent = (self.x[0] - half[0], self.x[-1] + half[0], self.y[0] - half[1], self.y[-1] + half[1])
        axes.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="nearest")
        for k in np.unique(self.classes)[1:]:
            axes.contour(self.x, self.y, self.classes == k, levels=[0.5], colors="0.25", linewidths=0.5)
        axes.set(xlim=extent[:2], ylim=extent[2:])

    def label(self, axes: Axes, labels: list[str]) -> None:
        """Write each class where its region is widest, if it is wide enough for a letter."""
        from matplotlib.patheffects import withStroke
        from scipy.ndimage import distance_transform_edt

        for k in np.unique(self.classes):
            inside = np.pad(self.classes == k, 1)  # the border of the map is a border, too
            distance = distance_transform_edt(inside)[1:-1, 1:-1]
            row, column = np.unravel_index(int(distance.argmax()), distance.shape)
            if distance[row, column] * LETTERS_ACROSS >= len(self.x):
                place, halo = (self.x[column], self.y[row]), [withStroke(linewidth=2.5, foreground="white")]
                axes.text(*place, labels[k], ha="center", va="center", weight="bold", path_effects=halo, **PLAIN)


def decision_map(
    model: Any, X: Any, y: Any, columns: Any, at: Mapping[Any, float] | None, n_points: int, max_rows: int, ax: Any
) -> Axes:
    """Draw the map, see `gpuboost.plotting.Plots.decision_map`."""
    from gpuboost.inputs import parameters

    model, matrix, true = prepared(model, X, y)
    first, second = chosen_columns(model, columns)
    parameters.check_integer("n_points", n_points, 2, 2000)
    parameters.check_integer("max_rows", max_rows, 0)
    drawn = matrix[:, [first, second]]
    ranges = [values_between(drawn[:, i], column_names(model)[column], n_points) for i, column in enumerate((first, second))]
    fixed = fixed_values(model, matrix, at, (first, second))
    grid = Grid.of(model, fixed, (first, second), ranges)
    axes = axes_or_new(ax, 7.0, 4.8)
    grid.draw(axes)
    grid.label(axes, class_texts(model.classes_))
    shown = np.flatnonzero(np.isfinite(drawn).all(axis=1))
    shown = shown[:: -(-len(shown) // max_rows)] if max_rows else shown[:0]
    present = set(np.unique(grid.classes).tolist())
    if true is not None:
        present |= scatter(axes, drawn[shown], true[shown])
    if model.n_features_in_ == 2 and hasattr(model, "points_"):
        mark_points(axes, model.points_[:, [first, second]])
    legend(axes, model, sorted(present), has_rows=true is not None and len(shown) > 0)
    names = column_names(model)
    axes.set_xlabel(text(names[first], 50), **PLAIN)
    axes.set_ylabel(text(names[second], 40), **PLAIN)
    given = {column_number(model, column): fixed[column_number(model, column)] for column in at or {}}
    axes.set_title("\n".join(["Predicted class", *others(names, given)]), **PLAIN)
    return axes


def others(names: list[Any], given: dict[int, float]) -> list[str]:
    """Say at what the columns that are not drawn are fixed, in two lines at most; ``given`` are those that have no median."""
    values = [f"{text(names[i], 16)} = {'missing' if np.isnan(value) else format(value, '.4g')}" for i, value in given.items()]
    lines = [", ".join(values) if len(values) <= N_SHOWN else f"{len(values)} columns at given values"] if values else []
    n_medians = len(names) - 2 - len(given)
    if n_medians:
        lines.append("the other column at its median" if n_medians == 1 else f"the other {n_medians} columns at their medians")
    return lines


def prepared(model: Any, X: Any, y: Any) -> tuple[Any, Floats, IntArray | None]:
    """Check the model and the rows. Return a copy of the model that takes plain arrays, the rows, and their class numbers."""
    from sklearn.utils.validation import check_is_fitted

    from gpuboost.inputs.arrays import to_host
    from gpuboost.inputs.label_encoder import LabelEncoder, label_array

    check_is_fitted(model)
    if model.multi_label_:
        raise ValueError("a multi-label model has no decision map: its rows can have several classes")
    matrix = np.asarray(to_host(model._matrix(X, reset=False)), np.float64)
    true = None if y is None else LabelEncoder(model.classes_, False).encode(label_array(y, len(matrix)), unknown_ok=True)
    plain = copy.copy(model)
    if hasattr(plain, "feature_names_in_"):  # whose absence in the grid would be warned of
        del plain.feature_names_in_
    return plain, matrix, true


def chosen_columns(model: Any, columns: Any) -> tuple[int, int]:
    """Return the numbers of the two columns."""
    if columns is None:
        if model.n_features_in_ != 2:
            raise ValueError(f"the model has {model.n_features_in_} columns: choose two of them with columns=(x, y)")
        return 0, 1
    if isinstance(columns, (str, bytes)) or not hasattr(columns, "__len__") or len(columns) != 2:
        raise ValueError(f"columns must be two names or numbers of columns, got {columns!r}")
    first, second = (column_number(model, column) for column in columns)
    if first == second:
        raise ValueError(f"columns must be two different columns, got {columns!r}")
    return first, second


def fixed_values(model: Any, matrix: Floats, at: Mapping[Any, float] | None, drawn: tuple[int, int]) -> Floats:
    """Return the value of every column: the median of the rows (NaN if all are missing), unless another is given."""
    fixed = np.array([np.median(column[~np.isnan(column)]) if not np.isnan(column).all() else np.nan for column in matrix.T])
    for column, value in (at or {}).items():
        number = column_number(model, column)
        if number in drawn:
            raise ValueError(f"at fixes the column {column!r}, which is one of the two that are drawn")
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"at[{column!r}] must be a number, got {value!r}")
        fixed[number] = value
    return fixed


def values_between(column: Floats, name: Any, n_points: int) -> Floats:
    """Return equally spaced values over the range of a column, and somewhat beyond."""
    present = column[np.isfinite(column)]
    if not len(present):
        raise ValueError(f"X has no finite value in the column {name!r}")
    low, high = float(present.min()), float(present.max())
    margin = MARGIN * (high - low) or max(abs(low), 1.0) * MARGIN
    return np.linspace(low - margin, high + margin, n_points)


def scatter(axes: Axes, rows: Floats, true: IntArray) -> set[int]:
    """Draw rows with the markers of their classes, crosses for labels that are no class; return the classes."""
    present = set(np.unique(true).tolist())
    size = float(np.clip(4000 / max(len(rows), 1), 9, 36))
    for k in sorted(present):
        x, y = rows[true == k].T
        if k < 0:
            axes.scatter(x, y, s=size, marker="x", color="black", linewidths=0.8)
        else:
            color, marker = PALETTE[k % len(PALETTE)], MARKERS[k % len(MARKERS)]
            axes.scatter(x, y, s=size, marker=marker, color=color, edgecolors="black", linewidths=0.4)
    return present


def mark_points(axes: Axes, points: Floats) -> None:
    """Draw rings around the training points that a model keeps to compare rows with."""
    how: dict[str, Any] = {"s": 80, "facecolors": "none", "edgecolors": "0.15", "linewidths": 0.9}
    axes.scatter(points[:, 0], points[:, 1], label="points that rows are compared with", **how)


def legend(axes: Axes, model: Any, present: list[int], *, has_rows: bool) -> None:
    """Explain colours and markers beside the map."""
    from matplotlib.lines import Line2D

    labels = class_texts(model.classes_)
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker="x" if k < 0 else MARKERS[k % len(MARKERS)] if has_rows else "s",
            markersize=6,
            color="black" if k < 0 else PALETTE[k % len(PALETTE)],
            markeredgecolor="black",
            markeredgewidth=0.8 if k < 0 else 0.4,
        )
        for k in present
    ]
    names = ["no class of the model" if k < 0 else labels[k] for k in present]
    key = legend_beside(axes, handles=handles, labels=names, ncols=-(-len(names) // 18), fontsize=SMALL + 1)
    for entry in key.get_texts():
        entry.set_parse_math(False)
