"""The container of a model file: safetensors, which holds arrays and text and nothing that runs.

A file of safetensors is the length of a JSON header (8 bytes), the header, and the bytes of the arrays. Ours are written in one
way only, so that equal models are equal files: no spaces, ASCII, arrays by dtype and then by name, and one entry
of metadata, "gpuboost", a JSON text that begins with a checksum and the version of the format. The checksum is the SHA-256 of
the whole file with zeros in the checksum's place.

The reader gives up before anything large is made of bytes that it does not trust: it takes the time and memory of reading the
file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import ModelFormatError

FORMAT = 1
"""The version of the format that is written; all versions up to it are read."""

DTYPES = {
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
    "F32": "<f4",
    "U32": "<u4",
    "I32": "<i4",
    "F16": "<f2",
    "U16": "<u2",
    "I16": "<i2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}
"""The dtypes of arrays, in the order in which the arrays stand in a file; it is that of the safetensors library."""

NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
RANKS = {np.dtype(dtype): rank for rank, dtype in enumerate(DTYPES.values())}

MAX_HEADER = 8 << 20
MAX_ENTRIES = 300_000
"""A header has at most so many bytes, and commas, colons and brackets: parsing it stays below 100 MB and a second."""

NO_CHECKSUM = b"0" * 64
START = b'{"__metadata__":{"gpuboost":"{\\"sha256\\":\\"'
HEAD = re.compile(re.escape(START) + rb'([0-9a-f]{64})\\",\\"format\\":([0-9]{1,9})[,}]')
CHECKSUM = slice(8 + len(START), 8 + len(START) + 64)

WRITTEN = 'use a file that "model.save" or "gpuboost fit --out" has written'

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class TensorFile:
    """What a file holds.

    Attributes
    ----------
    content : dict
        What the JSON text says.
    arrays : dict of ndarray
    n_bytes : int
    """

    content: dict[str, Any]
    arrays: Arrays
    n_bytes: int


def pack(content: Mapping[str, Any], arrays: Arrays) -> bytearray:
    """Return the bytes of a file.

    Parameters
    ----------
    content : dict
        What JSON can hold, without "sha256" and "format".
    arrays : dict of ndarray
        Of the dtypes of `DTYPES`, with one or two dimensions.

    Raises
    ------
    ValueError
        If the content is too large for a header.
    """
    little = {name: np.ascontiguousarray(a, a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    ordered = sorted(little, key=lambda name: (RANKS[little[name].dtype], name))
    text = to_json({"sha256": NO_CHECKSUM.decode(), "format": FORMAT, **content})
    header: dict[str, Any] = {"__metadata__": {"gpuboost": text}}
    end = 0
    for name in ordered:
        begin, end = end, end + little[name].nbytes
        header[name] = {"dtype": NAMES[little[name].dtype], "shape": list(little[name].shape), "data_offsets": [begin, end]}
    encoded = to_json(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    if len(encoded) > MAX_HEADER or _n_entries(encoded) > MAX_ENTRIES:
        raise ValueError(
            f"the classes, column names and parameters of this model take {len(encoded)} bytes and {_n_entries(encoded)} "
            f"entries, more than a model file may have ({MAX_HEADER} and {MAX_ENTRIES})"
        )
    chunks: list[Any] = [len(encoded).to_bytes(8, "little"), encoded]
    chunks += [little[name].data.cast("B") for name in ordered if little[name].size]
    file = bytearray().join(chunks)
    file[CHECKSUM] = hashlib.sha256(file).hexdigest().encode()
    return file


def read(path: str | os.PathLike[str]) -> TensorFile:
    """Read a file and check that it is whole and well-formed.

    Raises
    ------
    ModelFormatError
        If it is not.
    OSError
        If it cannot be read.
    """
    name = os.fspath(path)
    if not stat.S_ISREG(os.stat(name).st_mode):
        _refuse(name, "is a folder or a device, not a file", WRITTEN)
    with open(name, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(CHECKSUM.stop + 32)
        found = HEAD.match(head, 8)
        if found is None:
            _refuse(name, *_foreign(head))
        if (number := int(found[2])) > FORMAT:
            newer = f"is of a newer gpuboost: its format is {number}, and this version reads up to {FORMAT}"
            _refuse(name, newer, "update gpuboost")
        if number < 1:
            _refuse(name, f"says that its format is {number}, which does not exist", "fetch or save it again")
        n_header = int.from_bytes(head[:8], "little")
        if not CHECKSUM.stop < 8 + n_header <= min(size, 8 + MAX_HEADER) or _checksum(file) != found[1].decode():
            _refuse(name, "is damaged or cut short: its bytes do not match its checksum", "fetch or save it again")
        try:
            return TensorFile(*_read_checked(file, n_header, size), n_bytes=size)
        except (ValueError, RecursionError) as error:
            bad_file(name, error)


def take(arrays: Arrays, name: str, dtype: str, ndim: int) -> Any:
    """Take an array out of ``arrays``; a ValueError if it is not there, or not of this kind."""
    array = arrays.pop(name, None)
    if array is None or array.dtype.newbyteorder("<") != np.dtype(dtype) or array.ndim != ndim:
        found = "missing" if array is None else f"{array.ndim}-dimensional of {array.dtype}"
        raise ValueError(f"its array {name!r:.60} is {found}, not {ndim}-dimensional of {np.dtype(dtype).name}")
    return array


def bad_file(path: str | os.PathLike[str], error: Exception) -> NoReturn:
    """Raise a ModelFormatError for a file whose checksum is right and whose content is not."""
    text = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    _refuse(os.fspath(path), f"was not written by gpuboost, or was changed: {text:.300}", "save the model again")


def _refuse(name: str, problem: str, advice: str) -> NoReturn:
    raise ModelFormatError(f"cannot load {name!r}: it {problem}; {advice}") from None


def _foreign(head: bytes) -> tuple[str, str]:
    """Say what a file is that does not begin as ours do, and what to do."""
    if not head:
        return "is empty", "fetch or save it again"
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05":
        return "is a pickle, which may run anything and is never opened", WRITTEN
    if len(head) < CHECKSUM.stop + 14 and (START.startswith(head[8:]) or head[8:].startswith(START)):
        return "is cut short", "fetch or save it again"
    return "is no model file of gpuboost, or its beginning is damaged", WRITTEN


def _checksum(file: BinaryIO) -> str:
    """Return the SHA-256 of a file with zeros in the checksum's place."""
    sha, block = hashlib.sha256(), bytearray(1 << 20)
    file.seek(0)
    start = file.read(CHECKSUM.stop)
    sha.update(start[: CHECKSUM.start] + NO_CHECKSUM)
    while n := file.readinto(block):  # type: ignore[attr-defined]
        sha.update(memoryview(block)[:n])
    return sha.hexdigest()


