"""The plan of a growth: arithmetic, checked by hand and by what it promises for any problem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.gpu.cards import CARDS, SHAPES, waves
from gpuboost.backends.cuda import kernels
from gpuboost.backends.cuda.plan import (
    MAX_WAVES,
    MEMORY_SHARE,
    MIN_ROWS,
    WARP,
    WIDE_ROWS,
    Columns,
    Lanes,
    check_losses,
    cut_into_tiles,
    plan_growth,
    stretches,
    wave_efficiency,
)
from gpuboost.errors import DeviceMemoryError

H100, TURING = CARDS["H100"].limits, CARDS["T4"].limits
GIB = 2**30


def columns(n_bins: list[int], usable: list[bool] | None = None) -> Columns:
    return Columns.of(np.array(n_bins), np.ones(len(n_bins), bool) if usable is None else np.array(usable))


def test_columns_by_hand() -> None:
    c = columns([3, 5, 2, 9, 7, 7], [True, False, False, True, False, False])
    assert c.n_bins.tolist() == [3, 0, 0, 9, 0, 0, 0, 0]  # padded to two words of four
    assert c.offsets.tolist() == [0, 3, 3, 3, 12, 12, 12, 12, 12]
    assert c.features.tolist() == [0, 3]
    assert c.words.tolist() == [0]


@pytest.mark.parametrize(
    ("n_words", "n_channels", "lanes"),
    [
        (196, 10, (3, 10)),  # MNIST: 30 of 32 lanes
        (14, 7, (2, 7)),  # Covertype: 28 of 32, two rows a warp and no word too many
        (
            4,
            26,
            (4, 4),
        ),  # letter: 7 tiles of 4 channels, two rows a warp, cost 3.5 instructions a row; 4 tiles of 26 lanes cost 4
        (4, 2, (4, 2)),  # a row takes 8 lanes, so four rows share a warp
        (1, 1, (1, 1)),  # 32 rows at once
        (100, 17, (5, 6)),  # three tiles of 6 channels and 5 words: 30 lanes, where one of 17 would use 17
    ],
)
def test_lanes_by_hand(n_words: int, n_channels: int, lanes: tuple[int, int]) -> None:
    assert Lanes.choose(n_words, n_channels) == Lanes(*lanes)


@given(st.integers(0, 500), st.integers(1, 1000))
def test_lanes_fit_a_warp(n_words: int, n_channels: int) -> None:
    lanes = Lanes.choose(n_words, n_channels)
    assert 1 <= lanes.words * lanes.channels <= WARP
    assert lanes.words <= max(n_words, 1)
    assert lanes.channels <= n_channels


@given(st.lists(st.integers(0, 256), min_size=1, max_size=60), st.integers(1, 2000), st.integers(1, 20))
def test_tiles_divide_the_features(n_bins: list[int], max_bins: int, max_words: int) -> None:
    c = columns(n_bins)
    widest = max(int(c.n_bins[4 * w : 4 * w + 4].sum()) for w in range(len(c.n_bins) // 4))
    if len(c.words) == 0:
        return
    tiles = cut_into_tiles(c, max_bins, max_words)
    assert (tiles == []) == (widest > max_bins)
    word, feature, bins = 0, 0, 0
    for tile in tiles:
        assert (tile.first_word, tile.first_feature, tile.first_bin) == (word, feature, bins)
        assert 0 < tile.n_words <= max_words
        assert 0 < tile.n_bins <= max_bins
        covered = {4 * w + i for w in c.words[word : word + tile.n_words].tolist() for i in range(4)}
        mine = c.features[feature : feature + tile.n_features].tolist()
        assert set(mine) == {f for f in c.features.tolist() if f in covered}
        assert tile.n_bins == int(c.n_bins[mine].sum())
        word, feature, bins = word + tile.n_words, feature + tile.n_features, bins + tile.n_bins
    if tiles:
        assert (word, feature, bins) == (len(c.words), len(c.features), int(c.n_bins.sum()))


def test_wide_sums_take_twice_the_memory_and_twice_the_lanes() -> None:
    c = columns([256] * 16)
    needed = int(16 * 256 * 10 * 8 * 8 / MEMORY_SHARE)  # as below, of 8 bytes each
    plan = plan_growth(c, 256, 1, 10, 9, needed, H100, wide=True)
    assert (plan.kept, plan.n_slots, plan.lanes) == (True, 8, Lanes.choose(4, 20))
    assert not plan_growth(c, 256, 1, 10, 9, needed - 2, H100, wide=True).kept
    with pytest.raises(DeviceMemoryError, match="1021 channels, one a class, need 65,600 bytes"):  # 8 warps, 8 bytes, and 256
        plan_growth(columns([4]), 4, 1, 1021, 2, GIB, TURING, wide=True)


@pytest.mark.parametrize("n_rows", [1, WIDE_ROWS, WIDE_ROWS + 1, 10**7, 2**31 - 1])
def test_blocks_of_wide_histograms_take_few_rows(n_rows: int) -> None:
    plan = plan_growth(columns([256] * 16), 256, 3, 10, 9, GIB, H100, wide=True)
    x, _, z = plan.histogram_grid(plan.tiles[0], n_rows, 3, 10)
    assert max(-(-n_rows // x), MIN_ROWS) <= WIDE_ROWS
    assert z * plan.lanes.channels >= 3 * 20
    assert f"WIDE_ROWS = 1 << {WIDE_ROWS.bit_length() - 1}\n" in kernels.source("histogram")
    assert WIDE_ROWS * 0xFFFF < 2**31  # the lower bits


def test_all_is_kept_where_there_is_room() -> None:
    # 16 features of 256 bins, 10 channels, 8 slots: 16 * 256 * 10 * 4 * 8 bytes = 1.25 MiB, which is 0.8 of 1.5625 MiB.
    c = columns([256] * 16)
    needed = int(16 * 256 * 10 * 4 * 8 / MEMORY_SHARE)
    plan = plan_growth(c, 256, 1, 10, 9, needed, H100)
    assert (plan.kept, plan.n_slots, plan.groups, plan.shared_bytes, plan.block) == (True, 8, 4, 128 * 1024, 1024)
    assert (plan.tile_bins, plan.blocks_at_once) == (4096, 132)
    # A little less: only the two children of a node at a time; in one tile, until a quarter of the memory is too little for it.
    less = plan_growth(c, 256, 1, 10, 9, needed - 2, H100)
    assert (less.kept, less.n_slots, len(less.tiles)) == (False, 2, 1)
    assert [tile.n_words for tile in plan_growth(c, 256, 1, 10, 9, needed // 4 - 2, H100).tiles] == [3, 1]
    assert plan_growth(c, 256, 1, 10, 9, GIB, TURING).groups == 2  # 64 KiB of shared memory
    assert plan_growth(c, 17, 1, 10, 9, GIB, TURING).groups == 4  # but for few bins all four features fit


def test_the_least_memory() -> None:
    # A word of four features with 256 bins, 3 channels, 5 trees, two children: 4 * 256 * 3 * 5 * 2 * 4 bytes = 120 KiB.
    c = columns([256] * 16)
    least = int(120 * 1024 / MEMORY_SHARE)
    plan = plan_growth(c, 256, 5, 3, 20, least, H100)
    assert [tile.n_words for tile in plan.tiles] == [1, 1, 1, 1]
    with pytest.raises(DeviceMemoryError, match=r"0\.1 MiB \(1024 bins x 3 channels x 5 trees\).*smaller max_bins"):
        plan_growth(c, 256, 5, 3, 20, least - 2, H100)


def test_channels_beyond_the_shared_memory_of_a_block() -> None:
    # An int32 for each of eight warps and channels, and 256 bytes: (65536 - 256) / 32 = 2040 channels.
    assert plan_growth(columns([4]), 4, 1, 2040, 2, GIB, TURING).kept
    with pytest.raises(DeviceMemoryError, match=r"2041 channels, one a class, need 65,568 bytes .* has 65,536; use device"):
        plan_growth(columns([4]), 4, 1, 2041, 2, GIB, TURING)


def test_losses_beyond_the_shared_memory_of_a_block() -> None:
    check_losses(8192, TURING)
    with pytest.raises(DeviceMemoryError, match=r"losses of 8,193 classes need 65,544 bytes .* has 65,536; use device"):
        check_losses(8193, TURING)


def test_trees_beyond_a_launch() -> None:
    assert plan_growth(columns([4]), 4, 65_535, 3, 2, GIB, TURING).kept
    with pytest.raises(DeviceMemoryError, match=r"grows 65,536 trees together.*room for 65,535.*n_candidates.*device=\"cpu\""):
        plan_growth(columns([4]), 4, 65_536, 3, 2, GIB, TURING)


@given(
    st.lists(st.integers(0, 256), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(1, 70),
    st.integers(2, 40),
    st.integers(0, 22),
)
def test_plans_keep_within_memory(n_bins: list[int], n_trees: int, n_channels: int, max_leaves: int, bits: int) -> None:
    c = columns(n_bins)
    try:
        plan = plan_growth(c, 256, n_trees, n_channels, max_leaves, 2**bits, H100)
    except DeviceMemoryError:
        return
    assert plan.n_slots * n_trees * plan.tile_bins * n_channels * 4 <= MEMORY_SHARE * 2**bits
    assert plan.shared_bytes <= H100.shared_per_block
    assert plan.n_slots == (max(1, max_leaves - 1) if plan.kept else min(2, max_leaves - 1))
    for tile in plan.tiles:
        x, y, z = plan.histogram_grid(tile, 10_000, n_trees, n_channels)
        assert 1 <= x <= 79  # no more blocks than 128 rows each make
        assert y * plan.groups * plan.lanes.words >= 4 * tile.n_words
        assert z * plan.lanes.channels >= n_trees * n_channels


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("card", CARDS)
def test_waves_are_full(card: str, shape: str) -> None:
    assert min(waves(SHAPES[shape], CARDS[card].limits)) >= 0.9


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 10_000))
def test_no_other_number_of_stretches_is_better(n_tiles: int, blocks_at_once: int, most: int) -> None:
    chosen = stretches(n_tiles, blocks_at_once, most)
    assert 1 <= chosen <= most
    others = [n for n in range(1, min(most, MAX_WAVES * blocks_at_once // n_tiles) + 1) if n * n_tiles > blocks_at_once]
    best = max((wave_efficiency(n * n_tiles, blocks_at_once) for n in others), default=0.0)
    assert wave_efficiency(chosen * n_tiles, blocks_at_once) >= min(best, 0.9)


def test_occupancy_by_hand() -> None:
    # letter: 4 * 32 * 4 * 17 bytes = 8,704; six blocks and more fit, but 48 registers for 256 threads five times in 65,536,
    # and on a T4 there are 1024 threads.
    at_once = [plan_growth(columns([17] * 16), 17, 1, 26, 9, GIB, card).blocks_at_once for card in (TURING, H100)]
    assert at_once == [4 * 40, 5 * 132]
    # 128 KiB for MNIST on an H100: one block of 1024 threads. On a 3090 two of four features are there at a time, in 64 KiB.
    plans = [plan_growth(columns([256] * 717), 256, 1, 10, 9, GIB, CARDS[name].limits) for name in ("H100", "RTX 3090")]
    assert [(plan.groups, plan.block, plan.blocks_at_once) for plan in plans] == [(4, 1024, 132), (2, 1024, 82)]


def test_grid_fills_the_device_about_twice() -> None:
    # 196 words by threes are 66 tiles; all four features of a word fit in shared memory, one block for each multiprocessor.
    plan = plan_growth(columns([256] * 784), 256, 1, 10, 9, 80 * GIB, H100)
    assert plan.histogram_grid(plan.tiles[0], 60_000, 1, 10) == (4, 66, 1)  # 2 * 132 / 66
    assert plan.histogram_grid(plan.tiles[0], 300, 1, 10) == (2, 66, 1)
