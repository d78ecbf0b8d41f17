"""Parameters are declared once: what a class has of its own, what it inherits, and what its documentation says of both."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from typing import Any, ClassVar

import pandas as pd
import pytest
from sklearn.base import clone

import gpuboost
from gpuboost import registry
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.estimators.docstrings import divided, entries
from gpuboost.estimators.parameters import GrowthParameters, Parameters, SamplingParameters, TrainingParameters
from gpuboost.messages import EARLIER_NAMES, did_you_mean

ESTIMATORS = [getattr(gpuboost, name) for name in registry.estimator_modules()]


class Small(GrowthParameters, BoostingClassifier):
    """An estimator in few lines.

    Parameters
    ----------
    max_bins : int, default 15
        Few.
    depth : int, default 3
        Of its own.

    Notes
    -----
    None.
    """

    kind: ClassVar[str] = "small"
    depth: int = 3
    max_bins: int = 15


class Handwritten(BoostingClassifier):
    """An estimator with an ``__init__`` of its own."""

    def __init__(self, *, n_estimators: int = 7) -> None:
        self.n_estimators = n_estimators


def names(*kinds: type[Parameters]) -> set[str]:
    return {name for kind in kinds for name in inspect.signature(kind).parameters}


def test_a_small_estimator_has_all_parameters() -> None:
    params = Small().get_params()
    assert set(params) == names(TrainingParameters, GrowthParameters) | {"depth"}
    assert {"warm_start", "random_state", "n_jobs", "early_stopping", "callbacks", "class_weight", "subsample"} < set(params)
    assert (params["depth"], params["max_bins"], params["n_estimators"]) == (3, 15, 500)
    assert all(parameter.kind == parameter.KEYWORD_ONLY for parameter in inspect.signature(Small).parameters.values())


def test_it_is_an_estimator_of_scikit_learn() -> None:
    model: Any = Small(depth=4, n_jobs=2)
    assert repr(model) == "Small(depth=4, n_jobs=2)"
    for other in (clone(model), pickle.loads(pickle.dumps(model)), Small().set_params(**model.get_params())):
        assert other is not model
        assert other.get_params() == model.get_params()
    assert model != clone(model)  # estimators are no values
    assert len({model, clone(model)}) == 2


def test_an_init_of_its_own_is_kept() -> None:
    model = Handwritten()
    assert model.get_params() == {"n_estimators": 7}
    assert model.max_bins == TrainingParameters().max_bins == 255
    assert set(entries(divided(Handwritten.__doc__)[1]["Parameters"])) == {"n_estimators"}


@pytest.mark.parametrize("kind", [*ESTIMATORS, Small, Handwritten])
def test_other_arguments_are_errors_of_the_class(kind: Any) -> None:
    for name in ("pruned", *EARLIER_NAMES):
        with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__\(\) got an unexpected keyword argument '{name}'"):
            kind(**{name: 1})
    with pytest.raises(TypeError, match="positional argument"):
        kind(100)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_all_have_the_shared_parameters(kind: Any) -> None:
    has = set(inspect.signature(kind).parameters)
    # The rounds of FilterBoost are samples already, those of similarities grow no trees.
    no_samples = kind in (gpuboost.FilterBoostClassifier, gpuboost.LocalizedSimilaritiesClassifier)
    assert names(TrainingParameters, *(() if no_samples else (SamplingParameters,))) < has
    assert ("pruning" in has) == ("min_weight_fraction_leaf" in has) == issubclass(kind, GrowthParameters)


# ---- documentation -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*ESTIMATORS, Small])
def test_the_documented_parameters_and_defaults_are_those_of_the_class(kind: Any) -> None:
    _, sections = divided(kind.__doc__)
    documented = entries(sections["Parameters"])
    assert set(documented) == set(inspect.signature(kind).parameters)
    for name, parameter in inspect.signature(kind).parameters.items():
        said = re.search(r", (?:default (.+)|optional)$", documented[name].splitlines()[0])
        assert said is not None, name
        assert (ast.literal_eval(said[1]) if said[1] else None) == parameter.default, name


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_documented_attributes_are_there(kind: Any) -> None:
    X, y = pd.DataFrame({"width": [0.0, 1.0, 2.0, 3.0, 0.0, 3.0]}), [0, 0, 1, 1, 0, 1]
    model = kind(n_estimators=2, device="numpy").fit(X, y)
    there = {name for name in dir(model) if re.fullmatch(r"[a-z]\w*[a-z]_", name) and hasattr(model, name)}
    documented = {name for entry in entries(divided(kind.__doc__)[1]["Attributes"]) for name in entry.split(", ")}
    assert documented - {"estimators_", *kind._optional_fitted} == there  # the former are of regressors
    assert set(kind._optional_fitted) <= documented


def test_every_estimator_says_what_is_like_it() -> None:
    for kind in ESTIMATORS:
        named = {name.strip() for line in entries(divided(kind.__doc__)[1]["See Also"]) for name in line.split(",")}
        assert named, kind
        assert [name for name in named if not hasattr(gpuboost, name.removeprefix("gpuboost."))] == []
        assert kind.__name__ not in named


def test_an_entry_of_the_class_replaces_an_inherited_one() -> None:
    summary, sections = divided(Small.__doc__)
    documented = entries(sections["Parameters"])
    assert summary == "An estimator in few lines."
    assert list(sections) == ["Parameters", "Attributes", "Notes"]
    assert list(documented)[:3] == ["max_bins", "depth", "min_weight_fraction_leaf"]
    assert documented["max_bins"] == "max_bins : int, default 15\n    Few."
    assert documented["subsample"] == entries(divided(SamplingParameters.__doc__)[1]["Parameters"])["subsample"]


# ---- names of version 0.1.0 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("earlier", "present"), EARLIER_NAMES.items())
def test_hints_name_what_a_parameter_is_called_now(earlier: str, present: str) -> None:
    X, y = [[0.0], [1.0]], [0, 1]
    with pytest.raises(ValueError, match=rf"SAMMEClassifier has no parameter '{earlier}' \(did you mean {present}\?\)"):
        gpuboost.fit(X, y, algorithm="samme", **{earlier: 1})
    assert did_you_mean(earlier, ["abc"]) == ""
    assert did_you_mean("n_estimator", ["n_estimators", present]) == " (did you mean n_estimators?)"
