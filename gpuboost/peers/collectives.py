"""How sums, maxima and gathered bytes come about by messages between pairs of workers.

Little travels by recursive doubling, in about log2(size) steps: in every step a worker swaps with another all that it knows.
Much travels around a ring, in parts: size - 1 steps to sum them, as many to hand the sums on [1]_. The order of additions
differs from worker to worker, which does not matter to integers.

References
----------
.. [1] Thakur, Rabenseifner and Gropp 2005, Optimization of collective communication operations in MPICH.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from struct import error as StructError
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.errors import WorkerLostError
from gpuboost.peers.base import Integer, Number, check_bounds, check_integers, describe
from gpuboost.peers.messages import Meeting

DOUBLING_BYTES = 1 << 16
"""Arrays up to this size go by recursive doubling, larger ones around the ring."""
FEW_WORKERS = 3
"""So many have as few steps around the ring as by doubling, and send less."""
Bytes = NDArray[np.uint8]


class Step(NamedTuple):
    """A step of recursive doubling: whom to send to and to receive from, and whether what comes is all that there is."""

    to: int | None
    source: int | None
    is_all: bool = False


def doubling(rank: int, size: int) -> list[Step]:
    """Return the steps of a worker. Those beyond the largest power of two have another work for them."""
    power = 1 << (size.bit_length() - 1)
    if rank >= power:
        return [Step(rank - power, None), Step(None, rank - power, is_all=True)]
    swaps = [Step(rank ^ (1 << i), rank ^ (1 << i)) for i in range(power.bit_length() - 1)]
    if rank + power >= size:
        return swaps
    return [Step(None, rank + power), *swaps, Step(rank + power, None)]


def partners(rank: int, size: int) -> set[int]:
    """Return the workers that a worker exchanges messages with."""
    swaps = {other for step in doubling(rank, size) for other in step[:2] if other is not None}
    return (swaps | {(rank - 1) % size, (rank + 1) % size}) - {rank}


class LinkedPeers(ABC):
    """The part of `Peers` that does not depend on what carries the messages.

    It is a context manager: at the end of the ``with`` block the others learn whether this worker has finished or failed.

    Attributes
    ----------
    rank, size : int
    n_calls : int
        Calls made so far.
    bytes_sent : int
        Bytes of the messages that this worker has sent.
    """

    def __init__(self) -> None:
        self.rank, self.size = 0, 1
        self.n_calls = 0
        self.bytes_sent = 0
        self._failure: Exception | None = None
        self._is_closed = False

    @abstractmethod
    def _exchange(self, meeting: Meeting, to: int | None, payload: Bytes, source: int | None, into: Bytes | None) -> bytes:
        """Send a message and receive one, at the same time.

        Parameters
        ----------
        meeting : Meeting
            The call that the messages belong to.
        to : int or None
            Who gets ``payload``, if anyone.
        source : int or None
            Whose message is received, if anyone's.
        into : ndarray of uint8, optional
            What the payload is written to, which must have this length. Without, it is returned.
        """

    @abstractmethod
    def _look(self, meeting: Meeting) -> None:
        """Look at what the partners have sent, without waiting; raise if one is neither at this call nor the next, or lost."""

    @abstractmethod
    def _close(self, error: BaseException | None) -> None:
        """Send last words to the partners, and close all connections."""

    @abstractmethod
    def _wake(self) -> None:
        """Let a thread that waits in `_exchange` look at `_check_failure`."""

    # ---- the end -------------------------------------------------------------------------------------------------------------

    def abort(self, error: Exception) -> None:
        """Let the call that this worker is in, or else its next one, raise ``error``. May be called from any thread."""
        self._failure = self._failure or error
        self._wake()

    def close(self, error: BaseException | None = None) -> None:
        """Close all connections. The other workers learn whether it was for an error."""
        if not self._is_closed:
            self._is_closed = True
            self._close(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(error)

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def _meeting(self, op: str, value: NDArray[Any] | bytes, what: str, bounds: IntArray | None = None) -> Iterator[Meeting]:
        """Enter a call. What goes wrong in it ends the calls of this worker, and the others hear of it."""
        call = describe(self.n_calls, op, what, value, bounds)
        with self._last(what):
            self._check_failure()
            if self._is_closed:
                raise RuntimeError(f"the links of worker {self.rank} are closed: it cannot take part in {what!r}")
            self.n_calls += 1
            yield Meeting(self.rank, call)

    @contextmanager
    def _last(self, what: str) -> Iterator[None]:
        """What goes wrong in here, an interrupt too, ends the calls of this worker."""
        try:
            yield
        except BaseException as error:
            if self._failure is None:
                self._failure = error if isinstance(error, Exception) else WorkerLostError(self.rank, what)
            self.close(error)
            raise

    # ---- the calls -----------------------------------------------------------------------------------------------------------

    def sum(self, array: NDArray[Integer], what: str) -> NDArray[Integer]:
        check_integers(array, what)
        with self._meeting("sum", array, what) as meeting:
            return self._reduce(meeting, array, np.add)

    def max(self, array: NDArray[Number], what: str) -> NDArray[Number]:
        with self._meeting("max", array, what) as meeting:
            return self._reduce(meeting, array, np.maximum)

    def gather(self, data: bytes, what: str) -> list[bytes]:
        known = {self.rank: bytes(data)}
        with self._meeting("gather", b"", what) as meeting:
            source = None
            for step in doubling(self.rank, self.size):
                payload = np.frombuffer(pack_pieces(known) if step.to is not None else b"", np.uint8)
                arrived = self._exchange(meeting, step.to, payload, step.source, None)
                if step.source is not None:
                    source = step.source
                    try:
                        known |= unpack_pieces(arrived, self.size)
                    except ValueError as error:
                        raise meeting.no_message(source, str(error)) from None
            if source is not None and len(known) < self.size:
                raise meeting.no_message(source, f"the pieces of the workers {sorted(known)} alone")
        return [known[rank] for rank in range(self.size)]

    def reduce_scatter(self, array: NDArray[Integer], bounds: IntArray, what: str) -> NDArray[Integer]:
        check_integers(array, what)
        check_bounds(bounds, self.size, len(array), what)
        own = slice(bounds[self.rank], bounds[self.rank + 1])
        with self._meeting("reduce_scatter", array, what, bounds) as meeting:
            if array.nbytes <= DOUBLING_BYTES and self.size > FEW_WORKERS:
                return self._reduce(meeting, array, np.add)[own]
            return self._rows_around_the_ring(meeting, array, bounds)

    def check(self, what: str) -> None:
        with self._last(what):
            self._check_failure()
            # Nobody may be further than at the call after the last one: that is what a worker that has parted is.
            self._look(Meeting(self.rank, describe(self.n_calls - 1, "check", what, b"")))

    # ---- how they travel -----------------------------------------------------------------------------------------------------

    def _reduce(self, meeting: Meeting, array: NDArray[Number], operation: np.ufunc) -> NDArray[Number]:
        total = np.array(array, order="C")
        if total.nbytes <= DOUBLING_BYTES:
            self._by_doubling(meeting, total, operation)
        else:
            flat = total.reshape(-1)
            bounds = np.array([len(flat) * i // self.size for i in range(self.size + 1)], np.int64)
            self._around_the_ring(meeting, flat, bounds, operation)
            self._spread_around_the_ring(meeting, flat, bounds)
        return total

    def _by_doubling(self, meeting: Meeting, total: NDArray[Any], operation: np.ufunc) -> None:
        """Turn ``total`` into the result of all workers."""
        arrived = np.empty_like(total)
        for step in doubling(self.rank, self.size):
            self._exchange(meeting, step.to, as_bytes(total), step.source, as_bytes(arrived))
            if step.is_all:
                total[...] = arrived
            elif step.source is not None:
                operation(total, arrived, out=total)

    def _around_the_ring(self, meeting: Meeting, total: NDArray[Any], bounds: IntArray, operation: np.ufunc) -> None:
        """Turn this worker's part of ``total`` into the result of all workers; the other parts are used up."""
        parts = [total[bounds[i] : bounds[i + 1]] for i in range(self.size)]
        left, right = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        for step in range(1, self.size):
            sent, mine = parts[(self.rank - step) % self.size], parts[(self.rank - step - 1) % self.size]
            arrived = np.empty_like(mine)
            self._exchange(meeting, right, as_bytes(sent), left, as_bytes(arrived))
            operation(mine, arrived, out=mine)

    def _rows_around_the_ring(self, meeting: Meeting, array: NDArray[Integer], bounds: IntArray) -> NDArray[Integer]:
        """Return this worker's part of the sum. Rows of zeros, as empty bins of histograms are, do not travel."""
        parts = [array[bounds[i] : bounds[i + 1]] for i in range(self.size)]
        left, right = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        total = parts[left]
        for step in range(1, self.size):
            packed = np.frombuffer(pack_rows(total), np.uint8)
            arrived = self._exchange(meeting, right, packed, left, None)
            try:
                total = add_rows(parts[(self.rank - step - 1) % self.size], arrived)
            except ValueError as error:
                raise meeting.no_message(left, str(error)) from None
        return total if self.size > 1 else total.copy()

    def _spread_around_the_ring(self, meeting: Meeting, total: NDArray[Any], bounds: IntArray) -> None:
        """Complete ``total`` from the parts of the workers."""
        parts = [total[bounds[i] : bounds[i + 1]] for i in range(self.size)]
        left, right = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        for step in range(self.size - 1):
            sent, missing = parts[(self.rank - step) % self.size], parts[(self.rank - step - 1) % self.size]
            self._exchange(meeting, right, as_bytes(sent), left, as_bytes(missing))


