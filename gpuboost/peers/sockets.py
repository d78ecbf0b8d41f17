"""Workers on one machine or many, linked by TCP: `Links`.

Everything is sent and received in the thread that trains, in one loop: a second thread would halve the rate. It needs the
standard library and NumPy, and knows of no engine that starts workers: one opens `Links` in every worker, tells all workers the
addresses and a token, and lets them connect.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from gpuboost.errors import WorkerLostError
from gpuboost.peers.base import parted
from gpuboost.peers.collectives import Bytes, LinkedPeers
from gpuboost.peers.greeting import TOKEN_BYTES, Address, Reception, listen, tune
from gpuboost.peers.link import Arrival, Link
from gpuboost.peers.messages import Kind, Meeting, last_words, pack

LONGEST_SLEEP = 0.5
"""Seconds; on some systems an interrupt waits for so long."""
AWAKE_SECONDS = 3e-4
"""For so long a worker that waits asks again and again: to be woken takes as long as most messages are on their way."""
NOTHING = np.empty(0, np.uint8)


class Silence:
    """How long nothing has moved in a call, and what follows from that.

    Parameters
    ----------
    limit : float or None
        Seconds after which the other side is lost; None is never.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._began = self._spoken = time.monotonic()

    def end(self) -> None:
        """Take note that something has moved."""
        self._began = time.monotonic()

    def is_short(self) -> bool:
        """Whether it is too short to sleep."""
        return time.monotonic() - self._began < AWAKE_SECONDS

    def is_loss(self) -> bool:
        """Whether it is too long."""
        return self._limit is not None and time.monotonic() - self._began > self._limit

    def is_time_to_speak(self) -> bool:
        """Whether the others should hear that we still wait: several times within the limit."""
        if self._limit is None or time.monotonic() - self._spoken < self._limit / 4:
            return False
        self._spoken = time.monotonic()
        return True


