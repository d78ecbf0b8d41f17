"""Budgets of machine code and of rounds, and what the kernels' headers say of their limits, so that nothing grows unnoticed."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from benchmarks.gpu import counts, nvrtc, sass, static
from benchmarks.gpu.cards import CARDS
from benchmarks.gpu.model import Shares, of_channel
from benchmarks.gpu.rounds import REPLAYED, record
from gpuboost.backends.cuda import kernels
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.requirement import require

FILES = sorted({kernel.file for kernel in kernels.KERNELS.values()})
ARCHITECTURES = [
    card.architecture if card.architecture == 90 else pytest.param(card.architecture, marks=pytest.mark.exhaustive)
    for card in CARDS.values()
]

COMPILER = "13.5"
"""NVRTC's version that the numbers of instructions are of."""
HISTOGRAM_LOOP = 171
"""Instructions for four rows of a word's four features, on every architecture."""
INNER_LOOPS = {
    "histogram": HISTOGRAM_LOOP,
    "sweep_edge": 141,
    "sweep_gini": 186,
    "sweep_newton": 188,
    "sweep_rebel": 276,
    "sweep_entropy": 607,
    "partition_rows": 225,
    "partition_nodes": 153,
    "quantise": 83,
    "reweight": 46,
    "leaf_sums": 115,
    "softmax_statistics": 105,
    "softmax_losses": 137,
}
"""Most instructions of an inner loop, of all architectures."""
DIVIDING = ("entropy", "gini", "newton", "rebel")
DIVIDE = {"softmax_losses", "softmax_update", "weigh_labels"} | {f"sweep_{one}{of}" for one in DIVIDING for of in ("", "_wide")}
"""Kernels with a division or a root in float64, which the compiler makes of fused multiply-adds, rightly rounded."""
ROUNDS = {
    "AdaBoost.MH, discrete": (20, 11, 2),
    "AdaBoost.MH, real": (20, 12, 3),
    "SAMME": (20, 12, 3),
    "GAMBLE": (20, 12, 3),
    "REBEL, depth 2": (10, 27, 8),
    "MART": (20, 13, 3),
    "LogitBoost": (20, 13, 3),
    "ABC-MART": (20, 15, 4),
    "ABC-LogitBoost": (20, 15, 4),
}
"""Launches of a growth with four inner nodes, what else a round queues, and waits."""


def disassembled(file: str, architecture: int) -> dict[str, sass.Kernel]:
    """Disassemble a file of kernels; skips where that cannot be done."""
    try:
        return sass.of_file(file, architecture)
    except nvrtc.Unavailable as error:
        pytest.skip(str(error))


def limit(file: str) -> str:
    """Return what a file's header says of its limit, in one line."""
    text = (kernels.source_folder() / f"{file}.cu").read_text(encoding="utf-8")
    found = re.search(r"^// Limit(.*?)^(?!//)", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1].replace("\n//", "")


# ---- machine code ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_no_wide_atomics_in_shared_memory(file: str) -> None:
    """No card has them: they are loops around a compare-and-swap."""
    try:
        ptx = nvrtc.compiled(kernels.source(file), file, ["-arch=compute_75"]).ptx
    except nvrtc.Unavailable as error:
        pytest.skip(str(error))
    assert not re.findall(r"^.*\batom\.shared[\w.]*64\b.*$", ptx, re.MULTILINE)


def test_wide_atomics_are_seen() -> None:
    text = 'extern "C" __global__ void f(int* p) { __shared__ unsigned long long s[4]; atomicAdd(&s[p[0]], 1ull); *p = s[1]; }'
    try:
        ptx = nvrtc.compiled(text, "f", ["-arch=compute_75"]).ptx
    except nvrtc.Unavailable as error:
        pytest.skip(str(error))
    assert re.findall(r"^.*\batom\.shared[\w.]*64\b.*$", ptx, re.MULTILINE)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("file", ["reduce", "softmax", *(pytest.param(f, marks=pytest.mark.slow) for f in FILES)])
def test_nothing_spins_spills_or_is_fused(file: str, architecture: int) -> None:
    for name, kernel in disassembled(file, architecture).items():
        opcodes = kernel.opcodes()
        assert not [one for one in opcodes if "SPIN" in one or "CAS" in one.split(".")], name
        assert not [one for one in opcodes if one.startswith(("LDL", "STL"))], name
        assert (name in DIVIDE) == any(one.startswith("DFMA") for one in opcodes), name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("kernel", ["histogram", *(pytest.param(k, marks=pytest.mark.slow) for k in list(INNER_LOOPS)[1:])])
