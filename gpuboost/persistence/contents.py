"""What stands in a model file of trees, and in one of similarities: names and types of arrays, and their checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpuboost.binning import BinMapper
from gpuboost.ensemble import Ensemble
from gpuboost.persistence.checks import check_bins, check_ensemble, check_scale, check_similarities
from gpuboost.persistence.safetensors import Arrays, take
from gpuboost.similarities.ensemble import Similarities
from gpuboost.similarities.scale import FeatureScale


@dataclass(frozen=True)
class Table:
    """The arrays of one object of a model.

    Attributes
    ----------
    prefix : str
        Of their names in a file.
    noun : str
        What messages call them.
    attribute : str
        What the model calls the object.
    kind : type
        Its class, a dataclass of the arrays.
    arrays : dict
        The dtype and the number of dimensions of each.
    """

    prefix: str
    noun: str
    attribute: str
    kind: Callable[..., Any]
    arrays: dict[str, tuple[str, int]]


@dataclass(frozen=True)
class Contents:
    """A kind of model.

    Attributes
    ----------
    tables : tuple of Table
        First what the columns become, then the ensemble.
    check : callable
        Of the two objects and the number of classes; raises a ValueError if they are no model.
    describe : callable
        Of the number of features and the two objects: what `gpuboost.persistence.model_file.describe` says of them.
    """

    tables: tuple[Table, Table]
    check: Callable[[Any, Any, int], None]
    describe: Callable[..., dict[str, Any]]


def check_trees(mapper: BinMapper, ensemble: Ensemble, n_classes: int) -> None:
    """Check cuts, and trees that are grown on them."""
    check_bins(mapper)
    check_ensemble(ensemble, n_classes, mapper.n_cuts)


def check_points(scale: FeatureScale, ensemble: Similarities, n_classes: int) -> None:
    """Check levels, and similarities on them."""
    check_scale(scale)
    check_similarities(ensemble, n_classes, scale.top)


def describe_trees(n_features: int, bin_mapper: BinMapper, ensemble: Ensemble) -> dict[str, Any]:
    """Return the sizes of trees, their digest, and what each feature has won."""
    gains = ensemble.feature_gains(n_features)
    return {
        "n_rounds": ensemble.n_rounds,
        "n_trees": ensemble.n_trees,
        "n_nodes": len(ensemble.feature),
        "n_leaves": len(ensemble.values),
        "digest": ensemble.digest(),
        "importances": gains / (gains.sum() or 1.0),
    }


def describe_points(n_features: int, scale: FeatureScale, ensemble: Similarities) -> dict[str, Any]:
    """Return the sizes of similarities, and their digest."""
    return {
        "n_rounds": ensemble.n_rounds,
        "n_points": ensemble.n_points,
        "digest": ensemble.digest(),
        "importances": None,
    }


TREES = Contents(
    tables=(
        Table(
            "bins",
            "cuts",
            "bin_mapper",
            BinMapper,
            {"cut_values": ("<f8", 1), "cut_offsets": ("<i8", 1), "has_missing": ("|b1", 1)},
        ),
        Table(
            "ensemble",
            "trees",
            "ensemble",
            Ensemble,
            {
                "node_offset": ("<i8", 1),
                "leaf_offset": ("<i8", 1),
                "feature": ("<i4", 1),
                "cut": ("|u1", 1),
                "missing_left": ("|b1", 1),
                "left": ("<i4", 1),
                "right": ("<i4", 1),
                "gain": ("<f8", 1),
                "values": ("<f8", 2),
                "round_offset": ("<i8", 1),
            },
        ),
    ),
    check=check_trees,
    describe=describe_trees,
)
SIMILARITIES = Contents(
    tables=(
        Table(
            "scale",
            "scales",
            "scale",
            FeatureScale,
            {"low": ("<f8", 1), "unit": ("<f8", 1), "top": ("|u1", 1), "missing": ("|u1", 1)},
        ),
        Table(
            "similarities",
            "similarities",
            "ensemble",
            Similarities,
            {
                "levels": ("|u1", 2),
                "rows": ("<i8", 1),
                "classes": ("<i4", 1),
                "first": ("<i4", 1),
                "second": ("<i4", 1),
                "radius": ("<i8", 1),
                "coefficients": ("<f8", 2),
            },
        ),
    ),
    check=check_points,
    describe=describe_points,
)


def pack_model(model: Any) -> Arrays:
    """Return the arrays of an `gpuboost.estimators.model.Model` by their names in a file."""
    contents = SIMILARITIES if isinstance(model.ensemble, Similarities) else TREES
    return {
        f"{table.prefix}/{name}": getattr(getattr(model, table.attribute), name)
        for table in reversed(contents.tables)
        for name in table.arrays
    }


def unpack_model(arrays: Arrays, n_features: int, n_classes: int) -> tuple[Contents, dict[str, Any]]:
    """Return which kind of model a file has, and its objects by their names in the model, checked.

    ``arrays`` loses what is used.

    Raises
    ------
    ValueError
        If they are no model of these features and classes.
    """
    contents = SIMILARITIES if "similarities/first" in arrays else TREES
    columns, ensemble = contents.tables
    first = columns.kind(**{name: take(arrays, f"{columns.prefix}/{name}", *kind) for name, kind in columns.arrays.items()})
    if first.n_features != n_features:
        raise ValueError(f"it has {columns.noun} of {first.n_features} features, not of {n_features}")
    second = ensemble.kind(**{name: take(arrays, f"{ensemble.prefix}/{name}", *kind) for name, kind in ensemble.arrays.items()})
    contents.check(first, second, n_classes)
    return contents, {columns.attribute: first, ensemble.attribute: second}
