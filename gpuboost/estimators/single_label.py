"""What the estimators share whose loss needs one label a row."""

from __future__ import annotations

from gpuboost.estimators.base import BoostingClassifier
from gpuboost.inputs.label_encoder import LabelEncoder


class SingleLabelClassifier(BoostingClassifier):
    """Base class of classifiers for problems in which every row has exactly one class."""

    def _check_labels(self, encoder: LabelEncoder) -> None:
        """Refuse what the loss is not made for."""
        if encoder.multi_label:
            raise ValueError(
                f"{type(self).__name__} needs one label a row, but y is an indicator matrix; AdaBoostMHClassifier takes it"
            )

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags
