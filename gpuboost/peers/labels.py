"""The labels of all workers."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.peers.base import Peers

OBJECTS, STRINGS, TEXT, OTHERS = b"O", b"S", b"T", b"N"
"""What a worker's labels are: text in an array of objects, of strings, or of fixed width; or an array of anything else."""


def united(distinct: NDArray[Any], name: str, peers: Peers) -> NDArray[Any]:
    """Return the sorted labels of all workers, from those of each; in the dtype that an array of all rows would have.

    Raises
    ------
    TypeError
        If labels are objects other than text, which do not travel, or text on some workers only.
    """
    if peers.size == 1:
        return distinct
    found = [data for data in peers.gather(_packed(distinct, name), f"labels of {name}") if data]
    kinds = {data[:1] for data in found}
    if OTHERS in kinds and len(kinds) > 1:
        raise TypeError(f"some workers have labels of {name} that are text, and others have none that are")
    if not found:
        return distinct
    if OTHERS in kinds:
        return np.unique(np.concatenate([np.load(io.BytesIO(data[1:]), allow_pickle=False) for data in found]))
    texts = sorted(set().union(*(json.loads(data[1:]) for data in found)))
    return np.array(texts, object if OBJECTS in kinds else np.dtypes.StringDType() if STRINGS in kinds else str)


def _packed(distinct: NDArray[Any], name: str) -> bytes:
    """Return labels as bytes: text in JSON, or an array without objects; nothing if there are none."""
    labels, kind = distinct.tolist(), distinct.dtype.kind
    if not labels:
        return b""
    if kind in ("O", "T", "U"):
        others = sorted({type(label).__name__ for label in labels if not isinstance(label, str)})
        if others:
            raise TypeError(
                f"labels of {name} that are objects must be text to train on several workers, got {', '.join(others)}"
            )
        return {"O": OBJECTS, "T": STRINGS, "U": TEXT}[kind] + json.dumps(labels).encode()
    stream = io.BytesIO()
    np.save(stream, distinct, allow_pickle=False)
    return OTHERS + stream.getvalue()
