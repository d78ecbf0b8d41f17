"""The container of a code file: safetensors, whose first array, the codes, may be larger than memory.

A file of safetensors is the length of a JSON header (8 bytes), the header, and the bytes of the arrays. In a code file the
codes stand first, at a whole page, so that they can be read some rows at a time. The metadata have one entry, "gpuboost-codes",
a JSON text that begins with a checksum and the version of the format. The checksum is the SHA-256 of the whole file with zeros
in the checksum's place. `Container.open` trusts only sizes, which must fill the file; `Container.check` reads it all.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from math import prod
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuboost.binning.stored import bytes_of, read_into
from gpuboost.errors import CodeFileError
from gpuboost.persistence.safetensors import DTYPES, MAX_HEADER, NAMES, NO_CHECKSUM, are_sizes, parse, to_json

FORMAT = 1
"""The version of the format that is written; all versions up to it are read."""

KEY = "gpuboost-codes"
START = f'{{"__metadata__":{{"{KEY}":"{{\\"sha256\\":\\"'.encode()
CHECKSUM = slice(8 + len(START), 8 + len(START) + len(NO_CHECKSUM))
PAGE = 4096
BLOCK_BYTES = 1 << 20
AGAIN = "write it again with CodeFile.write"


class Tensor(NamedTuple):
    """An array that is to be written.

    Attributes
    ----------
    name : str
    dtype : dtype
    shape : tuple of int
    pieces : iterable of ndarray
        C-contiguous; their bytes follow one another in the array.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Iterable[NDArray[Any]]

    @classmethod
    def of(cls, name: str, array: NDArray[Any]) -> Tensor:
        """Return an array as what is to be written."""
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        return cls(name, little.dtype, little.shape, [little])

    @property
    def n_bytes(self) -> int:
        """The size of the array."""
        return prod(self.shape) * self.dtype.itemsize


def write(file: BinaryIO, content: Mapping[str, Any], tensors: Sequence[Tensor]) -> None:
    """Write a code file to an open file.

    Parameters
    ----------
    file : file
        At its beginning, and such that it can be sought in.
    content : dict
        What JSON can hold, without "sha256" and "format".
    tensors : list of Tensor

    Raises
    ------
    ValueError
        If the content is too large for a header.
    """
    text = to_json({"sha256": NO_CHECKSUM.decode(), "format": FORMAT, **content})
    header: dict[str, Any] = {"__metadata__": {KEY: text}}
    end = 0
    for one in tensors:
        begin, end = end, end + one.n_bytes
        header[one.name] = {"dtype": NAMES[one.dtype], "shape": list(one.shape), "data_offsets": [begin, end]}
    encoded = to_json(header).encode()
    encoded += b" " * (-(8 + len(encoded)) % PAGE)
    if len(encoded) > MAX_HEADER:
        raise ValueError(f"the classes and column names take {len(encoded)} bytes, and a code file has room for {MAX_HEADER}")
    sha = hashlib.sha256()

    def put(data: Any) -> None:
        sha.update(data)
        file.write(data)

    put(len(encoded).to_bytes(8, "little"))
    put(encoded)
    for one in tensors:
        for piece in one.pieces:
            put(bytes_of(piece).data)
    file.seek(CHECKSUM.start)
    file.write(sha.hexdigest().encode())


def is_code_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as code files do. Pipes are not looked at."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(CHECKSUM.start)[8:] == START


