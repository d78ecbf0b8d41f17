"""Model files: what of a fitted classifier is kept, and how it comes back.

Everything that the model consists of is kept, and what it takes to continue it; nothing of the machine or the moment: equal
models are equal files, wherever and in however many sessions they were trained. See `persistence.safetensors` for the
container. A new name of a parameter is no new version of the format: the earlier name is translated on loading.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from hashlib import file_digest
from typing import Any

import numpy as np

from gpuboost.inputs.label_values import label_keys
from gpuboost.inputs.parameters import draw_seed
from gpuboost.messages import EARLIER_NAMES
from gpuboost.persistence.atomic_write import write_whole
from gpuboost.persistence.contents import pack_model, unpack_model
from gpuboost.persistence.history import check_history, pack_history, unpack_history
from gpuboost.persistence.parts import pack_parts, summed_up, unpack_parts
from gpuboost.persistence.safetensors import Arrays, TensorFile, bad_file, pack, read
from gpuboost.persistence.values import decode, decode_labels, encode, encode_labels
from gpuboost.registry import COMPOSITES, __version__, estimator_class, estimator_modules

Model = Any
"""A fitted `gpuboost.estimators.base.BoostingClassifier`, or one of `registry.COMPOSITES`, which has some as its parts.

What is saved belongs to a lower layer than what saves itself.
"""

OF_THE_MACHINE = ("device", "n_jobs", "verbose", "warm_start", "callbacks")
"""Parameters that say nothing about the model."""

TYPES: dict[str, Any] = {
    "gpuboost": str,
    "estimator": str,
    "parameters": dict,
    "classes": dict,
    "multi_label": bool,
    "n_features": int,
    "feature_names": (list, type(None)),
    "seed": (int, type(None)),
    "stop_reason": str,
    "fitted": dict,
    "history": list,
    "extra": dict,
}
"""What stands in a file beside the checksum and the format."""


def save(model: Model, path: str | os.PathLike[str], extra: Mapping[str, str] | None = None) -> None:
    """Write a fitted classifier to a file, see `gpuboost.AdaBoostMHClassifier.save`.

    Parameters
    ----------
    model : BoostingClassifier
    path : str or path
    extra : dict of str, optional
        What else should stand in the file; `describe` tells it.
    """
    write_whole(path, to_bytes(model, extra))


def to_bytes(model: Model, extra: Mapping[str, str] | None = None) -> bytearray:
    """Return what `save` writes."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    content, arrays = _content(model, dict(extra or {}))
    try:
        _restore(content, dict(arrays), type(model))
    except (ValueError, TypeError) as error:
        raise ValueError(f"this {content['estimator']} cannot be saved, as it could not be loaded: {error}") from error
    return pack(content, arrays)


