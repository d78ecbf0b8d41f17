"""The labels of all workers."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.peers.base import Peers

TEXT, ARRAY = b"T", b"A"


def united(distinct: NDArray[Any], name: str, peers: Peers) -> NDArray[Any]:
    """Return the sorted labels of all workers, from those of each; in the dtype that an array of all rows would have.

    Raises
    ------
    TypeError
        If labels are objects other than text, which do not travel, or of types that have no order among them.
    """
    if peers.size == 1:
        return distinct
    is_text = distinct.dtype.kind == "O" and all(isinstance(label, str) for label in distinct.tolist())
    if distinct.dtype.kind == "O" and not is_text:
        kinds = sorted({type(label).__name__ for label in distinct.tolist()})
        raise TypeError(
            f"the labels of {name} must be numbers, dates or text to train on several workers, got {', '.join(kinds)}"
        )
    found = [data for data in peers.gather(_packed(distinct, is_text), f"labels of {name}") if len(data) > 1]
    if len({data[:1] for data in found}) > 1:
        raise TypeError(f"some workers have labels of {name} that are text, and others have none that are")
    if not found:
        return distinct
    if found[0][:1] == TEXT:
        return np.array(sorted(set().union(*(json.loads(data[1:]) for data in found))), object)
    return np.unique(np.concatenate([np.load(io.BytesIO(data[1:]), allow_pickle=False) for data in found]))


def _packed(distinct: NDArray[Any], is_text: bool) -> bytes:
    """Return labels as bytes: a list in JSON, or an array without objects; one byte if there are none."""
    if not len(distinct):
        return TEXT
    if is_text:
        return TEXT + json.dumps(distinct.tolist()).encode()
    stream = io.BytesIO()
    np.save(stream, distinct, allow_pickle=False)
    return ARRAY + stream.getvalue()