class Links(LinkedPeers):
    """The `gpuboost.peers.base.Peers` of a worker that is linked to the others by TCP.

    It listens from the beginning. After `connect` its calls are those of `Peers`, from one thread.

    Parameters
    ----------
    host : str
        The address of the interface to listen on, at which the other workers reach this one.
    ports : tuple of int, optional
        The first and last port that may be used; by default the system chooses one.

    Attributes
    ----------
    address : tuple of (str, int)
        Where it listens.
    rank, size : int
        After `connect`.
    n_calls : int
        Calls made so far.
    bytes_sent : int
        Bytes that have been sent to other workers in them.

    Examples
    --------
    >>> import secrets, threading
    >>> import numpy as np
    >>> workers = [Links("127.0.0.1") for _ in range(2)]
    >>> addresses, token = [links.address for links in workers], secrets.token_bytes(32)
    >>> def work(rank):
    ...     with workers[rank] as peers:
    ...         peers.connect(rank, addresses, token)
    ...         totals.append(peers.sum(np.array([1, rank]), "rows").tolist())
    >>> totals = []
    >>> threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    >>> for thread in threads:
    ...     thread.start()
    >>> for thread in threads:
    ...     thread.join()
    >>> totals
    [[2, 1], [2, 1]]
    """

    def __init__(self, host: str, ports: tuple[int, int] | None = None) -> None:
        super().__init__()
        self._listener = listen(host, ports)
        self.address: Address = self._listener.getsockname()[:2]
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._links: dict[int, Link] = {}
        self._lost_after: float | None = None
        self._sleep = LONGEST_SLEEP

    def connect(
        self,
        rank: int,
        addresses: Sequence[Address],
        token: bytes,
        *,
        names: Sequence[str] | None = None,
        start_within: float | None = 60,
        lost_after: float | None = 30,
    ) -> None:
        """Connect to the other workers; all call it.

        Parameters
        ----------
        rank : int
            Of this worker.
        addresses : sequence of (str, int)
            The addresses of all workers, by rank.
        token : bytes
            32 random bytes, the same on all workers and known to nobody else.
        names : sequence of str, optional
            What messages call the workers, by rank.
        start_within : float or None
            Seconds to wait for workers that have not come; None is for ever.
        lost_after : float or None
            Seconds in which a worker that is waited for neither sends nor waits itself, after which it is lost: so it may not
            compute for that long between two calls. None for engines that watch their workers by themselves and call `abort`.

        Raises
        ------
        ValueError
            If the rank or the token cannot be.
        TimeoutError, ConnectionError, WorkerLostError
            If some workers do not come, cannot be reached, or have gone.
        """
        if not 0 <= rank < len(addresses):
            raise ValueError(f"rank must be one of the {len(addresses)} workers, 0 .. {len(addresses) - 1}, got {rank}")
        if len(token) != TOKEN_BYTES:
            raise ValueError(f"token must have {TOKEN_BYTES} bytes, got {len(token)}")
        names = names or [f"{host}:{port}" for host, port in addresses]
        self.rank, self.size = rank, len(addresses)
        reception = Reception(self._listener, rank, addresses, token, names)
        connections = reception.connect_all(self._woken, self._check_failure, start_within)
        self._listener.close()
        self._lost_after = lost_after
        self._sleep = LONGEST_SLEEP if lost_after is None else min(LONGEST_SLEEP, lost_after / 4)
        for peer, connection in connections.items():
            tune(connection, lost_after)
            self._links[peer] = link = Link(peer, connection)
            self._watch(link, selectors.EVENT_READ)

    def _wake(self) -> None:
        with suppress(OSError):
            self._waker.send(b"!")

    def _close(self, error: BaseException | None) -> None:
        words = last_words(error, self.rank)
        for link in self._links.values():
            link.close(words)
        for one in (self._selector, self._listener, self._woken, self._waker):
            one.close()

    # ---- the loop ------------------------------------------------------------------------------------------------------------

    def _exchange(self, meeting: Meeting, to: int | None, payload: Bytes, source: int | None, into: Bytes | None) -> bytes:
        receiver = self._links[to] if to is not None else None
        arrival = Arrival(self._links[source], meeting, into) if source is not None else None
        if receiver is not None:
            receiver.post(meeting.head(payload.nbytes), payload)
            self._push(receiver, meeting)
        if arrival is not None:
            self._watch(arrival.link, arrival.link.watched | selectors.EVENT_READ)
        waiting, silence = arrival, Silence(self._lost_after)
        while True:
            if waiting is not None and waiting.is_complete():
                waiting = None
            if waiting is None and (receiver is None or not receiver.is_sending):
                return bytes(arrival.payload) if arrival is not None else b""
            if self._pass(meeting, waiting, awake=silence.is_short()):
                silence.end()
            elif silence.is_loss():
                silent = source if waiting is not None else to
                assert silent is not None
                raise WorkerLostError(silent, meeting.call.what)
            elif silence.is_time_to_speak():
                self._say_that_we_are_here(meeting)

    def _look(self, meeting: Meeting) -> None:
        for link in self._links.values():
            if not link.is_full:
                link.read_ahead()
            link.check_unread(meeting)

    def _say_that_we_are_here(self, meeting: Meeting) -> None:
        """Tell all partners: who waits for us shall not take us for lost, but those that we wait for."""
        for link in self._links.values():
            if not link.is_sending and not link.at_end:
                link.post(pack(Kind.HERE), NOTHING)
                self._push(link, meeting)

    def _pass(self, meeting: Meeting, arrival: Arrival | None, awake: bool) -> int:
        """Wait until something can be sent or received, and do so; if awake, wait for a moment only.

        Return how many bytes of the two messages it was.
        """
        moved = 0
        for key, events in self._selector.select(0 if awake else self._sleep):
            link: Link | None = key.data
            if link is None:
                self._check_failure()
                continue
            if events & selectors.EVENT_WRITE:
                moved += self._push(link, meeting)
            if events & selectors.EVENT_READ:
                if arrival is not None and link is arrival.link:
                    moved += arrival.read()
                else:
                    self._read_ahead(link, meeting)
        return moved

    def _push(self, link: Link, meeting: Meeting) -> int:
        """Send what can be sent, and watch for when the rest can be."""
        try:
            sent = link.push()
        except OSError:
            link.read_ahead()  # there may be last words
            link.at_end = True
            if link.check_unread(meeting):
                raise parted(self.rank, meeting.call, link.peer, "its end") from None
            raise WorkerLostError(link.peer, meeting.call.what) from None
        self.bytes_sent += sent
        wanted = link.watched & ~selectors.EVENT_WRITE
        self._watch(link, wanted | selectors.EVENT_WRITE if link.is_sending else wanted)
        return sent

    def _read_ahead(self, link: Link, meeting: Meeting) -> None:
        """Look at what a peer sends that is not waited for: it may be ahead, elsewhere, or gone."""
        link.read_ahead()
        link.check_unread(meeting)
        if link.is_full or link.at_end:
            self._watch(link, link.watched & ~selectors.EVENT_READ)

    def _watch(self, link: Link, events: int) -> None:
        if events == link.watched:
            return
        if link.watched and events:
            self._selector.modify(link.connection, events, link)
        elif events:
            self._selector.register(link.connection, events, link)
        else:
            self._selector.unregister(link.connection)
        link.watched = events
