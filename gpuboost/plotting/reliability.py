"""How often a model is right where it says that it is sure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.plotting.figure import Axes, axes_or_new, quiet
from gpuboost.plotting.style import BLUE, SKY, SMALL


class Reliability(NamedTuple):
    """Forecasts in bins of equal width; those without weight are left out.

    Attributes
    ----------
    confidence, observed : ndarray of float64, shape (n_filled,)
        Means of a bin: of the probabilities, and of what they are of, 1 or 0.
    share : ndarray of float64, shape (n_filled,)
        Of the weight; they sum to 1.
    """

    confidence: Floats
    observed: Floats
    share: Floats

    @property
    def error(self) -> float:
        """The expected calibration error (Naeini, Cooper and Hauskrecht 2015)."""
        return float(np.add.accumulate(self.share * np.abs(self.confidence - self.observed))[-1])


def binned(p: Floats, happened: NDArray[np.bool_], weights: Floats, n_bins: int) -> Reliability:
    """Return forecasts, shape (n,), in bins."""
    place = np.minimum((p * n_bins).astype(np.int64), n_bins - 1)
    sums = [np.bincount(place, column, n_bins) for column in (weights, weights * p, weights * happened)]
    filled = sums[0] > 0
    weight, confidence, observed = (one[filled] for one in sums)
    return Reliability(confidence / weight, observed / weight, weight / weight.sum())


def measure(model: Any, X: Any, y: Any, sample_weight: Any, n_bins: int) -> Reliability:
    """Return how the probabilities of the predicted classes, or of all classes in a multi-label problem, come true."""
    from sklearn.utils.validation import check_is_fitted

    from gpuboost.inputs.arrays import to_host
    from gpuboost.inputs.label_encoder import LabelEncoder, label_array
    from gpuboost.inputs.parameters import check_integer
    from gpuboost.inputs.weights import row_weights

    check_is_fitted(model)
    check_integer("n_bins", n_bins, 1)
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"a {type(model).__name__} that was trained by costs has no probabilities")
    p = to_host(model.predict_proba(X))
    weights = row_weights(sample_weight, len(p))
    rows = np.flatnonzero(weights)
    true = LabelEncoder(model.classes_, model.multi_label_).encode(label_array(y, len(p), rows=rows), unknown_ok=True)
    if model.multi_label_:
        return binned(p[rows].ravel(), true.ravel() > 0, np.repeat(weights[rows], p.shape[1]), n_bins)
    return binned(p[rows].max(axis=1), p[rows].argmax(axis=1) == true, weights[rows], n_bins)


def reliability(model: Any, X: Any, y: Any, sample_weight: Any, n_bins: int, ax: Any) -> Axes:
    """Draw a reliability diagram, see `gpuboost.plotting.Plots.reliability`."""
    found = measure(model, X, y, sample_weight, n_bins)
    axes = axes_or_new(ax, 5.0, 4.6)
    axes.plot([0, 1], [0, 1], color="0.35", linestyle=":", linewidth=1.2, label="as sure as it is right")
    axes.plot(found.confidence, found.observed, color=BLUE, linewidth=1.4, zorder=2)
    areas = 12 + 400 * found.share
    axes.scatter(
        found.confidence, found.observed, s=areas, color=SKY, edgecolors=BLUE, zorder=3, label="bins; area: share of rows"
    )
    quiet(axes)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_xlabel("probability of the class" if model.multi_label_ else "probability of the predicted class")
    axes.set_ylabel("share of rows that have it" if model.multi_label_ else "share of rows predicted right")
    axes.set_title(f"Reliability: calibration error {100 * found.error:.1f} %")
    axes.legend(loc="upper left", frameon=False, fontsize=SMALL)
    return axes
