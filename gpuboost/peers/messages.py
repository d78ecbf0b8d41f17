"""What travels between two workers: a head of fixed length, a text, and a payload.

A call of `gpuboost.peers.base.Peers` is one message or several, whose text is the `Call` in words: who receives another text
than its own knows that the workers have parted. Nothing that arrives is run, or decides how much memory is taken before it
is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from struct import Struct
from typing import NamedTuple

from gpuboost.errors import WorkerLostError, WorkersPartedError
from gpuboost.peers.base import Call, parted

HEAD = Struct("<4sB3xIQQ")
MAGIC = b"gpb1"
MAX_TEXT = 1 << 16
"""Bytes of a text. That of a call grows with the number of workers, by the bounds of `Peers.reduce_scatter`."""


class Kind(IntEnum):
    """What a message is."""

    CALL = 0
    LOST = 1
    """Last words: a worker was lost."""
    PARTED = 2
    """Last words: the workers have parted."""
    END = 3
    """Last words: no call will follow."""
    HERE = 4
    """Who sends it waits for others."""


class Head(NamedTuple):
    """The beginning of a message.

    Attributes
    ----------
    kind : Kind
    n_text, n_payload : int
        Bytes that follow.
    number : int
        Of the call; the rank of the worker that was lost.
    """

    kind: Kind
    n_text: int
    number: int
    n_payload: int


@dataclass(frozen=True)
class Meeting:
    """A call as one worker makes it.

    Attributes
    ----------
    rank : int
        Of the worker.
    call : Call
    """

    rank: int
    call: Call

    @cached_property
    def text(self) -> bytes:
        """The call in words, which must be the same on all workers."""
        return str(self.call).encode()

    def head(self, n_payload: int) -> bytes:
        """Return the head and the text of a message of this call."""
        return pack(Kind.CALL, self.call.number, self.text, n_payload)

    def check_early(self, peer: int, head: Head, text: bytes) -> bool:
        """Look at a message that nobody waits for; return whether the peer has ended, as who needs nothing more of us may.

        Raises
        ------
        WorkersPartedError, WorkerLostError
            If it belongs neither to this call nor to the next one, or tells of an error.
        """
        is_next = head.kind is Kind.CALL and head.number == self.call.number + 1
        if not is_next and head.kind not in (Kind.END, Kind.HERE):
            self.check(peer, head, text)
        return head.kind is Kind.END

    def check(self, peer: int, head: Head, text: bytes) -> None:
        """Raise an error if the message that this worker waits for is not one of this call."""
        if head.kind is Kind.LOST:
            raise WorkerLostError(head.number, self.call.what)
        if head.kind is Kind.PARTED:
            raise WorkersPartedError(text.decode(errors="replace"))
        if head.kind is Kind.END:
            raise parted(self.rank, self.call, peer, "its end")
        if head.number != self.call.number or text != self.text:
            raise parted(self.rank, self.call, peer, text.decode(errors="replace"))

    def no_message(self, peer: int, why: str) -> WorkersPartedError:
        """Return the error of a peer that has sent what is no message."""
        return parted(self.rank, self.call, peer, f"something else: {why}")


def pack(kind: Kind, number: int = 0, text: bytes = b"", n_payload: int = 0) -> bytes:
    """Return a message without its payload. Too long a text loses its end."""
    text = text[:MAX_TEXT]
    return HEAD.pack(MAGIC, kind, len(text), number, n_payload) + text


def last_words(error: BaseException | None, rank: int) -> bytes:
    """Return what a worker says to the others when it ends with an error, or without one."""
    if error is None:
        return pack(Kind.END)
    if isinstance(error, WorkersPartedError):
        return pack(Kind.PARTED, text=str(error).encode())
    return pack(Kind.LOST, error.worker if isinstance(error, WorkerLostError) else rank)


def read_head(data: bytes | bytearray, offset: int = 0) -> Head | None:
    """Return the head that begins at ``offset``; None if not all of it is there.

    Raises
    ------
    ValueError
        If it is no head.
    """
    if len(data) - offset < HEAD.size:
        return None
    magic, kind, n_text, number, n_payload = HEAD.unpack_from(data, offset)
    if magic != MAGIC or kind not in list(Kind) or n_text > MAX_TEXT:
        raise ValueError(f"a message begins with {bytes(data[offset : offset + HEAD.size])!r}")
    return Head(Kind(kind), n_text, number, n_payload)


def messages(data: bytes | bytearray) -> Iterator[tuple[Head, bytes]]:
    """Give the head and the text of the messages in ``data``; the payload of the last may be cut short."""
    offset = 0
    while (head := read_head(data, offset)) is not None:
        start = offset + HEAD.size
        offset = start + head.n_text
        if len(data) < offset:
            return
        yield head, bytes(data[start:offset])
        offset += head.n_payload