def load(path: str | os.PathLike[str], device: str | int = "auto", n_jobs: int | None = None) -> Model:
    """Load a classifier, see `gpuboost.load`."""
    file = read(path)
    try:
        _check_content(file.content)
        model = _restore(file.content, dict(file.arrays), _known(file.content["estimator"], estimator_modules() | COMPOSITES))
    except (ValueError, TypeError, RecursionError) as error:
        bad_file(path, error)
    for one in (model.estimator, *model.estimators_) if type(model).__name__ in COMPOSITES else (model,):
        one.device, one.n_jobs = device, n_jobs
    return model


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says about its model, without loading an estimator or scikit-learn.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        "path", "n_bytes", "sha256" (of the file, as sha256sum says: equal for equal models), "format", "gpuboost" (the
        version that wrote it), "estimator", "parameters" (dict, those of the machine left out), "classes" (ndarray),
        "multi_label", "n_features", "feature_names" (list or None), "n_rounds", "n_trees", "n_nodes", "n_leaves" ("n_points"
        in the place of these three if the model compares rows with training points), "digest" (of the trees, as
        ``ensemble_.digest()``), "n_rounds_run" (those after the best one included), "stop_reason", "seed" (int or None),
        "fitted" (dict of fitted attributes), "history" (dict of list, without "seconds"), "extra" (dict of str), "importances"
        (ndarray of float64, shape (n_features,), that sums to 1 or 0; None without trees).

    Raises
    ------
    ModelFormatError, OSError
        As `gpuboost.load`.
    """
    file = read(path)
    with open(path, "rb") as bytes_of_it:
        sha256 = file_digest(bytes_of_it, "sha256").hexdigest()
    try:
        return _description(file, os.fspath(path)) | {"sha256": sha256}
    except (ValueError, TypeError, RecursionError) as error:
        bad_file(path, error)


def _content(model: Model, extra: dict[str, str]) -> tuple[dict[str, Any], Arrays]:
    """Return what of a model is kept, as JSON and arrays."""
    name = _name(model)
    composite = name in COMPOSITES
    if not composite:
        model._model.check_can_be_saved()
    if not all(isinstance(text, str) for pair in extra.items() for text in pair):
        raise TypeError(f"extra must be a dict of str, got {extra!r:.100}")
    arrays: Arrays = {}
    names = model._column_names
    content = {
        "gpuboost": __version__,
        "estimator": name,
        "parameters": _pack_parameters(model, arrays),
        "classes": encode_labels(model.classes_, "a class label"),
        "multi_label": model.multi_label_,
        "n_features": model.n_features_in_,
        "feature_names": None if names is None else encode(list(names), "a column name", {}),
        "seed": model._seed if model._seed_matters else None,
        "stop_reason": "" if composite else model.stop_reason_,
        "fitted": {k: encode(getattr(model, k), f"the attribute {k}", arrays) for k in _fitted_names(model)},
        "history": pack_history({} if composite else model.history_, arrays),
        "extra": extra,
    }
    if composite:
        own: Arrays = {}
        template = {"estimator": _name(model.estimator), "parameters": _pack_parameters(model.estimator, own)}
        content["parts"] = pack_parts((template, own), [_content(one, {}) for one in model.estimators_], arrays)
    else:
        arrays |= pack_model(model._model)
    return content, arrays


def _fitted_names(model: Model) -> list[str]:
    """Return the fitted attributes that are kept: those of all models of the class, and those that this one has besides."""
    return [*model._own_fitted, *(name for name in getattr(model, "_optional_fitted", ()) if name in vars(model))]


def _name(model: Model) -> str:
    """Return the name of the class of a model; a TypeError if it is not of this package."""
    name = type(model).__name__
    if name not in estimator_modules() | COMPOSITES or estimator_class(name) is not type(model):
        raise TypeError(f"only the classifiers of gpuboost can be saved, not {type(model).__module__}.{name}; pickle takes any")
    return name


def _pack_parameters(model: Model, arrays: Arrays) -> dict[str, Any]:
    """Return the parameters of a model that are kept, as JSON; one that stands for a part is not among them."""
    left_out = {*OF_THE_MACHINE, *(("estimator",) if type(model).__name__ in COMPOSITES else ())}
    values = {k: v for k, v in model.get_params(deep=False).items() if k not in left_out}
    if isinstance(values.get("random_state"), (np.random.Generator, np.random.RandomState)):
        values["random_state"] = getattr(model, "_seed", None)
    return {k: encode(v, f"the parameter {k}, or what is in it,", arrays) for k, v in values.items()}


def _check_content(content: dict[str, Any]) -> None:
    """Check that the text of a file has all that it must have, of the right types; a ValueError says if not."""
    missing = [name for name in TYPES if name not in content]
    parts = {"parts"} if content.get("estimator") in list(COMPOSITES) else set()
    missing += sorted(parts - content.keys())
    unknown = sorted(content.keys() - TYPES.keys() - {"sha256", "format"} - parts)
    if missing or unknown:
        raise ValueError(f"its header has no {missing[0]!r}" if missing else f"its header has {unknown[0]!r:.60}")
    for name, kind in TYPES.items():
        if not isinstance(content[name], kind) or (isinstance(content[name], bool) and kind is not bool):
            raise ValueError(f"the {name!r} in its header is {content[name]!r:.60}")
    if not all(isinstance(text, str) for text in content["extra"].values()):
        raise ValueError("its extra entries are no texts")
    if not 0 < content["n_features"] < 2**31 or (content["seed"] or 0) < 0:
        raise ValueError("its number of features or its seed is out of range")


def _known(name: Any, among: Mapping[str, str]) -> Any:
    """Return the estimator of that name."""
    if name not in list(among):
        raise ValueError(f"its estimator {name!r:.60} is not one of {sorted(among)}")
    return estimator_class(name)


def _make(content: dict[str, Any], arrays: Arrays, kind: Any, **parts: Any) -> Model:
    """Return an estimator with the parameters of a content, and with ``parts``."""
    known = set(inspect.signature(kind).parameters) - set(OF_THE_MACHINE) - set(parts)
    parameters = _parameters(content, arrays)
    unknown = sorted(parameters.keys() - known)
    if unknown:
        raise ValueError(f"{content['estimator']} has no parameter {unknown[0]!r:.60}")
    model: Model = kind(**parameters, **parts)
    model._check_parameters()
    return model


def _restore_parts(content: dict[str, Any], arrays: Arrays) -> tuple[Model, list[Model]]:
    """Return the template and the parts of a composite model."""
    (template, own), packed = unpack_parts(content["parts"], arrays)
    if set(template) != {"estimator", "parameters"} or not isinstance(template["parameters"], dict):
        raise ValueError("the template of its parts is not understood")
    estimator = _known(template["estimator"], estimator_modules())
    first = _make(template, own, estimator)
    if own:
        raise ValueError(f"it has an array {min(own)!r:.60} that nothing is known of")
    parts = []
    for one, arrays_of_it in packed:
        _check_content(one)
        if one["estimator"] != template["estimator"]:
            raise ValueError(f"a part is a {one['estimator']!r:.60}, not a {template['estimator']}")
        parts.append(_restore(one, arrays_of_it, estimator))
    return first, parts


def _restore(content: dict[str, Any], arrays: Arrays, estimator: Any) -> Model:
    """Return the classifier of a content that has been checked; a ValueError or TypeError says what is wrong with the rest.

    ``arrays`` loses what is used.
    """
    if "parts" in content:
        template, parts = _restore_parts(content, arrays)
        model = _make(content, arrays, estimator, estimator=template)
        model.estimators_ = parts
    else:
        model = _make(content, arrays, estimator)
    model.classes_, model.multi_label_ = _classes(content), content["multi_label"]
    model.n_features_in_ = content["n_features"]
    _name_columns(model, content["feature_names"])
    if "parts" not in content:
        _, held = unpack_model(arrays, content["n_features"], len(model.classes_))
        model._set_model(**held)
        model.n_estimators_ = model.ensemble_.n_rounds
        model.history_ = unpack_history(content["history"], arrays)
        check_history(model.history_, model.n_estimators_)
        model.stop_reason_ = content["stop_reason"]
    model._seed_matters = content["seed"] is not None
    model._seed = content["seed"] if model._seed_matters else draw_seed(None)
    names = set(content["fitted"])
    if not set(model._own_fitted) <= names <= {*model._own_fitted, *getattr(model, "_optional_fitted", ())}:
        raise ValueError(f"{content['estimator']} has the attributes {model._own_fitted}, not {sorted(names)!r:.60}")
    for name, value in content["fitted"].items():
        setattr(model, name, decode(value, arrays))
    model._check_own_fitted()
    if "parts" not in content:
        model._check_optional_fitted()
    if arrays:
        raise ValueError(f"it has an array {min(arrays)!r:.60} that nothing is known of")
    return model


def _parameters(content: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Return the parameters by their present names."""
    parameters = {EARLIER_NAMES.get(name, name): decode(value, arrays) for name, value in content["parameters"].items()}
    if len(parameters) < len(content["parameters"]):
        raise ValueError("a parameter stands there by its present name and by an earlier one")
    return parameters


