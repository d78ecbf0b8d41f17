"""What a fitted classifier can be turned into, as methods; the files of the targets are loaded on use."""

from __future__ import annotations

from typing import Any, Literal


class Exports:
    """The methods of a classifier of trees that hand the model to other software; see `gpuboost.interchange`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the model as a plain dict for `json.dumps`, with real thresholds: see `gpuboost.interchange.plain.to_dict`."""
        from gpuboost.interchange.plain import to_dict

        return to_dict(self)  # type: ignore[arg-type]

    def to_onnx(self, input_dtype: Literal["float64", "float32"] = "float64") -> Any:
        """Return the model for ONNX runtimes: see `gpuboost.interchange.onnx.to_onnx`. Needs the extra "onnx"."""
        from gpuboost.interchange.onnx import to_onnx

        return to_onnx(self, input_dtype)  # type: ignore[arg-type]

    def to_treelite(self) -> Any:
        """Return the model for Treelite: see `gpuboost.interchange.treelite.to_treelite`. Needs the extra "treelite"."""
        from gpuboost.interchange.treelite import to_treelite

        return to_treelite(self)  # type: ignore[arg-type]

    def to_shap(self, background: Any) -> Any:
        """Return an explainer of the shap package: see `gpuboost.interchange.shap.to_shap`. Needs the extra "shap"."""
        from gpuboost.interchange.shap import to_shap

        return to_shap(self, background)  # type: ignore[arg-type]
