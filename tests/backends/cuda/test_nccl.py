"""Sums over the devices of several workers: NCCL on a stand-in, and growths of linked devices."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import linked, nccl
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.gpu import Part
from gpuboost.backends.cuda.kernels import Kernel
from gpuboost.backends.frontier import CUT, FEATURE, GAIN, LEFT, MISSING_LEFT, Frontier
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.sharded import ShardedBackend
from gpuboost.errors import DeviceUnavailableError, WorkerLostError
from gpuboost.learners.growth import grow
from gpuboost.peers.base import Peers
from gpuboost.peers.threads import run_workers
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.cuda_on_cpu.requirement import require
from tests.problems import coded, stats_of

INT32, INT64, SUM = 2, 4, 0  # as in nccl.h


class FakeNccl:
    """NCCL for the threads of a process: what is queued waits, as it does on a device, for the same of all others."""

    NCCL_INT32, NCCL_INT64, NCCL_SUM = INT32, INT64, SUM
    available = True

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.met: dict[tuple[int, ...], set[int]] = {}
        self.reductions: dict[int, list[tuple[int, ...]]] = {}  # by rank: what it has queued
        self.groups: Counter[str] = Counter()
        self.aborted: list[int] = []
        self.destroyed: list[int] = []
        self.async_error: Exception | None = None
        module = self

        class NcclCommunicator:
            def __init__(self, size: int, name: tuple[int, ...], rank: int) -> None:
                assert len(name) == 128
                self.size, self.rank = size, rank
                with module.changed:
                    module.met.setdefault(name, set()).add(rank)
                    module.reductions[rank] = []
                    module.changed.notify_all()
                    module.changed.wait_for(lambda: len(module.met[name]) == size)

            def reduce(self, send: int, receive: int, count: int, kind: int, op: int, root: int, stream: int) -> None:
                assert stream == 7
                assert op == SUM
                assert (receive != 0) == (root == self.rank)
                with module.changed:
                    module.reductions[self.rank].append((send, receive, count, kind, root))

            def check_async_error(self) -> None:
                if module.async_error is not None:
                    raise module.async_error

            def abort(self) -> None:
                module.aborted.append(self.rank)

            def destroy(self) -> None:
                module.destroyed.append(self.rank)

        self.NcclCommunicator = NcclCommunicator

    def get_version(self) -> int:
        return 22304

    def get_unique_id(self) -> tuple[int, ...]:
        return tuple(range(-64, 64))

    def groupStart(self) -> None:
        self.groups["begun"] += 1

    def groupEnd(self) -> None:
        self.groups["ended"] += 1

    def is_done(self, rank: int, size: int) -> bool:
        """Do what all have queued, and say whether a worker's is done."""
        with self.changed:
            if len(self.reductions) < size or len({len(queued) for queued in self.reductions.values()}) > 1:
                return False
            for place in range(len(self.reductions[0])):
                by_rank = [self.reductions[r][place] for r in range(size)]
                ((count, kind, root),) = {one[2:] for one in by_rank}  # NCCL would wait for ever
                dtype = np.int32 if kind == INT32 else np.int64
                total = sum(at(one[0], count, dtype) for one in by_rank)
                at(by_rank[root][1], count, dtype)[:] = total
            return True