def _classes(content: dict[str, Any]) -> Any:
    """Return the labels of the classes, which must differ."""
    classes = decode_labels(content["classes"])
    if not len(classes):
        raise ValueError("it has no classes")
    if content["multi_label"] and not (classes.dtype == np.int64 and (classes == np.arange(len(classes))).all()):
        raise ValueError("the classes of a multi-label model are not numbered")
    try:
        distinct = len(set(label_keys(classes)))
    except TypeError as error:
        raise ValueError(f"a class label cannot be looked up: {error}") from error
    if distinct != len(classes):
        raise ValueError("two of its classes are the same")
    return classes


def _name_columns(model: Model, encoded: list[Any] | None) -> None:
    """Set the names of the columns, and ``feature_names_in_`` if they are strings."""
    model._column_names = names = None if encoded is None else decode(encoded, {})
    if names is None:
        return
    if len(names) != model.n_features_in_:
        raise ValueError(f"it has {len(names)} column names for {model.n_features_in_} columns")
    if all(isinstance(name, str) for name in names):
        model.feature_names_in_ = np.array(names, dtype=object)


def _description(file: TensorFile, path: str) -> dict[str, Any]:
    content, arrays = file.content, dict(file.arrays)
    _check_content(content)
    facts = {
        "path": path,
        "n_bytes": file.n_bytes,
        "format": content["format"],
        "gpuboost": content["gpuboost"],
        "estimator": content["estimator"],
        "parameters": _parameters(content, arrays),
        "classes": _classes(content),
        "multi_label": content["multi_label"],
        "n_features": content["n_features"],
        "feature_names": None if content["feature_names"] is None else decode(content["feature_names"], {}),
        "seed": content["seed"],
        "fitted": {name: decode(value, arrays) for name, value in content["fitted"].items()},
        "extra": content["extra"],
    }
    if "parts" not in content:
        return facts | _description_of_model(content, arrays, facts["classes"])
    parts = []
    for one, own in unpack_parts(content["parts"], arrays)[1]:
        _check_content(one)
        parts.append(_description_of_model(one, own, _classes(one)))
    return facts | summed_up(parts) | {"history": unpack_history(content["history"], arrays)}


def _description_of_model(content: dict[str, Any], arrays: Arrays, classes: Any) -> dict[str, Any]:
    kind, held = unpack_model(arrays, content["n_features"], len(classes))
    history = unpack_history(content["history"], arrays)
    facts = kind.describe(content["n_features"], **held)
    check_history(history, facts["n_rounds"])
    return facts | {
        "n_rounds_run": len(next(iter(history.values()), [])) or facts["n_rounds"],
        "stop_reason": content["stop_reason"],
        "history": history,
    }