def as_bytes(array: NDArray[Any]) -> Bytes:
    """Return a view of the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def pack_rows(array: NDArray[Any]) -> bytes:
    """Return an array, shape (n, ...), as bytes: which rows have other entries than 0, a bit each, and those rows."""
    if not array.size:
        return bytes(-(-len(array) // 8))
    columns = np.ascontiguousarray(array.reshape(len(array), -1).T)  # whole vectors are faster than short rows
    has_entries = np.bitwise_or.reduce(columns, axis=0) != 0
    return np.packbits(has_entries).tobytes() + np.compress(has_entries, array, axis=0).tobytes()


def add_rows(array: NDArray[Integer], data: bytes) -> NDArray[Integer]:
    """Return the sum of an array and another one of the same shape and dtype, of which `pack_rows` has made ``data``.

    Raises
    ------
    ValueError
        If ``data`` does not come from `pack_rows`, of such an array.
    """
    n_bytes = -(-len(array) // 8)
    has_entries = np.flatnonzero(np.unpackbits(np.frombuffer(data[:n_bytes], np.uint8), count=len(array)))
    shape = (len(has_entries), *array.shape[1:])
    if len(data) != n_bytes + math.prod(shape) * array.itemsize:
        raise ValueError(f"{len(data)} bytes that are no rows of an array of shape {array.shape}")
    total = array.copy()
    total[has_entries] += np.frombuffer(data[n_bytes:], array.dtype).reshape(shape)  # a slice is aligned
    return total


COUNT, PIECE = Struct("<I"), Struct("<IQ")


def pack_pieces(pieces: dict[int, bytes]) -> bytes:
    """Return bytes of several workers as one: how many, their ranks and lengths, and the bytes."""
    lengths = [PIECE.pack(rank, len(piece)) for rank, piece in pieces.items()]
    return b"".join([COUNT.pack(len(pieces)), *lengths, *pieces.values()])


def unpack_pieces(data: bytes, size: int) -> dict[int, bytes]:
    """Return the bytes of several workers by rank.

    Raises
    ------
    ValueError
        If ``data`` does not come from `pack_pieces`.
    """
    try:
        (count,) = COUNT.unpack_from(data)
        offset = COUNT.size + count * PIECE.size
        index = list(PIECE.iter_unpack(data[COUNT.size : offset]))
    except StructError:
        raise ValueError(f"{len(data)} bytes that are not pieces of workers") from None
    pieces = {}
    for rank, length in index:
        pieces[rank] = data[offset : offset + length]
        offset += length
    if len(index) != count or len(pieces) != count or offset != len(data) or not all(rank < size for rank in pieces):
        raise ValueError(f"{len(data)} bytes that are not pieces of {size} workers")
    return pieces
