"""Models that consist of models, in one file: each has a content and arrays of its own, whose names get a prefix.

Such a classifier has a parameter ``estimator``, the template, which is cloned and fitted for every part, and the attribute
``estimators_``, the parts.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np

from gpuboost.persistence.safetensors import Arrays

Content = dict[str, Any]
Packed = tuple[Content, Arrays]

PREFIXED = re.compile(r"(?s)part (0|[1-9][0-9]{0,8})/(.*)")


def pack_parts(template: Packed, parts: list[Packed], arrays: Arrays) -> Content:
    """Return a template and parts as JSON; put their arrays to those of the whole."""
    for number, (_, own) in enumerate([template, *parts]):
        arrays |= {f"part {number}/{name}": array for name, array in own.items()}
    return {"template": template[0], "contents": [content for content, _ in parts]}


def unpack_parts(json: Any, arrays: Arrays) -> tuple[Packed, list[Packed]]:
    """Return the template and the parts of `pack_parts`, whose arrays are taken out of ``arrays``.

    Raises
    ------
    ValueError
        If they are not understood.
    """
    if not isinstance(json, dict) or set(json) != {"template", "contents"} or not isinstance(json["contents"], list):
        raise ValueError("its parts are not understood")
    contents = [json["template"], *json["contents"]]
    if len(contents) < 2 or not all(isinstance(content, dict) for content in contents):
        raise ValueError("its parts are no models")
    packed: list[Packed] = [(content, {}) for content in contents]
    for name in [name for name in arrays if name.startswith("part ")]:
        found = PREFIXED.fullmatch(name)
        if found is None or int(found[1]) >= len(packed):
            raise ValueError(f"its array {name!r:.60} is of no part")
        packed[int(found[1])][1][found[2]] = arrays.pop(name)
    return packed[0], packed[1:]


def summed_up(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what `gpuboost.persistence.model_file.describe` says of the parts together: sums, and a digest of the digests."""
    sizes = [name for name in ("n_rounds", "n_trees", "n_nodes", "n_leaves", "n_points", "n_rounds_run") if name in parts[0]]
    facts: dict[str, Any] = {
        **{name: sum(part[name] for part in parts) for name in sizes},
        "digest": hashlib.sha256("".join(part["digest"] for part in parts).encode()).hexdigest(),
        "stop_reason": ", ".join(sorted({part["stop_reason"] for part in parts})),
        "importances": None,
    }
    if any(part["importances"] is None for part in parts):
        return facts
    shares = np.add.accumulate([part["importances"] for part in parts], axis=0)[-1]
    return facts | {"importances": shares / (float(np.add.accumulate(shares)[-1]) or 1.0)}
