"""SHAP: Shapley values of the scores, by the shap package.

Its TreeExplainer of the "interventional" kind compares with float32 thresholds, which cannot tell apart what float64 cuts do.
So it is not given the features' values, but their codes (see `gpuboost.binning`): integers below 256, which any float holds.
Codes say all that the trees look at, so the Shapley values of a feature's code are those of the feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.binning import MISSING_CODE
from gpuboost.export.trees import Model, exported_ensemble, feature_names, node_numbers
from gpuboost.extras import load
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.label_values import python_labels
from gpuboost.tree import Tree

MAX_NODES, MAX_PATH = 2**15 - 1, 30
"""What shap's 16-bit node numbers and 32-bit binomial coefficients can count: nodes of a tree, features on a way to a leaf."""


class ShapExplainer:
    """Explains the scores of a fitted classifier: what each feature adds to them, compared with the rows of a background.

    Attributes
    ----------
    expected_value : ndarray of float64, shape (n_classes,)
        The mean scores of the background.
    """

    def __init__(self, model: Model, background: Any) -> None:
        shap = load("shap", "to_shap")
        trees = exported_ensemble(model).trees()
        for tree in trees:
            refuse_large(tree)
        self._model, (codes, _) = model, _encoded(model, background)
        self._explainer = shap.TreeExplainer(
            {"trees": [_arrays(tree) for tree in trees], "internal_dtype": np.float64, "input_dtype": np.float64},
            shap.maskers.Independent(codes, max_samples=len(codes)),  # all of them
            feature_perturbation="interventional",
        )
        self.expected_value: NDArray[np.float64] = np.atleast_1d(self._explainer.expected_value)

    def __call__(self, X: Any) -> Any:
        """Explain rows.

        Parameters
        ----------
        X : array-like or data frame, shape (n_rows, n_features)

        Returns
        -------
        shap.Explanation
            For shap's plots. Its ``values``, shape (n_rows, n_features, n_classes), and ``base_values``, (n_rows, n_classes),
            sum up to the scores of the row; ``data`` are the features' values.
        """
        shap = load("shap", "to_shap")
        codes, matrix = _encoded(self._model, X)
        values = self._explainer.shap_values(codes)
        return shap.Explanation(
            np.reshape(values, (*codes.shape, len(self.expected_value))),
            base_values=np.tile(self.expected_value, (len(codes), 1)),
            data=matrix,
            feature_names=feature_names(self._model),
            output_names=[str(label) for label in python_labels(self._model.classes_)],
        )


def _encoded(model: Model, X: Any) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the codes of rows, NaN for missing values, and the matrix they are of."""
    matrix = to_host(model._matrix(X, reset=False))
    codes = model.bin_mapper_.transform(matrix).codes.T.astype(np.float64)
    codes[codes == MISSING_CODE] = np.nan
    return codes, matrix


def _arrays(tree: Tree) -> dict[str, NDArray[Any]]:
    """Return a tree over codes in the arrays that shap takes: rows go left where ``code <= threshold``."""
    left, right = node_numbers(tree.left), node_numbers(tree.right)

    def with_leaves(inner: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([inner, np.full(tree.n_leaves, -1, inner.dtype)])

    return {
        "children_left": with_leaves(left),
        "children_right": with_leaves(right),
        "children_default": with_leaves(np.where(tree.missing_left, left, right)),
        "features": with_leaves(tree.feature),
        "thresholds": with_leaves(tree.cut.astype(np.float64)),
        "values": np.concatenate([np.zeros((len(tree.cut), tree.values.shape[1])), tree.values]),
        "node_sample_weight": np.ones(len(tree.cut) + tree.n_leaves),  # not looked at: there is a background
    }


def refuse_large(tree: Tree) -> None:
    """Refuse a tree for which shap's integers would overflow unnoticed."""
    n_nodes = len(tree.cut) + tree.n_leaves
    on_way: list[frozenset[int]] = [frozenset()] * len(tree.cut)
    longest = 0
    if len(tree.cut) > MAX_PATH:
        for node, (feature, *children) in enumerate(zip(tree.feature.tolist(), tree.left, tree.right, strict=True)):
            seen = on_way[node] | {feature}
            longest = max(longest, len(seen))
            for child in children:
                if child >= 0:
                    on_way[child] = seen
    if n_nodes > MAX_NODES or longest > MAX_PATH:
        raise ValueError(
            f"shap explains trees of at most {MAX_NODES} nodes and {MAX_PATH} features on the way to a leaf, "
            f"but a tree has {n_nodes} nodes and {longest} features on a way; fit with a smaller max_leaf_nodes"
        )
