"""How a batch of trees is grown within a device's memory: which lanes, how many launches, what is kept. Arithmetic only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import Limits
from gpuboost.errors import DeviceMemoryError

WARP = 32
WORD_FEATURES = 4
"""Features whose codes share a 32-bit word."""
MAX_WORDS = 16_000
"""Words of one launch, so that its grid stays within 65535 blocks."""
MIN_ROWS = 128
"""Rows that a block of the histogram kernel takes at least, as in ``histogram.cu``."""
WIDE_ROWS = 1 << 15
"""Rows that a block of ``histogram_wide`` takes at most, as in ``histogram.cu``."""
HISTOGRAM_REGISTERS = {False: 48, True: 56}
"""Registers that a thread of ``histogram``, and of ``histogram_wide``, takes at most: a test holds them to that."""
SHARED_OF_SYSTEM = 1024
"""Bytes of shared memory that the system keeps of every block's."""
MAX_WAVES = 16
GOOD_EFFICIENCY = 0.9
SWEEP_WARPS = 8
"""Warps of a sweep, each of which has a sum of every channel in shared memory."""
SWEEP_STATIC_BYTES = 256
"""More than the rest of the shared memory of the sweeps."""
LOSS_BYTES = 8
"""Shared memory that ``softmax_losses`` takes for a class."""
MAX_TREES = 65_535
"""Trees that grow together: an axis of many grids."""
MEMORY_SHARE = 0.8
"""The share of the free memory that histograms may take."""

