"""Links by TCP: exact sums for all sizes, and an error, never a wait, whatever a partner does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.errors import WorkerLostError, WorkersPartedError
from gpuboost.peers.base import describe
from gpuboost.peers.collectives import DOUBLING_BYTES, partners
from gpuboost.peers.messages import HEAD, Kind, Meeting, pack
from gpuboost.peers.sockets import Links
from tests.peers.linked import HOST, TOKEN, hello, linked, with_impostor
from tests.peers.test_threads import check_until_the_end

SIZES = (1, 2, 3, 5, 8)
LARGE = DOUBLING_BYTES // 8 + 1
"""int64 that go around the ring."""
ONE = np.ones(1, np.int64)


def own_arrays(rank: int, size: int) -> Iterator[np.ndarray[Any, Any]]:
    """A worker's arrays, whose totals fit in their dtypes: of odd shapes and dtypes, without entries, in any memory order."""
    rng = np.random.default_rng(rank)
    for dtype in ("i1", "u1", "i2", "u4", "i4", "i8", "u8"):
        info = np.iinfo(dtype)
        for shape in ((), (0,), (7,), (3, 0, 2), (5, 4), (LARGE,), (3, LARGE // 2)):
            yield rng.integers(info.min // size, info.max // size, shape, dtype, endpoint=True)
    whole = rng.integers(-9, 9, (41, 300))
    yield from (whole.T, whole[::2, ::-3], np.asfortranarray(np.broadcast_to(whole, (3, 41, 300))))


def others_arrays(rank: int) -> list[np.ndarray[Any, Any]]:
    """Arrays of a worker of which there is a maximum and no sum."""
    rng = np.random.default_rng(rank)
    return [rng.random(5), np.array(np.inf), rng.random((3, LARGE)), rng.random(9) < 0.2, rng.random(4).astype("f4")]


@pytest.mark.parametrize("size", SIZES)
def test_sums_and_maxima_are_those_of_numpy(size: int) -> None:
    of_all = [list(own_arrays(rank, size)) for rank in range(size)]
    others = [others_arrays(rank) for rank in range(size)]
    before = [one.tobytes() for one in of_all[0]]

    def work(peers: Links) -> tuple[list[Any], list[Any]]:
        sums = [peers.sum(one, "a sum") for one in of_all[peers.rank]]
        return sums, [peers.max(one, "a maximum") for one in of_all[peers.rank] + others[peers.rank]]

    for sums, maxima in linked(size, work):
        for got, *parts in zip(sums, *of_all, strict=True):
            np.testing.assert_array_equal(got, np.sum(parts, axis=0, dtype=got.dtype), strict=True)
        for got, *parts in zip(maxima, *map(list.__add__, of_all, others), strict=True):
            np.testing.assert_array_equal(got, np.max(parts, axis=0), strict=True)
    assert [one.tobytes() for one in of_all[0]] == before


@pytest.mark.parametrize("size", SIZES)
def test_bytes_are_gathered_in_the_order_of_ranks(size: int) -> None:
    def work(peers: Links) -> list[list[bytes]]:
        return [peers.gather(length * bytes([peers.rank]), "a") for length in (0, peers.rank, 3 << 18)]

    for few, some, many in linked(size, work):
        assert few == [b""] * size
        assert some == [rank * bytes([rank]) for rank in range(size)]
        assert many == [(3 << 18) * bytes([rank]) for rank in range(size)]


@settings(deadline=None, max_examples=20)
@given(st.data(), st.sampled_from(SIZES), st.sampled_from([12, 9000]))
def test_every_worker_gets_its_part_of_the_sum(data: st.DataObject, size: int, length: int) -> None:
    inner = sorted(data.draw(st.lists(st.integers(0, length), min_size=size - 1, max_size=size - 1)))
    bounds = np.array([0, *inner, length])
    own = np.random.default_rng(length).integers(-(2**40), 2**40, (size, length, 2))
    parts = linked(size, lambda peers: peers.reduce_scatter(own[peers.rank], bounds, "a"))
    assert [len(part) for part in parts] == np.diff(bounds).tolist()
    np.testing.assert_array_equal(np.concatenate(parts), own.sum(axis=0), strict=True)


@pytest.mark.parametrize(
    ("size", "n_bytes", "sent"),
    [
        (2, 8, 1 * 8),
        (8, 8, 3 * 8),
        (2, 8 * LARGE, 8 * LARGE),  # half of it, twice
        (8, 8 * LARGE, 2 * 7 * LARGE),  # an eighth, 14 times
    ],
)
def test_what_is_sent_is_counted(size: int, n_bytes: int, sent: int) -> None:
    def work(peers: Links) -> tuple[int, int]:
        peers.sum(np.ones(n_bytes // 8, np.int64), "a")
        return peers.n_calls, peers.bytes_sent

    n_messages = 2 * (size - 1) if n_bytes > DOUBLING_BYTES else size.bit_length() - 1
    overhead = n_messages * len(Meeting(0, describe(0, "sum", "a", np.ones(n_bytes // 8, np.int64))).head(0))
    for n_calls, n_sent in linked(size, work):
        assert n_calls == 1
        assert abs(n_sent - overhead - sent) <= 8 * n_messages  # parts are as even as they can be


# ---- workers that part -------------------------------------------------------------------------------------------------------

ODD_CALLS: dict[str, Callable[[Links], Any]] = {
    "none": lambda peers: peers.sum(ONE, "a"),
    "op": lambda peers: peers.max(ONE, "a"),
    "kind of op": lambda peers: peers.gather(b"1", "a"),
    "name": lambda peers: peers.sum(ONE, "b"),
    "dtype": lambda peers: peers.sum(ONE.astype(np.int32), "a"),
    "shape": lambda peers: peers.sum(ONE.reshape(1, 1), "a"),
    "length": lambda peers: peers.sum(np.ones(LARGE, np.int64), "a"),
    "end": lambda peers: None,
}


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("odd", [odd for odd in ODD_CALLS if odd != "none"])
def test_another_call_is_an_error_on_all_workers(size: int, odd: str) -> None:
    """One worker, or all but one, make another call; then all would make the same, but those that have ended."""
    for first_odd in (size - 1, 1):

        def work(peers: Links, first_odd: int = first_odd) -> None:
            is_odd = peers.rank >= first_odd
            ODD_CALLS[odd if is_odd else "none"](peers)
            if not (is_odd and odd == "end"):
                peers.sum(ONE, "c")

        started = time.monotonic()
        errors = linked(size, work)
        assert time.monotonic() - started < 1
        for rank, error in enumerate(errors):
            if rank < first_odd or odd != "end":
                assert isinstance(error, WorkersPartedError)
                assert "sum 'a' (call 0) of <i8 (1,)" in str(error)


def test_other_bounds_are_an_error() -> None:
    own = np.ones((LARGE, 2), np.int64)
    errors = linked(3, lambda peers: peers.reduce_scatter(own, np.array([0, 5, 6 + peers.rank // 2, LARGE]), "a"))
    assert all(isinstance(error, WorkersPartedError) for error in errors)
    assert f"divided at (0, 5, 7, {LARGE})" in str(errors[0])


def test_sums_of_floats_are_refused() -> None:
    assert all(isinstance(error, TypeError) for error in linked(2, lambda peers: peers.sum(np.ones(1), "a")))


# ---- workers that are lost ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_who_fails_is_named_by_all_others(size: int) -> None:
    def work(peers: Links) -> None:
        peers.sum(ONE, "a")
        if peers.rank == 1:
            raise ZeroDivisionError
        for _ in range(10):
            peers.sum(np.ones(LARGE, np.int64), "b")

    started = time.monotonic()
    errors = linked(size, work)
    assert time.monotonic() - started < 1
    assert isinstance(errors.pop(1), ZeroDivisionError)
    for error in errors:
        assert isinstance(error, WorkerLostError)
        assert error.worker == 1
        assert error.what in ("a", "b")


def test_later_calls_fail_as_the_first() -> None:
    def work(peers: Links) -> None:
        if peers.rank == 1:
            raise ZeroDivisionError
        with pytest.raises(WorkerLostError):
            peers.sum(ONE, "a")
        peers.sum(ONE, "b")

    assert isinstance(linked(2, work)[0], WorkerLostError)


@pytest.mark.parametrize("n_sent", [0, 10, HEAD.size + 5, -1])
def test_who_closes_in_the_middle_of_a_message_is_lost(n_sent: int) -> None:
    head = Meeting(1, describe(0, "sum", "a", ONE)).head(8)
    error = with_impostor(lambda peers: peers.sum(ONE, "a"), lambda connection: leave(connection, (head + bytes(8))[:n_sent]))
    assert isinstance(error, WorkerLostError)
    assert (error.worker, error.what) == (1, "a")


def leave(connection: socket.socket, words: bytes) -> None:
    connection.sendall(words)
    connection.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("n_entries", [1, 8 << 20])  # the other must answer; the other must read
def test_who_is_silent_is_lost(n_entries: int) -> None:
    started = time.monotonic()
    error = with_impostor(lambda peers: peers.sum(np.ones(n_entries, np.int64), "a"), lambda _: None, lost_after=0.5)
    assert isinstance(error, WorkerLostError)
    assert error.worker == 1
    assert 0.5 <= time.monotonic() - started < 10


def test_without_a_limit_a_worker_may_take_its_time() -> None:
    def work(peers: Links) -> int:
        time.sleep(0.8 * peers.rank)
        return int(peers.sum(np.ones(1 << 20, np.int64), "a")[0])  # more than the system takes unread

    assert linked(2, work, lost_after=None) == [2, 2]


CHILD = """
import sys
import numpy as np
from gpuboost.peers.sockets import Links
from tests.peers.linked import HOST
links = Links(HOST)
print(links.address[1], flush=True)
rank, *ports = map(int, input().split())
with links as peers:
    peers.connect(rank, [(HOST, port) for port in ports], bytes(32), lost_after=1)
    print("here", flush=True)
    while True:
        peers.sum(np.ones(20000, np.int64), "a")
        if len(sys.argv) > rank + 1 and sys.argv[rank + 1] == "wait":
            input()
"""


class Processes:
    """Workers that are processes, in a loop of sums."""

    def __init__(self, *names: str) -> None:
        command = [sys.executable, "-c", CHILD, *names]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.all = [subprocess.Popen(command, text=True, env=os.environ | {"PYTHONPATH": "."}, **pipes) for _ in names]
        ports = [self.line(rank) for rank in range(len(names))]
        for rank, process in enumerate(self.all):
            assert process.stdin is not None
            print(rank, *ports, file=process.stdin, flush=True)
        assert [self.line(rank) for rank in range(len(names))] == ["here"] * len(names)

    def line(self, rank: int) -> str:
        stream = self.all[rank].stdout
        assert stream is not None
        return stream.readline().strip()

    def end(self, rank: int) -> tuple[str, float]:
        """Return the last line of a worker's errors, and how long it took to end."""
        started = time.monotonic()
        _, errors = self.all[rank].communicate(timeout=20)
        return errors.splitlines()[-1], time.monotonic() - started

    def kill(self) -> None:
        for process in self.all:
            process.kill()
            process.wait()


@pytest.mark.skipif(os.name != "posix", reason="the signals are those of POSIX")
@pytest.mark.parametrize(("sign", "limit"), [("SIGKILL", 0.5), ("SIGSTOP", 2.0), ("SIGINT", 0.5)])
def test_a_process_that_is_killed_stopped_or_interrupted_is_lost(sign: str, limit: float) -> None:
    """The interrupt comes while the worker waits for one that never answers."""
    workers = Processes("go on", "wait", "go on") if sign == "SIGINT" else Processes("go on", "go on", "go on")
    hit = 0 if sign == "SIGINT" else 1
    try:
        time.sleep(0.1)
        workers.all[hit].send_signal(getattr(signal, sign))
        if sign == "SIGINT":
            assert workers.end(0)[0] == "KeyboardInterrupt"
        words, seconds = workers.end(2)
        assert f"worker {hit} was lost, as was noticed in 'a'" in words
        assert seconds < limit
    finally:
        workers.kill()


# ---- forged messages ---------------------------------------------------------------------------------------------------------


def answer(op: str, n_payload: int, what: str = "a") -> bytes:
    """The head of a right message to a call of the tests."""
    return Meeting(1, describe(0, op, what, b"" if op == "gather" else ONE)).head(n_payload)


FORGED = [
    HEAD.pack(b"gpb1", Kind.CALL, 2**32 - 1, 0, 8),
    HEAD.pack(b"gpb1", 9, 1, 0, 8),
    HEAD.pack(b"GET ", Kind.CALL, 1, 0, 8),
    answer("sum", 2**63),
    answer("sum", 7) + bytes(7),
    answer("gather", 2**40),
    answer("gather", 4) + b"\xff\xff\xff\xff",
    answer("gather", 4) + bytes(4),  # nobody's bytes
    pack(Kind.CALL, 1, b"sum 'a' (call 0) of <i8 (1,)", 8) + bytes(8),
]


@pytest.mark.parametrize("forged", FORGED, ids=range(len(FORGED)))
def test_forged_messages_are_an_error(forged: bytes) -> None:
    error = with_impostor(
        lambda peers: peers.gather(b"1", "a") if b"gather" in forged else peers.sum(ONE, "a"),
        lambda connection: connection.sendall(forged),
    )
    assert isinstance(error, WorkersPartedError)
    assert "worker 1 at" in str(error)


def test_a_length_that_does_not_come_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        head = answer("gather", 2**31)
        error = with_impostor(lambda peers: peers.gather(b"1", "a"), lambda connection: leave(connection, head + bytes(99)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(error, WorkerLostError)
    assert peak < 4 << 20


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_whatever_a_partner_sends_is_an_error_or_an_answer(data: st.DataObject) -> None:
    right = answer("sum", 8) + bytes(8)
    at, some = data.draw(st.integers(0, len(right))), data.draw(st.binary(max_size=40))
    sent = right[:at] + some + right[at + len(some) * data.draw(st.booleans()) :]
    outcome = with_impostor(lambda peers: peers.sum(ONE, "a"), lambda connection: leave(connection, sent))
    n_head, n_right = HEAD.size, len(right)  # the head has bytes that mean nothing
    is_whole = len(sent) >= n_right and HEAD.unpack_from(sent) == HEAD.unpack_from(right)
    if is_whole and sent[n_head : n_right - 8] == right[n_head : n_right - 8]:
        own = int.from_bytes(sent[len(right) - 8 : len(right)], "little", signed=True)
        assert outcome == (own + 1 + 2**63) % 2**64 - 2**63  # as integers of 64 bits
    else:
        assert isinstance(outcome, (WorkersPartedError, WorkerLostError))


# ---- an end from outside -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["in a call", "before a call", "before the start"])
def test_another_thread_can_end_it(where: str) -> None:
    """Worker 0 waits for worker 1, which does not come; it is woken, and says to worker 1 that it is lost."""
    workers = [Links(HOST), Links(HOST)]
    addresses = [links.address for links in workers]
    reason = RuntimeError("enough")
    is_there, has_ended = threading.Event(), threading.Event()
    told: list[str] = []
    woken: list[float] = []

    def abort() -> None:
        if where != "before the start":
            assert is_there.wait(20)
        time.sleep(0.3 if where != "before a call" else 0)
        woken.append(time.monotonic())
        workers[0].abort(reason)

    def other() -> None:
        if where != "before the start":
            with workers[1] as links:
                links.connect(1, addresses, TOKEN)
                is_there.set()
                assert has_ended.wait(20)
                try:
                    links.sum(ONE, "a")  # for which worker 0 may have sent what it takes
                    links.sum(ONE, "a")
                except WorkerLostError as error:
                    told.append(str(error))

    def work() -> None:
        with workers[0] as links:
            links.connect(0, addresses, TOKEN, start_within=20)
            if where == "before a call":
                threads[0].join()
            links.sum(ONE, "a")

    threads = [threading.Thread(target=abort), threading.Thread(target=other)]
    for thread in threads:
        thread.start()
    with pytest.raises(RuntimeError, match="enough") as raised:
        work()
    assert raised.value is reason
    assert time.monotonic() - woken[0] < 2
    has_ended.set()
    for thread in threads:
        thread.join()
    workers[1].close()
    assert told == ([] if where == "before the start" else ["worker 0 was lost, as was noticed in 'a'"])


# ---- the start ---------------------------------------------------------------------------------------------------------------


def test_who_does_not_come_is_named() -> None:
    links, absent = Links(HOST), Links(HOST)
    with absent, links, pytest.raises(TimeoutError, match=r"worker 0 has waited 0.2 s .* have not come: 1 \(the other\)"):
        links.connect(0, [links.address, absent.address], TOKEN, names=["this", "the other"], start_within=0.2)


def test_who_has_gone_before_the_start_is_lost() -> None:
    links, gone = Links(HOST), Links(HOST)
    gone.close()
    with links, pytest.raises(WorkerLostError, match="worker 0 was lost, as was noticed in 'the start'"):
        links.connect(1, [gone.address, links.address], TOKEN)


def test_strangers_do_not_take_part() -> None:
    """Some say nothing, some leave, some know neither the token nor the number of workers, some take another's place."""
    links = [Links(HOST) for _ in range(2)]
    addresses = [one.address for one in links]
    words = [b"", b"GET / HTTP/1.1\r\n\r\n" + bytes(99), hello(1, 2, bytes(32)), hello(1, 3), hello(0, 2), hello(7, 2)]
    strangers = [socket.create_connection(addresses[0]) for _ in (*words, *range(100))]
    for stranger, word in zip(strangers, words, strict=False):
        stranger.sendall(word)
    strangers[-1].close()
    totals: list[Any] = []

    def work(rank: int) -> None:
        with links[rank] as peers:
            peers.connect(rank, addresses, TOKEN)
            totals.append(int(peers.sum(ONE, "a")[0]))

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join(20)
    for stranger in strangers:
        stranger.close()
    assert totals == [2, 2]


def test_ports_are_taken_from_the_range() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on a port of {HOST} from {port} to {port}"):
            Links(HOST, (port, port))
        with Links(HOST, (port, min(port + 50, 65535))) as links:
            assert port < links.address[1] <= port + 50
    with pytest.raises(OSError, match=r"cannot listen on the interface 198\.51\.100\.1"):
        Links("198.51.100.1")


def test_ranks_and_tokens_are_checked() -> None:
    with Links(HOST) as links:
        with pytest.raises(ValueError, match=r"rank must be one of the 1 workers, 0 .. 0, got 1"):
            links.connect(1, [links.address], TOKEN)
        with pytest.raises(ValueError, match="token must have 32 bytes, got 3"):
            links.connect(0, [links.address], b"abc")


def test_nothing_is_left_open() -> None:
    before = threading.active_count(), len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    linked(5, lambda peers: peers.sum(ONE, "a"))
    linked(5, lambda peers: 1 // peers.rank)
    assert before == (threading.active_count(), len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0)
    closed = Links(HOST)
    closed.close()
    with pytest.raises(RuntimeError, match="the links of worker 0 are closed"):
        closed.sum(ONE, "a")


def test_partners_are_few() -> None:
    assert len(partners(5, 64)) == 7  # six of the hypercube, one of which is beside it on the ring


# ---- pauses ------------------------------------------------------------------------------------------------------------------


def test_check_tells_of_a_loss() -> None:
    """Who has failed says so; who asks learns it without a call, and before that nothing."""

    def work(peers: Links) -> None:
        peers.sum(ONE, "a sum")
        peers.check("a pause")
        if peers.rank == 1:
            raise ValueError("out of luck")
        check_until_the_end(peers)

    lost, own = linked(2, work)
    assert isinstance(own, ValueError)
    assert isinstance(lost, WorkerLostError)
    assert lost.worker == 1
    assert lost.what in ("a pause", "a long pause")


def test_check_lets_others_go_on_to_their_next_call_and_no_further() -> None:
    together = threading.Barrier(2)

    def work(peers: Links) -> None:
        peers.sum(ONE, "a sum")
        if peers.rank == 1:
            sent = threading.Thread(target=lambda: together.wait(5))
            sent.start()
            peers.gather(b"", "the next call")
        else:
            together.wait(5)
            check_until_the_end(peers, 0.2)
            peers.gather(b"", "the next call")
        peers.check("the end")

    assert linked(2, work) == [None, None]


def test_check_tells_of_a_partner_that_says_something_else() -> None:
    def play(connection: socket.socket) -> None:
        connection.sendall(pack(Kind.CALL, 5, b"sum 'another' (call 5)"))

    error = with_impostor(check_until_the_end, play)
    assert isinstance(error, WorkersPartedError)
    assert "a long pause" in str(error)
    assert "another" in str(error)
