"""Workers in threads: exact results, and no wait without end when they part or one is lost."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.errors import WorkerLostError, WorkersPartedError
from gpuboost.peers.base import ALONE, Peers
from gpuboost.peers.threads import run_workers

SIZES = (1, 2, 3, 5, 8)


def arrays(seed: int, size: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """One array for each worker whose total fits in the dtype."""
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min // size, info.max // size, (size, *shape), dtype, endpoint=True)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 0, 2), (5, 4)])
def test_sums_and_maxima_are_those_of_numpy(size: int, dtype: str, shape: tuple[int, ...]) -> None:
    own = arrays(size, size, shape, dtype)
    before = own.tobytes()
    for got, expected in [
        (run_workers(size, lambda peers: peers.sum(own[peers.rank], "a")), own.sum(axis=0, dtype=dtype)),
        (run_workers(size, lambda peers: peers.max(own[peers.rank], "a")), own.max(axis=0)),
    ]:
        for one in got:
            assert one.shape == shape
            assert one.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(one, expected)
    assert own.tobytes() == before


@settings(deadline=None, max_examples=30)
@given(st.data(), st.sampled_from(SIZES))
def test_every_worker_gets_its_part_of_the_sum(data: st.DataObject, size: int) -> None:
    inner = sorted(data.draw(st.lists(st.integers(0, 12), min_size=size - 1, max_size=size - 1)))
    bounds = np.array([0, *inner, 12])
    own = arrays(size, size, (12, 3), "i8")
    parts = run_workers(size, lambda peers: peers.reduce_scatter(own[peers.rank], bounds, "a"))
    assert [len(part) for part in parts] == np.diff(bounds).tolist()
    np.testing.assert_array_equal(np.concatenate(parts), own.sum(axis=0))


def test_messages_come_in_the_order_of_ranks() -> None:
    def late(peers: Peers) -> list[bytes]:
        time.sleep(0.02 * (3 - peers.rank))
        return peers.gather(b"x" * peers.rank, "a")

    assert run_workers(4, late) == [[b"", b"x", b"xx", b"xxx"]] * 4


def test_many_calls_of_workers_of_uneven_speed() -> None:
    def work(peers: Peers) -> int:
        total = np.array(peers.rank)
        for number in range(200):
            if number % peers.size == peers.rank:
                time.sleep(0.0005)
            total = peers.sum(total % 1000 + peers.rank, f"number {number}")
        return int(total)

    total = [0, 1, 2]
    for _ in range(200):
        total = [sum(own % 1000 + rank for rank, own in enumerate(total))] * 3
    assert run_workers(3, work) == total


def test_what_is_shared_cannot_be_written() -> None:
    own = np.arange(3)
    assert not any(total.flags.writeable for total in run_workers(2, lambda peers: peers.sum(own, "a")))
    assert not run_workers(1, lambda peers: peers.sum(own, "a"))[0].flags.writeable
    assert own.flags.writeable


def test_one_worker_alone_has_everything() -> None:
    own = arrays(0, 1, (4,), "i8")
    assert (ALONE.rank, ALONE.size) == (0, 1)
    assert ALONE.sum(own, "a") is own
    assert ALONE.max(own, "a") is own
    assert ALONE.gather(b"a", "a") == [b"a"]
    assert ALONE.reduce_scatter(own, np.array([0, 1]), "a") is own


# ---- workers that part

Act = Callable[[Peers], object]


def call(name: str, value: object, *more: object, what: str = "a") -> Act:
    return lambda peers: getattr(peers, name)(value, *more, what)


usual = call("sum", np.arange(4))
PARTINGS = [
    (usual, call("max", np.arange(4)), "max 'a' (call 0) of <i8 (4,)"),
    (usual, call("gather", b""), "gather 'a' (call 0)"),
    (usual, call("sum", np.arange(4), what="b"), "sum 'b' (call 0) of <i8 (4,)"),
    (usual, call("sum", np.arange(5)), "sum 'a' (call 0) of <i8 (5,)"),
    (usual, call("sum", np.arange(4, dtype=np.int32)), "sum 'a' (call 0) of <i4 (4,)"),
    (usual, lambda peers: None, "its end"),
    (
        call("reduce_scatter", np.arange(4), np.array([0, 1, 2, 4])),
        call("reduce_scatter", np.arange(4), np.array([0, 1, 3, 4])),
        "reduce_scatter 'a' (call 0) of <i8 (4,) divided at (0, 1, 3, 4)",
    ),
]


def late(act: Act) -> Act:
    return lambda peers: (time.sleep(0.02), act(peers))


@pytest.mark.parametrize(("usual", "other", "place"), PARTINGS)
@pytest.mark.parametrize("stray", [0, 2])
@pytest.mark.parametrize("order", ["as it comes", "stray first", "stray last"])
def test_workers_that_part_all_get_an_error_at_once(usual: Act, other: Act, place: str, stray: int, order: str) -> None:
    usual, other = late(usual) if order == "stray first" else usual, late(other) if order == "stray last" else other

    def work(peers: Peers) -> object:
        try:
            return (other if peers.rank == stray else usual)(peers) and "no error"
        except WorkersPartedError as error:
            return str(error)

    begun = time.monotonic()
    said = run_workers(3, work)
    assert time.monotonic() - begun < 30  # of the 60 s that a worker waits for one that does not come
    if place == "its end":
        assert said.pop(stray) in (None, (None, None), "no error")
    assert len(set(said)) == 1
    assert f"worker {stray} at {place}" in said[0] or f"worker {stray} is at {place}" in said[0]


def test_an_error_of_parted_workers_is_raised() -> None:
    with pytest.raises(
        WorkersPartedError, match=r"worker 0 is at sum 'a' \(call 1\).*worker 1 at sum 'b' \(call 1\)"
    ) as raised:
        run_workers(2, lambda peers: (usual(peers), peers.sum(np.arange(2), "ab"[peers.rank])))
    assert raised.value.__notes__[0] in ("raised by worker 0 of 2", "raised by worker 1 of 2")


# ---- workers that are lost


def test_the_error_of_a_worker_is_raised_and_the_others_hear_of_it_at_once() -> None:
    heard = []

    def work(peers: Peers) -> None:
        if peers.rank == 1:
            time.sleep(0.02)
            raise KeyError("mine")
        try:
            usual(peers)
        except WorkerLostError as error:
            heard.append((error.worker, error.what, str(error)))
            raise RuntimeError("of another's") from error

    begun = time.monotonic()
    with pytest.raises(KeyError, match="mine") as raised:
        run_workers(4, work)
    assert time.monotonic() - begun < 30
    assert raised.value.__notes__ == ["raised by worker 1 of 4"]
    assert heard == [(1, "a", "worker 1 was lost, as was noticed in 'a'")] * 3


def test_a_later_call_hears_of_a_lost_worker_too() -> None:
    def work(peers: Peers) -> None:
        if peers.rank == 0:
            raise ValueError("mine")
        time.sleep(0.05)
        with pytest.raises(WorkerLostError, match="worker 0"):
            peers.gather(b"", "late")
        usual(peers)

    with pytest.raises(ValueError, match="mine"):
        run_workers(2, work)


def test_the_first_of_several_errors_is_raised() -> None:
    def work(peers: Peers) -> None:
        time.sleep(0.05 * (2 - peers.rank))
        raise ValueError(f"of {peers.rank}")

    with pytest.raises(ValueError, match="of 2"):
        run_workers(3, work)


def test_a_worker_that_does_not_come_is_lost() -> None:
    woken = threading.Event()

    def work(peers: Peers) -> None:
        if peers.rank == 1:
            woken.wait(30)
        usual(peers)

    begun = time.monotonic()
    with pytest.raises(WorkerLostError, match="worker 1 was lost, as was noticed in 'a'"):
        run_workers(3, work, timeout=0.1)
    assert time.monotonic() - begun < 20
    woken.set()


def test_a_lost_worker_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(WorkerLostError(3, "cuts")))
    assert (error.worker, error.what, str(error)) == (3, "cuts", "worker 3 was lost, as was noticed in 'cuts'")


# ---- bad arguments


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("array", [np.zeros(2), np.zeros(2, bool), np.zeros(2, ">i4")])
def test_only_native_integers_are_summed(size: int, array: np.ndarray) -> None:
    for work in (call("sum", array), call("reduce_scatter", array, np.array([0, *[1] * (size - 1), 2]))):
        with pytest.raises(TypeError, match=f"only integers .*'a' has dtype {array.dtype}"):
            run_workers(size, work)
        if size == 1:
            with pytest.raises(TypeError, match="only integers"):
                work(ALONE)


@pytest.mark.parametrize("bounds", [[0, 3], [0, 1, 2], [1, 2, 3], [0, 4, 3], [0, 1, 2, 3]])
def test_bounds_divide_the_array(bounds: list[int]) -> None:
    with pytest.raises(ValueError, match=r"bounds of 'a' must be 3 numbers that do not fall, from 0 to 3, got \["):
        run_workers(2, call("reduce_scatter", np.arange(3), np.array(bounds)))


@pytest.mark.parametrize("size", [0, -1])
def test_there_is_a_worker(size: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1 worker, got {size}"):
        run_workers(size, lambda peers: None)


def check_until_the_end(peers: Peers, seconds: float = 5) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        peers.check("a long pause")


def test_check_tells_of_a_loss() -> None:
    errors = []

    def work(peers: Peers) -> None:
        if peers.rank == 1:
            raise ValueError("out of luck")
        try:
            check_until_the_end(peers)
        except WorkerLostError as error:
            errors.append((error.worker, error.what))

    with pytest.raises(ValueError, match="out of luck"):
        run_workers(2, work)
    assert errors == [(1, "a long pause")]