IntArray = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Columns:
    """The features of a matrix as the growth kernels see them.

    Attributes
    ----------
    n_bins : ndarray of int32, shape (n_features padded to whole words,)
        Bins of a feature that can be cut, 0 of one that cannot.
    """

    n_bins: IntArray

    @classmethod
    def of(cls, n_bins: NDArray[Any], usable: NDArray[np.bool_]) -> Columns:
        """Return the columns of a matrix with ``n_bins`` (n_features,), of which only the usable ones can be cut."""
        padded = np.zeros(-(-len(n_bins) // WORD_FEATURES) * WORD_FEATURES, np.int32)
        padded[: len(n_bins)] = np.where(usable, n_bins, 0)
        return cls(padded)

    @cached_property
    def offsets(self) -> IntArray:
        """Bins of the features before each one, and the total at the end."""
        return np.concatenate([[0], np.cumsum(self.n_bins, dtype=np.int64)]).astype(np.int32)

    @cached_property
    def features(self) -> IntArray:
        """The features that can be cut, ascending."""
        return np.flatnonzero(self.n_bins).astype(np.int32)

    @cached_property
    def words(self) -> IntArray:
        """The words that hold a feature that can be cut, ascending."""
        return np.unique(self.features // WORD_FEATURES).astype(np.int32)


@dataclass(frozen=True)
class Lanes:
    """What the 32 lanes of a warp are in the histogram kernel.

    Attributes
    ----------
    words, channels : int
        A row takes ``words * channels`` lanes. In wide growths a channel stands for one of the two counters of each.
    """

    words: int
    channels: int

    @classmethod
    def choose(cls, n_words: int, n_channels: int) -> Lanes:
        """Return the division that costs the fewest cycles for a row, by a rough model.

        Four atomic warp instructions of two cycles for each tile of (words, channels), shared by the rows of a warp; and two
        sectors of 32 bytes a cycle from the second-level cache, with four words of codes or eight statistics in each.
        """

        def cost(lanes: Lanes) -> float:
            n_tiles = -(-n_words // lanes.words) * -(-n_channels // lanes.channels)
            n_sectors = -(-lanes.words // 4) + -(-lanes.channels // 8)
            return 8 * n_tiles / (WARP // (lanes.words * lanes.channels)) + n_tiles * n_sectors / 2

        tiles = range(-(-n_channels // WARP), n_channels + 1)
        channels = sorted({-(-n_channels // n) for n in tiles}, reverse=True)
        choices = [cls(words, c) for c in channels for words in range(1, min(WARP // c, max(n_words, 1)) + 1)]
        return min(choices, key=cost)


@dataclass(frozen=True)
class Tile:
    """A range of features that one launch does: positions in `Columns.words` and `Columns.features`, and bins."""

    first_word: int
    n_words: int
    first_feature: int
    n_features: int
    first_bin: int
    n_bins: int


@dataclass(frozen=True)
class GrowthPlan:
    """How a batch of trees is grown.

    Attributes
    ----------
    tiles : tuple of Tile
        One for all features, or several that take turns in the same memory.
    kept : bool
        Whether every node that may still be cut keeps its histograms, so that those of the larger of two siblings are had by
        subtraction. Otherwise both siblings are summed.
    n_slots : int
        Histograms that a tree has at a time.
    lanes : Lanes
    groups : int
        How many of a word's four features a block holds in shared memory.
    bins_stride : int
        Bins that shared memory has room for.
    block : int
        Threads of a block.
    blocks_at_once : int
        Blocks that the device runs side by side.
    wide : bool
        Whether histograms are int64, see `gpuboost.backends.statistics.Stats`.
    """

    tiles: tuple[Tile, ...]
    kept: bool
    n_slots: int
    lanes: Lanes
    groups: int
    bins_stride: int
    block: int
    blocks_at_once: int
    wide: bool = False

    @property
    def shared_bytes(self) -> int:
        return 4 * WARP * self.groups * self.bins_stride

    @property
    def tile_bins(self) -> int:
        """Bins of the largest tile."""
        return max(tile.n_bins for tile in self.tiles)

    def histogram_grid(self, tile: Tile, n_node_rows: int, n_trees: int, n_channels: int) -> tuple[int, int, int]:
        """Return the grid that fills the device in whole waves, for nodes of up to ``n_node_rows`` rows."""
        y = -(-tile.n_words // self.lanes.words) * (WORD_FEATURES // self.groups)
        z = n_trees * -(-n_channels * (1 + self.wide) // self.lanes.channels)
        x = stretches(y * z, self.blocks_at_once, max(1, -(-n_node_rows // MIN_ROWS)))
        return max(x, -(-n_node_rows // WIDE_ROWS)) if self.wide else x, y, z


def wave_efficiency(n_blocks: int, blocks_at_once: int) -> float:
    """Return how much of the device ``n_blocks`` equal blocks fill while they run: the last wave may be a part of one."""
    return n_blocks / (-(-n_blocks // blocks_at_once) * blocks_at_once)


@cache
def stretches(n_tiles: int, blocks_at_once: int, most: int) -> int:
    """Return into how many stretches of rows, up to ``most``, to cut ``n_tiles`` tiles of features: a block for each of both.

    Every block clears and empties its cells, so the fewest of more than one wave (tiles take unequal time) are taken that fill
    the device well; or else the best of what there is.
    """
    choices = range(1, min(most, max(1, MAX_WAVES * blocks_at_once // max(n_tiles, 1))) + 1)
    for n in choices:
        if n * n_tiles > blocks_at_once and wave_efficiency(n * n_tiles, blocks_at_once) >= GOOD_EFFICIENCY:
            return n
    return max(choices, key=lambda n: wave_efficiency(max(n * n_tiles, 1), blocks_at_once))


def plan_growth(
    columns: Columns,
    bins_stride: int,
    n_trees: int,
    n_channels: int,
    max_leaves: int,
    free_bytes: int,
    limits: Limits,
    wide: bool = False,
) -> GrowthPlan:
    """Choose how to grow a batch of trees.

    Parameters
    ----------
    columns : Columns
    bins_stride : int
        More than any code of the matrix.
    n_trees, n_channels, max_leaves : int
    free_bytes : int
        Memory for histograms and what else a growth needs.
    limits : Limits
    wide : bool
        Whether the sums are int64.

    Raises
    ------
    DeviceMemoryError
        If not even the features of one word fit, the sums of all channels do not fit the shared memory of a block, or there
        are too many trees for a launch.
    """
    check_batch(n_trees)
    sum_bytes = 8 if wide else 4
    shared = SWEEP_WARPS * sum_bytes * n_channels + SWEEP_STATIC_BYTES
    if shared > limits.shared_per_block:
        raise DeviceMemoryError(
            f"{n_channels} channels, one a class, need {shared:,} bytes of shared memory, but a block of the device has "
            f'{limits.shared_per_block:,}; use device="cpu"'
        )
    bin_bytes = sum_bytes * n_trees * n_channels
    budget = int(MEMORY_SHARE * free_bytes)
    n_slots = max(1, max_leaves - 1)
    total = int(columns.offsets[-1])
    whole = Tile(0, len(columns.words), 0, len(columns.features), 0, total)
    kept = n_slots * total * bin_bytes <= budget and whole.n_words <= MAX_WORDS
    tiles: tuple[Tile, ...] = (whole,)
    if not kept:
        n_slots = min(2, n_slots)
        tiles = tuple(cut_into_tiles(columns, budget // (n_slots * bin_bytes)))
        if not tiles:
            raise out_of_memory(columns, n_trees, n_channels, n_slots * bin_bytes, free_bytes)
    lanes = Lanes.choose(max((tile.n_words for tile in tiles), default=0), n_channels * (1 + wide))
    groups = next((g for g in (4, 2) if 4 * WARP * g * bins_stride <= limits.shared_per_block), 1)
    shared = 4 * WARP * groups * bins_stride
    side_by_side = limits.shared_per_multiprocessor // (shared + SHARED_OF_SYSTEM)
    block = 256 if side_by_side >= 4 else 512 if side_by_side >= 2 else 1024
    at_once = resident_blocks(block, shared, limits, wide) * limits.n_multiprocessors
    return GrowthPlan(tiles, kept, n_slots, lanes, groups, bins_stride, block, at_once, wide)


def check_batch(n_trees: int) -> None:
    """Raise a DeviceMemoryError if so many trees cannot grow together."""
    if n_trees > MAX_TREES:
        raise DeviceMemoryError(
            f"a round grows {n_trees:,} trees together, but a launch has room for {MAX_TREES:,}. A tree a class, or a pair of "
            'classes in a search of the base class, which n_candidates limits; or use device="cpu"'
        )


def check_losses(n_classes: int, limits: Limits) -> None:
    """Raise a DeviceMemoryError if a block cannot add up the losses of so many classes."""
    if LOSS_BYTES * n_classes > limits.shared_per_block:
        raise DeviceMemoryError(
            f"the losses of {n_classes:,} classes need {LOSS_BYTES * n_classes:,} bytes of shared memory, but a block of the "
            f'device has {limits.shared_per_block:,}; use device="cpu"'
        )


def resident_blocks(block: int, shared_bytes: int, limits: Limits, wide: bool = False) -> int:
    """Return how many blocks of the histogram kernel a multiprocessor runs side by side."""
    by_shared = limits.shared_per_multiprocessor // (shared_bytes + SHARED_OF_SYSTEM)
    by_threads = limits.threads_per_multiprocessor // block
    by_registers = limits.registers_per_multiprocessor // (HISTOGRAM_REGISTERS[wide] * block)
    return max(1, min(by_shared, by_threads, by_registers))


def cut_into_tiles(columns: Columns, max_bins: int, max_words: int = MAX_WORDS) -> list[Tile]:
    """Divide the features, by whole words, into tiles of at most ``max_bins`` bins; an empty list if a word has more."""
    of_word = np.zeros(len(columns.n_bins) // WORD_FEATURES, np.int64)
    np.add.at(of_word, np.arange(len(columns.n_bins)) // WORD_FEATURES, columns.n_bins)
    ends: list[int] = []
    bins = 0
    for i, n in enumerate(of_word[columns.words].tolist()):
        if n > max_bins:
            return []
        if bins + n > max_bins or (ends[-1:] or [0])[0] + max_words == i:
            ends.append(i)
            bins = 0
        bins += n
    ends.append(len(columns.words))
    tiles, first_word, first_feature, first_bin = [], 0, 0, 0
    for end in ends:
        last = int(columns.words[end - 1])
        stop_feature = int(np.searchsorted(columns.features, WORD_FEATURES * (last + 1)))
        stop_bin = int(columns.offsets[WORD_FEATURES * (last + 1)])
        tiles.append(
            Tile(first_word, end - first_word, first_feature, stop_feature - first_feature, first_bin, stop_bin - first_bin)
        )
        first_word, first_feature, first_bin = end, stop_feature, stop_bin
    return tiles


def out_of_memory(columns: Columns, n_trees: int, n_channels: int, slots_bytes: int, free_bytes: int) -> DeviceMemoryError:
    """Return the error for histograms that do not fit, of ``slots_bytes`` a bin."""
    widest = int(np.max(np.add.reduceat(columns.n_bins, np.arange(0, len(columns.n_bins), WORD_FEATURES))))
    needed = widest * slots_bytes / MEMORY_SHARE
    return DeviceMemoryError(
        f"the histograms of four features need {needed / 2**20:.1f} MiB ({widest} bins x {n_channels} channels x "
        f"{n_trees} trees), but {free_bytes / 2**20:.1f} MiB are free on the device; use a smaller max_bins, a larger "
        'device, or device="cpu"'
    )
