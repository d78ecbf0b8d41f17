"""Workers linked by the connections of Dask: slower than links of our own, but through its port and with its encryption.

The event loop of the worker sends and receives, while the thread that trains waits. Messages are those of
`gpuboost.peers.messages`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from distributed.comm import connect
from distributed.core import Status

from gpuboost.errors import WorkerLostError
from gpuboost.peers.collectives import Bytes, LinkedPeers, partners
from gpuboost.peers.greeting import START
from gpuboost.peers.messages import HEAD, Head, Meeting, last_words, read_head

OPERATION = "gpuboost-link"
"""The name by which a worker of Dask knows that another wants to be linked to it."""
LONGEST_SLEEP = 0.5
LAST_SECONDS = 0.5
"""How long the last words may take."""


class Mailbox:
    """A connection to one partner, and what has come in.

    Attributes
    ----------
    comm : distributed.comm.Comm
    unread : deque of (Head, text, payload)
    at_end : bool
        Whether the other side has closed.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.unread: deque[tuple[Head, bytes, bytes]] = deque()
        self.at_end = False

    def check_unread(self, peer: int, meeting: Meeting) -> None:
        """Raise an error if the peer is at another call than ours or the next, or is lost."""
        has_ended = False
        for head, text, _ in list(self.unread):
            has_ended = meeting.check_early(peer, head, text)
        if self.at_end and not has_ended:
            raise WorkerLostError(peer, meeting.call.what)


def take_links(worker: Any, links_of: Callable[[str], CommLinks | None]) -> None:
    """Let a worker of Dask take connections of partners, for the training whose name they know."""

    async def accept(comm: Any, run: str, rank: int) -> Any:
        links = links_of(run)
        if links is None:
            comm.abort()
        else:
            await links.read(rank, comm)
        return Status.dont_reply

    worker.handlers[OPERATION] = accept


class CommLinks(LinkedPeers):
    """The `gpuboost.peers.base.Peers` of a worker of Dask, by connections of Dask.

    Parameters
    ----------
    worker : distributed.Worker
    run : str
        Names the training; who does not know it is not linked.
    """

    def __init__(self, worker: Any, run: str) -> None:
        super().__init__()
        self._worker, self._run = worker, run
        self._loop = worker.loop.asyncio_loop
        self._changed = threading.Condition()
        self._boxes: dict[int, Mailbox] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._is_sent: Future[Any] | None = None

    # ---- in the event loop ---------------------------------------------------------------------------------------------------

    async def _connect(self, peer: int, address: str) -> None:
        comm = await connect(address, **self._worker.connection_args)
        await comm.write({"op": OPERATION, "run": self._run, "rank": self.rank, "reply": False})
        self._readers.append(asyncio.ensure_future(self.read(peer, comm)))

    async def read(self, peer: int, comm: Any) -> None:
        """Take what a partner sends until it closes."""
        box = Mailbox(comm)
        with self._changed:
            self._boxes[peer] = box
            self._changed.notify_all()
        try:
            while True:
                start, payload = await comm.read()
                head = read_head(start)
                if head is None:
                    raise ValueError(f"a message of {len(start)} bytes")
                with self._changed:
                    box.unread.append((head, bytes(start[HEAD.size :]), bytes(payload)))
                    self._changed.notify_all()
        except (OSError, ValueError, TypeError):  # Dask's error of a closed connection is an OSError
            comm.abort()
        finally:
            with self._changed:
                box.at_end = True
                self._changed.notify_all()

    async def _say_last(self, words: bytes) -> None:
        """Close all connections."""
        is_in_the_middle = self._is_sent is not None and not self._is_sent.done()
        for box in self._boxes.values():
            with suppress(OSError, asyncio.TimeoutError):
                if not is_in_the_middle and not box.at_end:
                    await asyncio.wait_for(box.comm.write([words, b""]), LAST_SECONDS)
            box.comm.abort() if is_in_the_middle else await box.comm.close()
        for reader in self._readers:
            reader.cancel()

    # ---- in the thread that trains -------------------------------------------------------------------------------------------

    def connect(self, rank: int, workers: Sequence[str]) -> None:
        """Connect to the other workers, who all listen; all call it.

        Parameters
        ----------
        rank : int
        workers : sequence of str
            The addresses of all workers in Dask, by rank.

        Raises
        ------
        WorkerLostError
            If one cannot be reached.
        """
        self.rank, self.size = rank, len(workers)
        wanted = partners(rank, self.size)
        for peer in sorted(wanted):
            if peer < rank:
                connected = self._in_the_loop(self._connect(peer, workers[peer]))
                self._wait_until(connected.done)
                if connected.exception() is not None:
                    raise WorkerLostError(peer, START) from connected.exception()
        self._wait_until(lambda: wanted <= self._boxes.keys())

    def _exchange(self, meeting: Meeting, to: int | None, payload: Bytes, source: int | None, into: Bytes | None) -> bytes:
        sent = None
        if to is not None:
            message = [meeting.head(payload.nbytes), payload.tobytes()]
            sent = self._is_sent = self._in_the_loop(self._boxes[to].comm.write(message))
            self.bytes_sent += sum(map(len, message))
        arrived: list[bytes] = []

        def is_complete() -> bool:
            if source is not None and not arrived:
                arrived.extend(self._take(source, meeting, into))
            for peer, box in self._boxes.items():
                if peer != source or arrived:
                    box.check_unread(peer, meeting)
            return (source is None or bool(arrived)) and (sent is None or sent.done())

        self._wait_until(is_complete)
        if sent is not None and to is not None and sent.exception() is not None:
            raise WorkerLostError(to, meeting.call.what)
        return arrived[0] if arrived else b""

    def _look(self, meeting: Meeting) -> None:
        with self._changed:
            for peer, box in self._boxes.items():
                box.check_unread(peer, meeting)

    def _take(self, source: int, meeting: Meeting, into: Bytes | None) -> list[bytes]:
        """Return the payload of the partner's message if it has come."""
        box = self._boxes[source]
        if not box.unread:
            if box.at_end:
                raise WorkerLostError(source, meeting.call.what)
            return []
        head, text, payload = box.unread.popleft()
        meeting.check(source, head, text)
        if len(payload) != head.n_payload or (into is not None and len(payload) != into.nbytes):
            raise meeting.no_message(source, f"{len(payload)} bytes")
        if into is not None:
            into.data[:] = payload
        return [payload]

    def _close(self, error: BaseException | None) -> None:
        with suppress(TimeoutError):
            words = last_words(error, self.rank)
            self._in_the_loop(self._say_last(words)).result(LAST_SECONDS)

    def _in_the_loop(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Let the event loop run a coroutine. This thread is woken at its end."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.add_done_callback(lambda _: self._wake())
        return future

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        with self._changed:
            while not is_so():
                self._check_failure()
                self._changed.wait(LONGEST_SLEEP)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
