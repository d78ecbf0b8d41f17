"""Groups of linked workers on this machine, and a partner that does not play by the rules."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable
from typing import Any

from gpuboost.peers.greeting import HELLO, MAGIC
from gpuboost.peers.sockets import Links

HOST = "127.0.0.1"
TOKEN = secrets.token_bytes(32)


def linked(size: int, work: Callable[[Links], Any], *, n_here: int | None = None, **connect: Any) -> list[Any]:
    """Let each of several threads, with links to the others, do some work; return what each returns or raises, by rank."""
    workers = [Links(HOST) for _ in range(size)]
    addresses = [links.address for links in workers]
    outcomes: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            with workers[rank] as links:
                links.connect(rank, addresses, TOKEN, **connect)
                outcomes[rank] = work(links)
        except BaseException as error:
            outcomes[rank] = error

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a worker waits without end"
    return outcomes


def with_impostor(work: Callable[[Links], Any], play: Callable[[socket.socket], Any], **connect: Any) -> Any:
    """Let worker 0 of 2 work with a partner that says hello and then does what it likes; return the outcome of worker 0."""
    links = Links(HOST)
    played = threading.Event()

    def impostor() -> None:
        with socket.create_connection(links.address) as connection:
            connection.sendall(hello(1, 2))
            connection.recv(HELLO.size, socket.MSG_WAITALL)
            play(connection)
            played.wait(30)

    thread = threading.Thread(target=impostor, daemon=True)
    thread.start()
    try:
        with links:
            links.connect(0, [links.address, (HOST, 1)], TOKEN, **connect)
            return work(links)
    except Exception as error:
        return error
    finally:
        played.set()
        thread.join(10)


def hello(rank: int, size: int, token: bytes = TOKEN) -> bytes:
    """What a worker says first."""
    return HELLO.pack(MAGIC, token, rank, size)
