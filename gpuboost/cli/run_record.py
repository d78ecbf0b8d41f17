"""What a model file remembers of the command that made it: its columns, and a fingerprint by which a run is known again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpuboost.cli.reading.layout import Layout

KEY = "command line"
"""The entry of a model file."""


@dataclass(frozen=True)
class RunRecord:
    """A run of ``gpuboost fit``.

    Attributes
    ----------
    target : str or None
        The target's column.
    missing : list of str
        Texts that stood for missing values.
    layout : Layout
        The columns of the training table.
    options : dict of str to str
        All options that decide the model, as text.
    data : str
        Digest of the training set and the validation set.
    """

    target: str | None
    missing: list[str]
    layout: Layout
    options: dict[str, str]
    data: str

    def extra(self) -> dict[str, str]:
        """Return the entry of a model file."""
        return {KEY: json.dumps(asdict(self), sort_keys=True)}

    def difference(self, other: RunRecord) -> str:
        """Return what tells another run from this one, empty if nothing does."""
        earlier, now = other._decisive(), self._decisive()
        for name in sorted(earlier.keys() | now.keys()):
            old, new = (facts.get(name, "not given") for facts in (earlier, now))
            if old != new:
                return f"{name} was {old:.60}, and is {new:.60}"
        return "" if self.data == other.data and self.layout == other.layout else "the data are not the same"

    def _decisive(self) -> dict[str, str]:
        """Return what must be the same in the same run and can be told in words."""
        return {**self.options, "missing": str(self.missing), "what is no feature": str(self.layout.left_out)}


def read_record(extra: dict[str, str]) -> RunRecord | None:
    """Return the record in the extra entries of a model file; None if the command line did not make it.

    Raises
    ------
    ValueError
        If it cannot be read.
    """
    if KEY not in extra:
        return None
    try:
        content = json.loads(extra[KEY])
        return RunRecord(**{**content, "layout": Layout(**content["layout"])})
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"the model's record of its training cannot be read: {error}") from error


def digest(*parts: Any) -> str:
    """Return a digest of tables and arrays: of their names, types, shapes and values."""
    total = hashlib.sha256()
    for part in parts:
        names = list(part.column_names) if hasattr(part, "column_names") else None
        total.update(repr((type(part).__name__, names)).encode())
        for array in part.columns if names is not None else [part]:
            array = array.to_numpy() if names is not None else array
            if array is None:
                continue
            array = np.asarray(array.tolist(), dtype=str) if array.dtype.kind == "O" else array
            total.update(repr((array.dtype.str, array.shape)).encode())
            total.update(np.ascontiguousarray(array).view(np.uint8).data)
    return total.hexdigest()
