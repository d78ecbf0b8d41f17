"""``model.plot`` disturbs nothing, loads nothing before it draws, and says what is missing; the notebook repr."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gpuboost
from gpuboost.plotting import KINDS, HistoryPlots, Plots
from tests.plotting.fitted import COSTS, flowers, model

DRAWN: dict[str, tuple[Any, ...]] = {
    "learning-curves": (),
    "confusion": flowers(),
    "costs": (*flowers(), COSTS),
    "reliability": flowers(),
    "importances": (),
    "tree": (),
    "base-classes": (),
    "candidate-losses": (),
    "stream": (),
    "decision-map": (*flowers(), (0, 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_into_a_file(kind: str, tmp_path: Any) -> None:
    fitted = model("filterboost" if kind == "stream" else "abc-boost")
    drawn = getattr(fitted.plot, KINDS[kind].method)(*DRAWN[kind])
    figure = drawn if hasattr(drawn, "savefig") else drawn.get_figure()
    for suffix in ("png", "svg"):  # labels with a dollar sign are no formulas, and one that begins with _ is no secret
        figure.savefig(tmp_path / f"picture.{suffix}", dpi=40)
        assert (tmp_path / f"picture.{suffix}").stat().st_size > 2000


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "learning-curves"])
def test_one_axes_is_enough_but_for_costs(kind: str) -> None:
    from matplotlib import pyplot

    if kind in ("costs", "stream"):
        pytest.skip("it has two")
    _, axes = pyplot.subplots()
    assert getattr(model("abc-boost").plot, KINDS[kind].method)(*DRAWN[kind], ax=axes) is axes
    with pytest.raises(TypeError, match="ax must be one matplotlib Axes, got ndarray"):
        getattr(model("abc-boost").plot, KINDS[kind].method)(*DRAWN[kind], ax=np.array([axes]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_not_fitted(kind: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(gpuboost.ABCBoostClassifier().plot, KINDS[kind].method)(*DRAWN[kind])


def test_kinds_are_the_methods() -> None:
    public = {name for name in dir(Plots) if not name.startswith("_")}
    assert {kind.method for kind in KINDS.values()} == public
    assert {kind.method for kind in KINDS.values() if kind.from_history} == {n for n in dir(HistoryPlots) if n[0] != "_"}
    assert "decision_map" in repr(model().plot)


def test_nothing_of_it_is_kept_in_the_model() -> None:
    fitted = model()
    before = dict(vars(fitted))
    fitted.plot.importances()
    assert vars(fitted).keys() == before.keys()
    assert "plot" not in fitted.get_params()
    assert clone(fitted).get_params() == fitted.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    assert again.plot.importances().patches[0].get_width() == 100 * fitted.feature_importances_.max()


@pytest.mark.slow
def test_matplotlib_is_loaded_when_it_draws_and_its_absence_is_explained() -> None:
    code = """
import sys
import numpy as np
import gpuboost
model = gpuboost.fit(np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1], n_estimators=1, device="numpy")
model.plot
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = sys.modules["matplotlib.axes"] = None
for draw in (model.plot.importances, model.plot.tree, model.plot.learning_curves):
    for options in ({}, {"ax": 1}):
        try:
            draw(**options)
        except ImportError as error:
            assert "pip install matplotlib" in str(error), error
        else:
            raise AssertionError(draw)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "costs", [None, COSTS, COSTS.to_numpy(), COSTS.to_dict("index")], ids=["none", "frame", "array", "dict"]
)
def test_notebook_repr_before_and_after_fit(costs: Any) -> None:
    X, y = flowers()
    plain = gpuboost.RebelClassifier(n_estimators=2, cost_matrix=costs, device="numpy")
    for estimator in (plain, clone(plain), clone(plain).fit(X, y)):
        html = estimator._repr_html_()
        assert "RebelClassifier" in html
        assert "n_estimators" in html
        assert estimator._repr_mimebundle_()["text/html"]
        assert repr(estimator).startswith("RebelClassifier(")


def test_notebook_repr_of_other_parameters() -> None:
    class_weight = {"daisy": 2.0}
    estimator = gpuboost.AdaBoostMHClassifier(
        class_weight=class_weight, callbacks=[print], random_state=np.random.default_rng(0)
    )
    assert "AdaBoostMHClassifier" in estimator._repr_html_()
    frame = gpuboost.ABCBoostClassifier(base_class=np.str_("daisy"))
    assert "daisy" in frame._repr_html_()
    assert isinstance(COSTS, pd.DataFrame)
