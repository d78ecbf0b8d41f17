"""One connection to a partner: what is on its way out, and what has come in."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

from gpuboost.errors import WorkerLostError
from gpuboost.peers.collectives import Bytes
from gpuboost.peers.messages import HEAD, Head, Kind, Meeting, messages, read_head

READ_AHEAD = 1 << 18
"""Bytes that are received before anyone asks for them, and at a time where the length is the sender's word."""
TOGETHER_BYTES = 1 << 16
"""A payload up to this size is sent together with its head."""
LAST_SECONDS = 0.2
"""How long the rest of a message waits for a peer to read it, when the worker has failed."""
MAX_GATHERED = 1 << 31
"""Bytes of a message of which the receiver does not know the length."""


class Link:
    """A connection that never waits.

    Attributes
    ----------
    peer : int
    connection : socket
    unread : bytearray
        What has been received and does not yet belong to a call of ours.
    at_end : bool
        Whether the other side has closed.
    """

    def __init__(self, peer: int, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.peer = peer
        self.connection = connection
        self.unread = bytearray()
        self._received = memoryview(bytearray(READ_AHEAD))  # that a call of the system fills: to make it anew takes longer
        self.at_end = False
        self._unsent: list[memoryview] = []
        self.watched = 0

    @property
    def is_full(self) -> bool:
        """Whether no more can be read ahead."""
        return len(self.unread) >= READ_AHEAD

    def read_ahead(self) -> int:
        """Receive what is there, and return how much it was."""
        return self._receive(lambda: self._append(READ_AHEAD - len(self.unread)))

    def read_into(self, target: memoryview) -> int:
        """Receive into ``target``, and return how much came."""
        return self._receive(lambda: self.connection.recv_into(target))

    def _append(self, most: int) -> int:
        n = self.connection.recv_into(self._received[:most])
        self.unread += self._received[:n]
        return n

    def _receive(self, receive: Callable[[], int]) -> int:
        try:
            n = receive()
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            n = 0
        self.at_end = n == 0
        return n

    # ---- sending -------------------------------------------------------------------------------------------------------------

    @property
    def is_sending(self) -> bool:
        """Whether a message is only partly sent."""
        return bool(self._unsent)

    def post(self, head: bytes, payload: Bytes) -> None:
        """Take a message to be sent by `push`."""
        if payload.nbytes <= TOGETHER_BYTES:  # one call of the system is worth a copy
            self._unsent.append(memoryview(head + payload.tobytes()))
        else:
            self._unsent += [memoryview(head), payload.data]

    def push(self) -> int:
        """Send what the system takes now, and return how much it was; an OSError if the other side is gone."""
        sent = 0
        while self._unsent:
            try:
                n = self.connection.send(self._unsent[0])
            except (BlockingIOError, InterruptedError):
                break
            sent += n
            rest = self._unsent[0][n:]
            self._unsent[:1] = [rest] if rest.nbytes else []
        return sent

    def close(self, last_words: bytes) -> None:
        """Send the rest of a message, if the other side reads it, and the last words; then close."""
        self._unsent.append(memoryview(last_words))
        with suppress(OSError):
            self.connection.settimeout(LAST_SECONDS)
            while self._unsent:
                self.push()
        self.connection.close()

    # ---- what has come in while nobody asked ---------------------------------------------------------------------------------

    def check_unread(self, meeting: Meeting) -> bool:
        """Raise an error if the peer is at another call than ours or the next, or is lost. Return whether it has ended."""
        has_ended = False
        try:
            for head, text in messages(self.unread):
                has_ended = meeting.check_early(self.peer, head, text)
        except ValueError as error:
            raise meeting.no_message(self.peer, str(error)) from None
        if self.at_end and not has_ended:
            raise WorkerLostError(self.peer, meeting.call.what)
        return has_ended


class Arrival:
    """A message that is awaited.

    Parameters
    ----------
    link : Link
    meeting : Meeting
        The call that it must belong to.
    into : ndarray of uint8, optional
        What the payload is written to; it must be as long. Without, the payload may have any length.
    """

    def __init__(self, link: Link, meeting: Meeting, into: Bytes | None) -> None:
        self.link = link
        self._meeting = meeting
        self._head: Head | None = None
        self._target = None if into is None or not into.nbytes else into.data
        self._n_expected = None if into is None else into.nbytes
        self.payload = bytearray()
        self._n_arrived = 0

    def read(self) -> int:
        """Receive what is there, and return how much it was."""
        if self._head is None or self._target is None or self.link.unread:
            return self.link.read_ahead()
        n = self.link.read_into(self._target[self._n_arrived :])
        self._n_arrived += n
        return n

    def is_complete(self) -> bool:
        """Take from what the link has read ahead; return whether all has come.

        Raises
        ------
        WorkersPartedError
            If it is another message.
        WorkerLostError
            If the peer has gone before the end of it.
        """
        if self._head is None:
            self._take_head()
        if self._head is not None:
            self._take_payload(self._head.n_payload)
            if self._n_arrived == self._head.n_payload:
                return True
        if self.link.at_end:
            raise WorkerLostError(self.link.peer, self._meeting.call.what)
        return False

    def _take_head(self) -> None:
        unread = self.link.unread
        try:
            while (head := read_head(unread)) is not None and head.kind is Kind.HERE:
                del unread[: HEAD.size + head.n_text]
        except ValueError as error:
            raise self._meeting.no_message(self.link.peer, str(error)) from None
        if head is None or len(unread) < HEAD.size + head.n_text:
            return
        self._meeting.check(self.link.peer, head, bytes(unread[HEAD.size : HEAD.size + head.n_text]))
        if head.n_payload != self._n_expected and (self._n_expected is not None or head.n_payload > MAX_GATHERED):
            wanted = f"up to {MAX_GATHERED}" if self._n_expected is None else str(self._n_expected)
            raise self._meeting.no_message(self.link.peer, f"{head.n_payload} bytes, not {wanted}")
        del unread[: HEAD.size + head.n_text]
        self._head = head

    def _take_payload(self, n_payload: int) -> None:
        some = self.link.unread[: n_payload - self._n_arrived]
        if not some:
            return
        del self.link.unread[: len(some)]
        if self._target is None:
            self.payload += some
        else:
            self._target[self._n_arrived : self._n_arrived + len(some)] = some
        self._n_arrived += len(some)
