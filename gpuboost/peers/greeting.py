"""How workers find each other: each listens, connects to its partners of lower rank, and both sides say hello.

A hello carries the token of the training, so nobody else who connects by accident takes part. It travels in the clear, as all
that follows: whoever can read the network is not kept out.
"""

from __future__ import annotations

import hmac
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any

from gpuboost.errors import WorkerLostError
from gpuboost.peers.collectives import partners

Address = tuple[str, int]
Socket = socket.socket

HELLO = Struct("<8s32sII")
MAGIC = b"gpboost1"
TOKEN_BYTES = 32
CONNECT_SECONDS = 10.0
"""A connection to a worker that listens takes this long at most, else something swallows its packets."""
MAX_STRANGERS = 64
"""Connections that have not said hello; of more, the oldest is closed."""
START = "the start"
"""What messages call the time before the first call."""


def listen(host: str, ports: tuple[int, int] | None = None) -> Socket:
    """Return a socket that listens on the interface of ``host``, on the first free port of a range, both ends included.

    Raises
    ------
    OSError
        If no port is free, or the machine has no such interface.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    error: OSError | None = None
    for port in range(ports[0], ports[1] + 1) if ports else (0,):
        try:
            return socket.create_server((host, port), family=family, backlog=128)
        except OSError as failure:
            error = failure
    where = f"a port of {host} from {ports[0]} to {ports[1]}" if ports else f"the interface {host}"
    raise OSError(f"cannot listen on {where}: {error}") from error


class Greeting:
    """A connection before both sides have said hello."""

    def __init__(self, connection: Socket, peer: int | None) -> None:
        self.connection = connection
        self.peer = peer  # None: we do not know yet who has connected
        self.heard = b""

    def hear(self) -> bool:
        """Receive what is there, but nothing behind the hello. Return whether the other side is still there."""
        try:
            some = self.connection.recv(HELLO.size - len(self.heard))
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.heard += some
        return bool(some)


class Reception:
    """What it takes until all partners of a worker are connected.

    Parameters
    ----------
    listener : socket
    rank : int
        Of this worker.
    addresses : sequence of (str, int)
        Where the workers listen, by rank.
    token : bytes
        32 random bytes that only the workers of this training know.
    names : sequence of str
        What errors call the workers.
    """

    def __init__(self, listener: Socket, rank: int, addresses: Sequence[Address], token: bytes, names: Sequence[str]) -> None:
        self.rank, self.size, self.token, self.names = rank, len(addresses), token, names
        self.listener, self.addresses = listener, addresses
        self.connections: dict[int, Socket] = {}
        self._missing = partners(rank, self.size)
        self._greetings: list[Greeting] = []
        self._selector = selectors.DefaultSelector()

    def connect_all(self, waker: Socket, check: Callable[[], None], seconds: float | None) -> dict[int, Socket]:
        """Return a connection to every partner.

        Parameters
        ----------
        waker : socket
            Readable when ``check`` must be called, which raises an error if this shall end.
        check : callable
        seconds : float or None
            How long to wait for partners that have not come; None is for ever.

        Raises
        ------
        TimeoutError
            If some have not come; it says which.
        WorkerLostError
            If one has come, and gone.
        ConnectionError
            If one cannot be reached, or somebody else listens in its place.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            self._selector.register(waker, selectors.EVENT_READ, None)
            self.listener.setblocking(False)
            self._selector.register(self.listener, selectors.EVENT_READ, self._accept)
            for peer in sorted(self._missing):
                if peer < self.rank:
                    self._connect(peer)
            while self._missing:
                check()
                if deadline is not None and time.monotonic() > deadline:
                    missing = ", ".join(f"{peer} ({self.names[peer]})" for peer in sorted(self._missing))
                    raise TimeoutError(f"worker {self.rank} has waited {seconds:g} s for workers that have not come: {missing}")
                for key, _ in self._selector.select(0.5):
                    if key.data is not None:
                        key.data()
        except BaseException:
            for connection in self.connections.values():
                connection.close()
            raise
        finally:
            for greeting in self._greetings:
                greeting.connection.close()
            self._selector.close()
        return self.connections

    def _connect(self, peer: int) -> None:
        try:
            connection = socket.create_connection(self.addresses[peer], CONNECT_SECONDS)
        except ConnectionRefusedError:
            raise WorkerLostError(peer, START) from None
        except OSError as error:
            host, port = self.addresses[peer]
            raise ConnectionError(
                f"worker {self.rank} cannot reach worker {peer} ({self.names[peer]}) at {host}, port {port}: {error}; "
                "is there a firewall between them?"
            ) from error
        greeting = Greeting(connection, peer)
        self._expect(greeting)
        self._say_hello(greeting)

    def _accept(self) -> None:
        with suppress(OSError):  # who has gone again
            connection, _ = self.listener.accept()
            self._expect(Greeting(connection, None))
        strangers = [greeting for greeting in self._greetings if greeting.peer is None]
        if len(strangers) > MAX_STRANGERS:
            self._drop(strangers[0])

    def _expect(self, greeting: Greeting) -> None:
        greeting.connection.setblocking(False)
        self._greetings.append(greeting)
        self._selector.register(greeting.connection, selectors.EVENT_READ, lambda: self._hear(greeting))

    def _hear(self, greeting: Greeting) -> None:
        is_there = greeting.hear()
        if len(greeting.heard) == HELLO.size:
            self._meet(greeting)
        elif not is_there:
            self._drop(greeting)

    def _meet(self, greeting: Greeting) -> None:
        """Compare a hello with the one expected; answer those who have connected to us."""
        magic, token, peer, size = HELLO.unpack(greeting.heard)
        is_one_of_us = magic == MAGIC and hmac.compare_digest(token, self.token) and size == self.size
        has_connected = greeting.peer is None
        if not is_one_of_us or (has_connected and (peer <= self.rank or peer not in self._missing)):
            self._drop(greeting)
            return
        if not has_connected and peer != greeting.peer:
            raise ConnectionError(f"worker {peer} answers at the address of worker {greeting.peer}")
        if has_connected:
            self._say_hello(greeting)
        self._forget(greeting)
        self._missing.remove(peer)
        self.connections[peer] = greeting.connection

    def _say_hello(self, greeting: Greeting) -> None:
        with suppress(OSError):  # who has gone is noticed on receiving; the first bytes always fit
            greeting.connection.sendall(HELLO.pack(MAGIC, self.token, self.rank, self.size))

    def _drop(self, greeting: Greeting) -> None:
        self._forget(greeting)
        greeting.connection.close()
        if greeting.peer is not None:
            raise WorkerLostError(greeting.peer, START)

    def _forget(self, greeting: Greeting) -> None:
        self._selector.unregister(greeting.connection)
        self._greetings.remove(greeting)


def tune(connection: Socket, lost_after: float | None) -> None:
    """Set what the system has to offer against waiting: no delay of small messages, and questions to a host that is silent.

    Unread data would count as silence for ``TCP_USER_TIMEOUT``, so it is set only where silence is an error.
    """
    options: list[tuple[Any, str, int]] = [
        (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 3),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 2),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
    ]
    if lost_after is not None:
        options.append((socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", max(1, int(1000 * lost_after))))
    for level, name, value in options:
        if hasattr(socket, name):
            with suppress(OSError):
                connection.setsockopt(level, getattr(socket, name), value)
