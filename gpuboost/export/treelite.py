"""Treelite: the exchange format of tree models, with its own interpreter (GTIL), compilers, and GPU inference in cuML's FIL."""

from __future__ import annotations

from typing import Any

from gpuboost.export.trees import Model, RealTree, feature_names, real_trees
from gpuboost.extras import load
from gpuboost.links import Sigmoid, Softmax
from gpuboost.messages import warn
from gpuboost.registry import __version__


def to_treelite(model: Model) -> Any:
    """Return a fitted classifier as a Treelite model: see `gpuboost.export.methods.Exports.to_treelite`."""
    load("treelite", "to_treelite")
    from treelite.model_builder import Metadata, ModelBuilder, TreeAnnotation

    trees = real_trees(model)
    n_classes = trees[0].values.shape[1]
    many = model.multi_label_
    builder = ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=Metadata(
            num_feature=model.n_features_in_,
            task_type="kMultiClf" if n_classes > 1 and not many else "kBinaryClf" if many else "kRegressor",
            average_tree_output=False,
            num_target=n_classes if many else 1,
            num_class=[1] * n_classes if many else [n_classes],
            leaf_vector_shape=(n_classes, 1) if many else (1, n_classes),
        ),
        tree_annotation=TreeAnnotation(
            len(trees), [-1 if many else 0] * len(trees), [0 if many or n_classes == 1 else -1] * len(trees)
        ),
        postprocessor=_postprocessor(model, n_classes),
        base_scores=[0.0] * n_classes,
        attributes={"gpuboost": __version__, "feature_names": feature_names(model)},
    )
    for tree in trees:
        _add(builder, tree)
    return builder.commit()


def _postprocessor(model: Model, n_classes: int) -> Any:
    """Return the one that makes probabilities of the scores, or one that returns the scores."""
    from treelite.model_builder import PostProcessorFunc

    link = model._fitted_link(n_classes)
    if n_classes > 1 and link == Softmax() and not model.multi_label_:
        return PostProcessorFunc("softmax")
    if model.multi_label_ and isinstance(link, Sigmoid) and link.offset == 0:
        return PostProcessorFunc("sigmoid", sigmoid_alpha=link.scale)
    if link != model._link(n_classes):
        warn("Treelite has no postprocessor for the calibration of this model: it returns the scores, not the probabilities")
    return PostProcessorFunc("identity" if model.multi_label_ or n_classes == 1 else "identity_multiclass")


def _add(builder: Any, tree: RealTree) -> None:
    """Add a tree node by node."""
    columns = (tree.feature, tree.threshold, tree.missing_left, tree.left, tree.right)
    builder.start_tree()
    for number, (feature, threshold, missing_left, left, right) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        builder.start_node(number)
        builder.numerical_test(
            feature_id=feature,
            threshold=threshold,
            default_left=missing_left,
            opname="<",
            left_child_key=left,
            right_child_key=right,
        )
        builder.end_node()
    for number, values in enumerate(tree.values.tolist(), start=tree.n_inner):
        builder.start_node(number)
        builder.leaf(values if len(values) > 1 else values[0])
        builder.end_node()
    builder.end_tree()
