"""What the workers of one training ask of each other: the protocol `Peers`.

Every worker runs the same program on its own rows. Only integers, maxima and short messages travel, so their order cannot
matter, and every worker goes on from the same numbers. All workers make the same calls in the same order. A call that differs
from the others' in anything that a `Call` says is an error on all workers, never a wrong number and never a wait without end.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.errors import WorkersPartedError

Integer = TypeVar("Integer", bound=np.integer[Any])
Number = TypeVar("Number", bound=np.generic)


class Peers(Protocol):
    """The workers of a training, as one of them sees them.

    ``what`` names a call for people, in errors, and must be the same on all workers. Arguments are not written. A result must
    not be written either: it may be the argument itself, or belong to several workers.

    Raises
    ------
    gpuboost.errors.WorkersPartedError
        By every call, on all workers, if the workers do not make the same one.
    gpuboost.errors.WorkerLostError
        By every call, if another worker has failed or does not answer.
    """

    @property
    def rank(self) -> int:
        """Number of this worker, ``0 .. size - 1``. Its rows come after those of lower ranks."""

    @property
    def size(self) -> int:
        """Number of workers."""

    def sum(self, array: NDArray[Integer], what: str) -> NDArray[Integer]:
        """Return the sum of the workers' arrays: integers of one shape and dtype, in native byte order. Exact.

        The sum must fit in that dtype.
        """

    def max(self, array: NDArray[Number], what: str) -> NDArray[Number]:
        """Return the elementwise maximum of the workers' arrays, of one shape and dtype, without NaN and -0.0."""

    def gather(self, data: bytes, what: str) -> list[bytes]:
        """Return the bytes of all workers, which may differ in length, in the order of their ranks."""

    def reduce_scatter(self, array: NDArray[Integer], bounds: IntArray, what: str) -> NDArray[Integer]:
        """Return this worker's part ``[bounds[rank]:bounds[rank + 1]]`` of the sum of the workers' arrays.

        Parameters
        ----------
        array : ndarray of integers, shape (n, ...)
            As for `sum`.
        bounds : ndarray of int64, shape (size + 1,)
            From 0 to n, never falling, and the same on all workers.
        what : str
        """

    def check(self, what: str) -> None:
        """Raise the error of a call if it is known that the workers have parted or that one was lost. It does not wait.

        It is no call: a worker may ask as often as it likes, as it does while devices exchange sums, which would wait for ever.
        """


class Call(NamedTuple):
    """What must be equal on all workers when they meet in a call.

    Attributes
    ----------
    number : int
        How many calls the worker has made before.
    op : str
        Name of the method of `Peers`.
    what : str
    dtype : str
        Of the array, as ``dtype.str``; "bytes" for `Peers.gather`.
    shape : tuple of int
        Of the array; () for `Peers.gather`, as lengths may differ.
    bounds : tuple of int
        Of `Peers.reduce_scatter`, else ().
    """

    number: int
    op: str
    what: str
    dtype: str = "bytes"
    shape: tuple[int, ...] = ()
    bounds: tuple[int, ...] = ()

    def __str__(self) -> str:
        array = "" if self.dtype == "bytes" else f" of {self.dtype} {self.shape}"
        parts = f" divided at {self.bounds}" if self.bounds else ""
        return f"{self.op} {self.what!r} (call {self.number}){array}{parts}"


def describe(number: int, op: str, what: str, value: NDArray[Any] | bytes, bounds: IntArray | None = None) -> Call:
    """Return the `Call` of what is about to travel."""
    if isinstance(value, bytes):
        return Call(number, op, what)
    parts = () if bounds is None else tuple(int(bound) for bound in bounds)
    return Call(number, op, what, value.dtype.str, value.shape, parts)


def parted(worker: int, call: Call | str, other: int, other_call: Call | str) -> WorkersPartedError:
    """Return the error of two workers of which each asks for another call, the lower rank first."""
    (first, here), (second, there) = sorted([(worker, str(call)), (other, str(other_call))])
    return WorkersPartedError(
        f"the workers have parted: worker {first} is at {here}, but worker {second} at {there}; "
        "all must take the same decisions, so this is a bug, or versions or settings that differ between them"
    )


def check_integers(array: NDArray[Any], what: str) -> None:
    """Refuse an array whose sum over the workers would depend on their order."""
    if array.dtype.kind not in "iu" or not array.dtype.isnative:
        raise TypeError(f"only integers in native byte order are summed over workers, but {what!r} has dtype {array.dtype}")


def check_bounds(bounds: IntArray, n_workers: int, length: int, what: str) -> None:
    """Refuse bounds that do not divide an axis of the given length between the workers."""
    steps = np.diff(bounds)
    if bounds.shape != (n_workers + 1,) or bounds[0] != 0 or bounds[-1] != length or (steps < 0).any():
        raise ValueError(
            f"bounds of {what!r} must be {n_workers + 1} numbers that do not fall, from 0 to {length}, got {bounds.tolist()}"
        )


def mark(*decided: Any) -> str:
    """Return a short name of arrays and numbers: in the name of a call it makes workers part that have decided otherwise."""
    code = 0
    for one in decided:
        code = zlib.crc32(one.encode() if isinstance(one, str) else np.ascontiguousarray(one).tobytes(), code)
    return f"{code:08x}"


def agree(peers: Peers, what: str, *decided: Any) -> None:
    """Make sure that all workers have decided alike; ``decided`` are arrays, numbers and text.

    It says where workers part that would otherwise go on from different numbers. For decisions that are taken once; those of
    every step are marked in the names of the calls that follow from them.
    """
    if peers.size > 1:
        peers.gather(b"", f"{what}, decided as {mark(*decided)}")


class Alone:
    """One worker, who has all rows: nothing travels."""

    rank = 0
    size = 1

    def sum(self, array: NDArray[Integer], what: str) -> NDArray[Integer]:
        check_integers(array, what)
        return array

    def max(self, array: NDArray[Number], what: str) -> NDArray[Number]:
        return array

    def gather(self, data: bytes, what: str) -> list[bytes]:
        return [data]

    def reduce_scatter(self, array: NDArray[Integer], bounds: IntArray, what: str) -> NDArray[Integer]:
        check_integers(array, what)
        check_bounds(bounds, 1, len(array), what)
        return array

    def check(self, what: str) -> None:
        """Nobody can be lost."""


ALONE: Peers = Alone()
"""The workers of a training in one process."""