def _read_checked(file: BinaryIO, n_header: int, size: int) -> tuple[dict[str, Any], Arrays]:
    """Read the header and the arrays; a ValueError says what is wrong with them."""
    file.seek(8)
    header = parse(file.read(n_header))
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or list(metadata) != ["gpuboost"] or not isinstance(metadata["gpuboost"], str):
        raise ValueError('its metadata is not the one entry "gpuboost"')
    places = _places(header, size - 8 - n_header)
    content = parse(metadata["gpuboost"].encode("ascii"))
    data = np.empty(size - 8 - n_header, np.uint8)
    if file.readinto(data.data) != len(data):  # type: ignore[attr-defined]
        raise ValueError("it has become shorter while it was read")
    return content, {name: _array(data[begin:end], dtype, shape, name) for name, (dtype, shape, begin, end) in places.items()}


def parse(text: bytes) -> dict[str, Any]:
    """Parse a JSON object of limited size; a ValueError or a RecursionError says that it is none."""
    if _n_entries(text) > MAX_ENTRIES:
        raise ValueError("its header has too many entries")
    value = json.loads(text.decode("ascii"), object_pairs_hook=_unique, parse_constant=_no_constant)
    if not isinstance(value, dict):
        raise ValueError("its header is no JSON object")
    return value


def _places(header: dict[str, Any], n_bytes: int) -> dict[str, tuple[np.dtype[Any], list[int], int, int]]:
    """Return dtype, shape, begin and end of every array. They must be in our order and fill the rest of the file."""
    places, end, before = {}, 0, (0, "")
    for name, entry in header.items():
        if (
            not isinstance(entry, dict)
            or set(entry) != {"dtype", "shape", "data_offsets"}
            or entry["dtype"] not in list(DTYPES)
        ):
            raise ValueError(f"the entry of the array {name!r:.60} is not understood")
        dtype, shape, offsets = np.dtype(DTYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
        if not (are_sizes(shape) and len(shape) in (1, 2) and are_sizes(offsets)):
            raise ValueError(f"the shape or place of the array {name!r:.60} is not understood")
        if offsets != [end, end + prod(shape) * dtype.itemsize]:
            raise ValueError(f"the array {name!r:.60} is not where it should be, or not of its size")
        if (RANKS[dtype], name) < before:
            raise ValueError(f"the array {name!r:.60} is out of order")
        before, end = (RANKS[dtype], name), offsets[1]
        places[name] = (dtype, shape, offsets[0], end)
    if end != n_bytes:
        raise ValueError(f"its arrays have {end:.4g} bytes, but there are {n_bytes}")
    return places


def _array(data: NDArray[np.uint8], dtype: np.dtype[Any], shape: list[int], name: str) -> NDArray[Any]:
    if dtype.kind == "b" and (data > 1).any():
        raise ValueError(f"the array {name!r:.60} has values that are neither true nor false")
    return data.view(dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def are_sizes(numbers: Any) -> bool:
    """Whether a value of JSON is a list of numbers of bytes or entries."""
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 2**62 for n in numbers)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name stands twice in its header")
    return entries


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _n_entries(text: bytes) -> int:
    return sum(text.count(mark) for mark in b",:[{")


def to_json(value: Any) -> str:
    """Return a value as ASCII without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
