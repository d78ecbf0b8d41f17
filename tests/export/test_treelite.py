from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.export.models import KINDS, model, rows, scores

treelite = pytest.importorskip("treelite")


@pytest.mark.parametrize("kind", KINDS)
def test_gtil_has_the_same_scores_bit_for_bit(kind: str) -> None:
    fitted = model(kind)
    if kind in ("temperature", "mart, temperature", "sigmoids"):
        with pytest.warns(UserWarning, match="no postprocessor for the calibration"):
            exported = fitted.to_treelite()
    else:
        exported = fitted.to_treelite()
    Z = rows(fitted, 10_000)
    expected = scores(fitted, Z)
    raw = treelite.gtil.predict(exported, Z, pred_margin=True, nthread=1)
    assert raw.shape == ((len(Z), 3, 1) if fitted.multi_label_ else (len(Z), 1, expected.shape[1]))
    assert np.array_equal(raw.reshape(expected.shape), expected)
    processed = treelite.gtil.predict(exported, Z, nthread=1).reshape(expected.shape)
    if kind in ("abc", "filterboost", "mart", "multi-label", "multi-label, temperature"):
        np.testing.assert_allclose(processed, fitted.predict_proba(Z), rtol=0, atol=1e-6)
    else:
        assert np.array_equal(processed, expected)


def test_float32_input_is_compared_as_float64() -> None:
    fitted = model("adaboost.mh")
    with np.errstate(over="ignore"):
        Z = rows(fitted, 2_000).astype(np.float32)
    raw = treelite.gtil.predict(fitted.to_treelite(), Z, pred_margin=True, nthread=1)
    assert np.array_equal(raw[:, 0], scores(fitted, Z))


def test_infinite_thresholds_survive_a_file(tmp_path: Path) -> None:
    fitted = model("multi-label")
    assert np.isin([np.inf, -np.inf], [node for tree in _thresholds(fitted) for node in tree]).any()
    exported = fitted.to_treelite()
    exported.serialize(str(tmp_path / "model"))
    Z = rows(fitted, 1_000)
    again = treelite.Model.deserialize(str(tmp_path / "model"))
    assert np.array_equal(treelite.gtil.predict(again, Z, nthread=1), treelite.gtil.predict(exported, Z, nthread=1))


def _thresholds(fitted: object) -> list[list[float]]:
    from gpuboost.export.trees import real_trees

    return [tree.threshold.tolist() for tree in real_trees(fitted)]  # type: ignore[arg-type]