def test_inner_loops_keep_to_their_budgets(kernel: str, architecture: int) -> None:
    code = disassembled(kernels.KERNELS[kernel].file, architecture)
    if nvrtc.version() != COMPILER:
        pytest.skip(f"the budgets are of NVRTC {COMPILER}, this is {nvrtc.version()}")
    assert 0 < len(code[kernel].inner_loop) <= INNER_LOOPS[kernel]


def test_the_histogram_adds_four_rows_of_four_features() -> None:
    assert disassembled("histogram", 90)["histogram"].inner_loop.count("ATOMS") == 16


# ---- rounds ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "booster", [*list(ROUNDS)[:1], *(pytest.param(one, marks=pytest.mark.slow) for one in list(ROUNDS)[1:])]
)
@pytest.mark.emulator
def test_a_round_keeps_to_its_budget(booster: str) -> None:
    require(emulator.unavailable())
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 4, 300)
    found = record(partial(static.fit, X, y, static.BOOSTERS[booster]), CARDS["H100"].limits).counts()
    grown, waits = sum(found[name] for name in REPLAYED), found.pop("get")
    assert (grown, found.total() - grown, waits) == ROUNDS[booster]


def test_every_booster_has_a_budget() -> None:
    assert ROUNDS.keys() == static.BOOSTERS.keys()


# ---- headers -----------------------------------------------------------------------------------------------------------------

MNIST = {"n_rows": 60_000, "n_classes": 10, "n_channels": 10, "bins_in_tile": 717 * 256, "kept": 1, "first_member": 3}
BANDWIDTH, CYCLES = 3.35e12, 132 * 1.7e9


def said(file: str, *names: str) -> None:
    """Compare all bytes and times of a header with those that are counted for its kernels."""
    work = counts.Work({**MNIST, "n_cells": 717 * 256 * 10}, rows=60_000, features=717, kept=1.0)
    expected = []
    for name in names:
        n_bytes = counts.bytes_of(name, work)
        expected += [(f"{n_bytes / 1e6:.1f}", "MB"), (f"{1e6 * n_bytes / BANDWIDTH:.1f}", "us")]
    text = limit(file)
    assert "at 3.35 TB/s" in text
    assert re.findall(r"(\d+\.\d+) (MB|us)", text) == expected


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("reweight", ["reweight"]),
        ("quantise", ["quantise", "flip"]),
        ("partition", ["partition_rows", "partition_nodes"]),
        ("sweep", ["sweep_edge"]),
    ],
)
def test_bytes_of_a_header(file: str, names: list[str]) -> None:
    said(file, *names)


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found is not None, f"{pattern!r} is not in {text!r}"
    return [float(one) for one in found.groups()]


def test_instructions_of_the_sweeps_header() -> None:
    text = limit("sweep")
    (warps,) = numbers(r"are (\d+) \(32 bins, channel\)", text)
    each, micro = numbers(r"(\d+) instructions in sweep_edge: (\d+) us", text)
    assert warps == 717 * 8 * 2 * 10
    assert micro == round(1e6 * warps * each / (4 * CYCLES))
    assert each == pytest.approx(of_channel(disassembled("sweep", 90)["sweep_edge"].inner_loop), abs=0.5)


def test_instructions_of_the_histograms_header() -> None:
    """From the shares that it names: how many instructions branches jump over, how many are left, and how long they take."""
    text = limit("histogram")
    (pairs,) = numbers(r"is ([\d.]+) M \(row", text)
    in_loop, executed = numbers(r"has (\d+) instructions for four of them, of which (\d+) are executed", text)
    shares = Shares(*(one / 100 for one in numbers(r"as (\d+) % of the pairs .* to (\d+) %", text)))
    total, micro = numbers(r": (\d+) M, (\d+) us", text)
    atomics, micro_of_atomics = numbers(r"Atomics are ([\d.]+) M of them, (\d+) us", text)
    assert pairs == round(60_000 * 186 / 3 / 1e6, 2)
    assert total == pytest.approx(pairs * executed, rel=0.01)
    assert micro == pytest.approx(1e12 * total / (4 * CYCLES), rel=0.01)
    assert atomics == pytest.approx(pairs * shares.body * shares.atomics * 4, rel=0.01)
    assert micro_of_atomics == round(1e12 * atomics / CYCLES)
    loop = disassembled("histogram", 90)["histogram"].inner_loop
    assert (in_loop, executed) == (len(loop), round(shares.executed(loop) / 4))
