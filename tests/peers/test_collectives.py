"""The steps of recursive doubling, and the bytes of several workers in one message."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuboost.peers.collectives import COUNT, PIECE, add_rows, doubling, pack_pieces, pack_rows, partners, unpack_pieces


@pytest.mark.parametrize("size", [*range(1, 18), 31, 32, 33, 100])
def test_doubling_brings_everything_to_everyone(size: int) -> None:
    """Play all workers; a message waits in a queue until it is received, so that the order of workers does not matter."""
    known = [{rank} for rank in range(size)]
    steps = [doubling(rank, size) for rank in range(size)]
    done, sent = [0] * size, [False] * size
    queues: dict[tuple[int, int], list[set[int]]] = {}
    while any(done[rank] < len(steps[rank]) for rank in range(size)):
        before = (list(done), list(sent))
        for rank in range(size):
            if done[rank] == len(steps[rank]):
                continue
            step = steps[rank][done[rank]]
            if step.to is not None and not sent[rank]:
                queues.setdefault((rank, step.to), []).append(set(known[rank]))
                sent[rank] = True
            if step.source is None or queues.get((step.source, rank)):
                if step.source is not None:
                    arrived = queues[step.source, rank].pop(0)
                    assert step.is_all or not arrived & known[rank], "something would be added twice"
                    known[rank] |= arrived
                done[rank], sent[rank] = done[rank] + 1, False
        assert (done, sent) != before, "the workers wait for each other"
    assert known == [set(range(size))] * size
    assert not any(queues.values())
    assert max(len(of_one) for of_one in steps) <= size.bit_length() + 1


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 64])
def test_partners_know_each_other(size: int) -> None:
    for rank in range(size):
        assert rank not in partners(rank, size)
        assert all(rank in partners(other, size) for other in partners(rank, size))
    assert len(partners(0, size)) <= size.bit_length() + 2


@given(st.dictionaries(st.integers(0, 9), st.binary(max_size=20)))
def test_pieces_come_back(pieces: dict[int, bytes]) -> None:
    assert unpack_pieces(pack_pieces(pieces), 10) == pieces


@given(st.binary(max_size=60))
def test_other_bytes_are_no_pieces(data: bytes) -> None:
    try:
        pieces = unpack_pieces(data, 3)
    except ValueError:
        return
    assert pack_pieces(pieces) == data


@pytest.mark.parametrize(
    "data",
    [
        COUNT.pack(2**32 - 1),
        COUNT.pack(1) + PIECE.pack(3, 0),  # of a worker that is not there
        COUNT.pack(2) + 2 * PIECE.pack(1, 0),  # twice of the same
        COUNT.pack(1) + PIECE.pack(0, 2**63) + b"a",
        pack_pieces({0: b"a"}) + b"b",
        pack_pieces({0: b"a"})[:-1],
    ],
)
def test_forged_pieces_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not pieces of"):
        unpack_pieces(data, 3)


ARRAYS = st.tuples(st.integers(0, 20), st.integers(0, 3), st.randoms()).map(
    lambda of: np.array([of[2].choice([0, 0, 0, 1, -5]) for _ in range(of[0] * of[1])], np.int32).reshape(of[:2])
)


@given(ARRAYS)
def test_rows_come_back_and_empty_ones_do_not_travel(array: np.ndarray) -> None:
    packed = pack_rows(array)
    n_filled = int(array.any(axis=1).sum())
    assert len(packed) == -(-len(array) // 8) + n_filled * array.shape[1] * 4
    before = np.full_like(array, 7)
    np.testing.assert_array_equal(add_rows(before, packed), 7 + array, strict=True)
    assert (before == 7).all()


@given(st.binary(max_size=40))
def test_other_bytes_are_no_rows(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert add_rows(np.zeros((11, 2), np.int16), data).shape == (11, 2)
        n_filled = sum(bits.bit_count() for bits in data[:1]) + (data[1] >> 5).bit_count()
        assert len(data) == 2 + 4 * n_filled