@dataclass(frozen=True, eq=False)
class Container:
    """What the header of a code file says. The file is opened anew whenever something is read, and must be the same then.

    Attributes
    ----------
    path : str
        Absolute.
    identity : tuple of int
        Device, number, size and time of the file.
    sha256 : str
        The checksum that the file claims.
    content : dict
        What the JSON text says.
    places : dict
        Name, dtype, shape and first byte of every array.
    """

    path: str
    identity: tuple[int, ...]
    sha256: str
    content: dict[str, Any]
    places: dict[str, tuple[np.dtype[Any], tuple[int, ...], int]]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Container:
        """Read the header of a file.

        Raises
        ------
        CodeFileError
            If it is no code file, cut short, or of a newer version.
        OSError
            If it cannot be read.
        """
        name = os.path.abspath(path)
        if not stat.S_ISREG(os.stat(name).st_mode):
            refuse(name, "is a folder or a device, not a file")
        with FileIO(name) as file:
            identity = identity_of(file)
            head = file.read(CHECKSUM.stop)
            if head[8:][: len(START)] != START:
                refuse(name, "is empty" if not head else "is no code file of gpuboost, or its beginning is damaged")
            n_header, size = int.from_bytes(head[:8], "little"), identity[2]
            if not CHECKSUM.stop < 8 + n_header <= min(size, 8 + MAX_HEADER):
                refuse(name, "is damaged or cut short")
            file.seek(8)
            text = file.read(n_header)
        try:
            content, places = read_header(text, 8 + n_header, size)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            refuse(name, f"is damaged or cut short: {error}")
        if content["format"] > FORMAT:
            refuse(name, f"is of a newer gpuboost: its format is {content['format']}, and this version reads up to {FORMAT}")
        return cls(name, identity, head[CHECKSUM].decode("latin-1"), content, places)

    def open(self) -> FileIO:
        """Open the file for reading.

        Raises
        ------
        CodeFileError
            If it has been replaced or changed.
        """
        file = FileIO(self.path)
        if identity_of(file) != self.identity:
            file.close()
            raise CodeFileError(f"{self.path!r} was replaced or changed since its header was read; make another CodeFile of it")
        return file

    def array(self, name: str, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array that must have this dtype and shape.

        Raises
        ------
        CodeFileError
            If it has not, or is not there.
        """
        found, found_shape, offset = self.places.get(name, (None, (), 0))
        if found != np.dtype(dtype) or found_shape != shape:
            refuse(self.path, f"was changed: its array {name!r} is missing, or not {np.dtype(dtype).name} of the shape {shape}")
        array = np.empty(shape, dtype)
        with self.open() as file:
            read_into(file, offset, array)
        if array.dtype.kind == "b" and (bytes_of(array) > 1).any():
            refuse(self.path, f"was changed: its array {name!r} has values that are neither true nor false")
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def check(self) -> None:
        """Read the whole file once, and compare it with its checksum.

        Raises
        ------
        CodeFileError
            If it does not match.
        """
        sha, block = hashlib.sha256(), bytearray(BLOCK_BYTES)
        with self.open() as file:
            start = file.read(CHECKSUM.stop)
            sha.update(start[: CHECKSUM.start] + NO_CHECKSUM)
            while n := file.readinto(block):
                sha.update(memoryview(block)[:n])
        if sha.hexdigest() != self.sha256:
            refuse(self.path, "is damaged: its bytes do not match its checksum")


def identity_of(file: FileIO) -> tuple[int, ...]:
    """Return what tells one file, and one state of it, from others."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def read_header(
    text: bytes, start: int, size: int
) -> tuple[dict[str, Any], dict[str, tuple[np.dtype[Any], tuple[int, ...], int]]]:
    """Return the content and the places of the arrays, which begin at ``start`` and fill the file; a ValueError if not."""
    header = parse(text)
    content = parse(header.pop("__metadata__")[KEY].encode("ascii"))
    if type(content.get("format")) is not int or content["format"] < 1:
        raise ValueError("its format is not understood")
    places, end = {}, start
    for name, entry in header.items():
        fields = entry if isinstance(entry, dict) else {}
        kind, shape, offsets = (fields.get(field) for field in ("dtype", "shape", "data_offsets"))
        if not (isinstance(kind, str) and kind in DTYPES and are_sizes(shape) and are_sizes(offsets)):
            raise ValueError(f"the entry of the array {name!r:.60} is not understood")
        dtype = np.dtype(DTYPES[kind])
        if offsets != [end - start, end - start + prod(shape) * dtype.itemsize]:  # type: ignore[arg-type]
            raise ValueError(f"the array {name!r:.60} is not where it should be, or not of its size")
        places[name] = (dtype, tuple(shape), end)  # type: ignore[arg-type]
        end = start + offsets[1]
    if end != size:
        raise ValueError(f"it should have {end} bytes, but has {size}")
    return content, places


def refuse(path: str, problem: str) -> NoReturn:
    """Raise a CodeFileError."""
    raise CodeFileError(f"cannot read {path!r} as a code file: it {problem}; {AGAIN}") from None