def at(address: int, count: int, dtype: Any) -> NDArray[Any]:
    """The numbers that lie somewhere in memory."""
    raw = (ctypes.c_uint8 * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(raw, dtype)


def cupy_with(module: FakeNccl | None, rank: int = 0, size: int = 1) -> Any:
    """What `gpuboost.backends.cuda.nccl` uses of CuPy, in one worker."""

    class Event:
        def __init__(self, *, block: bool, disable_timing: bool) -> None:
            assert disable_timing  # else it would cost more

        def record(self, stream: Any) -> None:
            assert stream.ptr == 7

        @property
        def done(self) -> bool:
            return module is None or module.is_done(rank, size)

    return SimpleNamespace(cuda=SimpleNamespace(nccl=module, get_current_stream=lambda: SimpleNamespace(ptr=7), Event=Event))


def array(values: Any, dtype: Any) -> Any:
    """An array on the imagined device."""
    memory = np.array(values, dtype)
    return SimpleNamespace(memory=memory, dtype=memory.dtype, size=memory.size, data=SimpleNamespace(ptr=memory.ctypes.data))


def nobody_is_lost() -> None:
    pass


def test_a_worker_gets_the_sums_of_its_parts() -> None:
    """Three workers, one without a part: parts of 3 and 2 numbers, of both dtypes."""
    module = FakeNccl()

    def work(peers: Peers) -> tuple[list[int], list[int]]:
        cupy = cupy_with(module, peers.rank, 3)
        link = nccl.Nccl(cupy, nullcontext(), nccl.new_group(cupy), peers.rank, 3, nobody_is_lost)
        small, large = array(np.arange(3) + peers.rank, np.int32), array([2**40, -peers.rank], np.int64)
        into, into_large = array([0, 0, 0], np.int32), array([0, 0], np.int64)
        link.reduce(
            [Part(small, 0, into if peers.rank == 0 else None), Part(large, 2, into_large if peers.rank == 2 else None)]
        )
        link.wait(lambda: peers.check("sums"))
        peers.gather(b"", "the end")  # the memory of all must live until then
        link.close()
        return into.memory.tolist(), into_large.memory.tolist()

    assert run_workers(3, work) == [([3, 6, 9], [0, 0]), ([0, 0, 0], [0, 0]), ([0, 0, 0], [3 * 2**40, -3])]
    assert module.groups == {"begun": 3, "ended": 3}
    assert sorted(module.destroyed) == [0, 1, 2]
    assert module.aborted == []


def test_a_sum_that_never_comes_ends_with_the_news_of_the_loss() -> None:
    module = FakeNccl()

    def work(peers: Peers) -> None:
        cupy = cupy_with(module, peers.rank, 2)
        link = nccl.Nccl(cupy, nullcontext(), nccl.new_group(cupy), peers.rank, 2, nobody_is_lost)
        if peers.rank == 1:
            raise RuntimeError("out of luck")
        one = array([1], np.int32)
        link.reduce([Part(one, 0, array([0], np.int32))])
        with pytest.raises(WorkerLostError):
            link.wait(lambda: peers.check("sums"))

    started = time.monotonic()
    with pytest.raises(RuntimeError, match="out of luck"):
        run_workers(2, work)
    assert time.monotonic() - started < 5
    assert module.aborted == [0]


def test_a_worker_that_does_not_come_to_the_meeting_is_not_waited_for() -> None:
    module, looks = FakeNccl(), Counter[str]()

    def check() -> None:
        looks["check"] += 1
        if looks["check"] == 3:
            raise WorkerLostError(1, "devices' meeting")

    with pytest.raises(WorkerLostError):
        nccl.Nccl(cupy_with(module), nullcontext(), bytes(128), 0, 2, check)


def test_an_error_of_nccl_ends_the_link() -> None:
    module = FakeNccl()
    link = nccl.Nccl(cupy_with(module, 0, 1), nullcontext(), bytes(128), 0, 1, nobody_is_lost)
    module.reductions[1] = [(0, 0, 0, 0, 0)]  # something that this worker has not queued, so that nothing is ever done
    module.async_error = RuntimeError("NCCL_ERROR_SYSTEM_ERROR: a cable was pulled")
    with pytest.raises(RuntimeError, match="cable"):
        link.wait(nobody_is_lost)
    assert module.aborted == [0]
    link.close()  # is not destroyed after that
    assert module.destroyed == []


@pytest.mark.parametrize(("module", "version"), [(None, None), (SimpleNamespace(available=False), None), (FakeNccl(), 22304)])
def test_version(module: Any, version: int | None) -> None:
    assert nccl.version(cupy_with(module)) == version


# ---- growths -----------------------------------------------------------------------------------------------------------------

N_ROWS, N_LEAVES = 200, 6
CODES = np.random.default_rng(3).integers(0, 40, (5, N_ROWS))
QUANTISED = np.random.default_rng(4).integers(-99, 100, (N_ROWS, 3))
WHAT_IS_GROWN = [FEATURE, CUT, MISSING_LEFT, LEFT, GAIN]


def grown(backend: Backend, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """What a backend grows of some rows; shape (n_nodes, 5)."""
    data = backend.load(coded(CODES[:, rows], n_bins=[40] * 5))
    frontier = grow(backend, data, stats_of(backend, QUANTISED[rows]), N_LEAVES)
    return backend.read_nodes(frontier)[0][0][:, WHAT_IS_GROWN]


def grown_together(open_gpu: Callable[[int], EmulatedGpu], size: int, steps: int | None = None) -> list[NDArray[np.int64]]:
    """What workers grow, each on a device of its own, by rank. The last one fails in its step number ``steps``."""
    require(emulator.unavailable())

    def work(peers: Peers) -> NDArray[np.int64]:
        with CudaBackend(open_gpu(peers.rank)) as local, ShardedBackend(local, peers) as backend:
            local.link(peers)
            whole, n_steps = local.partition, 0

            def partition(frontier: Frontier) -> None:
                nonlocal n_steps
                n_steps += 1
                if n_steps == steps and peers.rank == size - 1:
                    raise RuntimeError("out of luck")
                whole(frontier)

            local.partition = partition  # type: ignore[method-assign]
            return grown(backend, np.array_split(np.arange(N_ROWS), size)[peers.rank])

    return run_workers(size, work)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each kernel has been launched."""
    seen, launch = Counter[str](), EmulatedGpu.launch

    def counted(gpu: EmulatedGpu, kernel: Kernel, *rest: Any) -> None:
        seen[kernel.name] += 1
        launch(gpu, kernel, *rest)

    monkeypatch.setattr(EmulatedGpu, "launch", counted)
    return seen


@pytest.mark.parametrize("size", [2, 3, 7])
def test_linked_devices_grow_the_tree_of_one(launched: Counter[str], size: int) -> None:
    expected = grown(NumpyBackend(), np.arange(N_ROWS))
    launched.clear()
    for nodes in grown_together(lambda rank: EmulatedGpu(linked=True, seed=rank), size):
        assert (nodes == expected).all()
    assert launched["siblings"] >= size * (N_LEAVES - 1)  # a root, and the children of all inner nodes but the last
    assert launched["histogram"] == launched["siblings"]  # the larger sibling is not counted


def test_devices_of_which_one_cannot_be_linked_meet_through_the_hosts(launched: Counter[str]) -> None:
    expected = grown(NumpyBackend(), np.arange(N_ROWS))
    for nodes in grown_together(lambda rank: EmulatedGpu(linked=rank == 0), 2):
        assert (nodes == expected).all()
    assert launched["siblings"] == 0


def test_sums_meet_through_the_hosts_where_devices_have_no_room(
    launched: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linked, "MEMORY_SHARE", 0)
    expected = grown(NumpyBackend(), np.arange(N_ROWS))
    for nodes in grown_together(lambda rank: EmulatedGpu(linked=True), 2):
        assert (nodes == expected).all()
    assert launched["siblings"] == 0


def test_a_worker_that_fails_between_two_sums_is_an_error_at_once() -> None:
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="out of luck"):
        grown_together(lambda rank: EmulatedGpu(linked=True), 3, steps=2)
    assert time.monotonic() - started < 5


def test_two_workers_on_one_device_are_refused() -> None:
    class Same(EmulatedGpu):
        def name_for_peers(self) -> tuple[str, str]:
            return "GPU-0", "threads"

    with pytest.raises(DeviceUnavailableError, match=r"workers 0 and 1 use the same CUDA device .* one of its own: dask-cuda"):
        grown_together(lambda rank: Same(), 2)
