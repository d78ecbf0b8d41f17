"""``benchmarks/gpu/static.py``: machine code is read rightly, and the model does its arithmetic."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu import nvrtc, sass, static
from benchmarks.gpu.cards import ASSUMED, CARDS
from benchmarks.gpu.model import Model, Shares, shares_of
from benchmarks.gpu.rounds import Item, Recorded, assign_rows
from gpuboost.backends.cuda.plan import Columns
from gpuboost.backends.frontier import LEFT, SLOT, START, STOP
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.requirement import require

LISTING = """
.text.two_loops:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDG.E.CONSTANT R10, desc[UR10][R14.64] ;
.L_x_2:
        /*0020*/              @!P1 BRA `(.L_x_3) ;
        /*0030*/                   ATOMS.ADD RZ, [R27], R40 ;
        /*0040*/              @!P2 BRA `(.L_x_3) ;
        /*0050*/                   ATOMS.ADD RZ, [R13], R40 ;
.L_x_3:
        /*0060*/               @P1 BRA `(.L_x_2) ;
        /*0070*/                   BRA.DIV ~URZ, `(.L_x_5) ;
        /*0080*/                   SHFL.UP PT, R2, R3, 0x1, RZ ;
.L_x_4:
        /*0090*/              @!P0 BRA `(.L_x_1) ;
        /*00a0*/                   EXIT ;
.L_x_5:
        /*00b0*/                   WARPSYNC.COLLECTIVE R4, `(.L_x_4) ;
        /*00c0*/                   SHFL.UP PT, R2, R3, 0x1, RZ ;
        /*00d0*/                   BRA `(.L_x_4) ;
.L_x_6:
        /*00e0*/                   BRA `(.L_x_6);
.text.another:
        /*0000*/                   EXIT ;
"""


# ---- machine code ------------------------------------------------------------------------------------------------------------


def test_loops_are_read() -> None:
    two_loops, another = sass.parse(LISTING)
    assert (two_loops.name, len(two_loops.code), another.name, len(another.code)) == ("two_loops", 15, "another", 1)
    assert [(loop.code[0].at, loop.code[-1].at) for loop in two_loops.loops] == [(0x10, 0x90), (0x20, 0x60)]
    assert another.loops == []
    assert two_loops.opcodes()["ATOMS.ADD"] == 2
    assert [two_loops.code[i].guard for i in (1, 2)] == ["", "@!P1"]


def test_the_innermost_loop_with_an_opcode() -> None:
    kernel = sass.parse(LISTING)[0]
    assert len(kernel.loop_with("ATOMS")) == 5
    assert len(kernel.loop_with("LDG")) == len(kernel.inner_loop) == 9  # without what only diverged warps come by
    assert kernel.loop_with("SHFL").count("SHFL") == 1
    assert len(kernel.loop_with("DFMA")) == 0


def test_how_many_branches_jump_over_an_instruction() -> None:
    # Of five: the first branch and the last are always executed, the first atomic and the branch behind it unless the first
    # branch is taken, the second atomic unless either is.
    loop = sass.parse(LISTING)[0].loop_with("ATOMS")
    assert loop.depths() == Counter({0: 2, 1: 2, 2: 1})
    assert Shares(body=0.5, atomics=0.25).executed(loop) == 2 + 2 * 0.5 + 0.125


def test_shares_by_hand() -> None:
    # Four rows, two words; two rows and both words at once: the first pair adds one feature of four, the second nothing.
    differs = np.zeros((4, 2, 4), bool)
    differs[1, 0, 2] = differs[0, 1, 2] = True
    assert shares_of(differs, 2, 2) == Shares(0.5, 0.25)
    assert shares_of(differs, 1, 1) == Shares(0.25, 0.25)
    assert shares_of(differs, 3, 4) == Shares(1.0, 0.25)  # a tile of three words, of which there are two
    assert shares_of(np.zeros((4, 2, 4), bool), 1, 1) == Shares(0.0, 0.0)


def test_occupancy_by_hand() -> None:
    t4, h100 = CARDS["T4"].limits, CARDS["H100"].limits
    assert static.occupancy(nvrtc.Resources("k", 32, 0, 0, 0), h100, 256) == 1.0
    assert static.occupancy(nvrtc.Resources("k", 41, 0, 0, 0), h100, 256) == 5 * 256 / 2048  # 48 registers are given out
    assert static.occupancy(nvrtc.Resources("k", 64, 0, 0, 0), t4, 256) == 1.0
    assert static.occupancy(nvrtc.Resources("k", 32, 0, 0, 31 * 1024), t4, 256) == 0.5


# ---- rounds and their model --------------------------------------------------------------------------------------------------


def test_launches_get_the_rows_of_their_nodes() -> None:
    # The first tree: 10 rows into 4 and 6, then the left child into 1 and 3. The second is cut once, into 9 and 1.
    nodes = np.zeros((2, 5, SLOT + 1), np.int64)
    for tree, node, start, stop, left in (
        (0, 0, 0, 10, 1),
        (0, 1, 0, 4, 3),
        (0, 2, 4, 10, 0),
        (0, 3, 0, 1, 0),
        (0, 4, 1, 4, 0),
    ):
        nodes[tree, node, [START, STOP, LEFT]] = start, stop, left
    for node, start, stop, left in ((0, 0, 10, 1), (1, 0, 9, 0), (2, 9, 10, 0)):
        nodes[1, node, [START, STOP, LEFT]] = start, stop, left
    step = [("pop_best_leaf", {}), ("partition_rows", {}), ("histogram", {"member": 1}), ("sweep_edge", {})]
    items = [
        Item(name, dict(sizes)) for name, sizes in [("histogram", {"member": 0}), *step, *step, ("histogram", {"member": 4})]
    ]
    assign_rows(items, nodes)
    assert [item.rows for item in items] == [
        (10, 10), None, (10, 10), (4, 1), (4, 1), None, (4, 0), (1, 0), (1, 0), (3, 0)
    ]  # fmt: skip


def recorded(*names: str) -> Recorded:
    sizes = {"n_rows": 0, "n_classes": 0, "n_channels": 2, "bytes": 0, "max_nodes": 0}
    items = [Item(name, sizes, (0,)) for name in names]
    return Recorded(items, Columns.of(np.array([4]), np.array([True])), 4, np.ones((64, 1, 4), bool), 3, 2, 3, 2)


def seconds(name: str) -> float:
    return ASSUMED[name].value


def test_the_clocks_by_hand() -> None:
    # Three trees grow side by side, of which two are added to the model.
    besides, latency = seconds("round") + 2 * seconds("grown") + 2 * seconds("made"), 2 * seconds("latency")
    # Two launches: the second is queued while the first runs, and both are waited for.
    found = Model(CARDS["H100"], recorded("reweight", "errors", "get")).round()
    work = seconds("start") + latency
    assert work < seconds("checked")
    assert found.seconds == pytest.approx(2 * seconds("checked") + work + seconds("wait") + besides)
    assert (found.device, found.waits) == (pytest.approx(2 * work), 1)
    # A growth's launches are one call to the host as a graph, and one each without.
    model = Model(CARDS["H100"], recorded(*["pop_best_leaf"] * 40))
    own = seconds("start in a graph") + 3 * seconds("latency")
    assert model.round().seconds == pytest.approx(seconds("graph") + 40 * own + besides)
    queued = 40 * seconds("replayed")
    last = seconds("start") + 3 * seconds("latency")
    assert model.round(graphs=False).host == pytest.approx(queued + besides)
    assert model.round(graphs=False).seconds == pytest.approx(queued + last + besides)


def test_bytes_take_their_time() -> None:
    one = recorded("maximum")
    one.items[0].arguments["n"] = 10**9
    found = Model(CARDS["A100"], one).round().device
    assert found == pytest.approx(8e9 / (0.8 * 2.04e12) + seconds("start") + 2 * seconds("latency"))


def test_a_table() -> None:
    assert static.table(["a", "b"], [(1, "x")]) == "| a | b |\n| --- | --- |\n| 1 | x |\n"


@pytest.mark.parametrize(
    "cards",
    [pytest.param({"H100"}, marks=pytest.mark.slow), pytest.param({"H100", "T4"}, marks=pytest.mark.exhaustive)],
    ids=len,
)
@pytest.mark.emulator
def test_the_report_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cards: set[str]) -> None:
    """With tiny problems."""
    require(emulator.unavailable())
    for name in CARDS.keys() - cards:
        monkeypatch.delitem(CARDS, name)
    try:
        sass.disassembler()
        path = static.main(["--quick", "--out", str(tmp_path)])
    except nvrtc.Unavailable as error:
        pytest.skip(str(error))
    text = path.read_text("utf-8")
    assert [path] == list(tmp_path.iterdir())
    for name in (*static.BOOSTERS, *ASSUMED, "`histogram`", "ABC-MART on poker hands, 19 inner nodes"):
        assert name in text
    for name in cards:
        assert f"| {name} | sm_{CARDS[name].architecture} |" in text
    assert "nan" not in text


def test_the_newest_report_is_read(tmp_path: Path) -> None:
    assert static.model_rows(tmp_path) == []
    (tmp_path / "static-2026-01-01.md").write_text("nothing")
    rows = f"| | H100 | T4 |\n| --- | --- | --- |\n| one | 0.90 | 4.00 |\n| {static.WITHOUT_GRAPHS} | 1.10 | 5.00 |\n"
    (tmp_path / "static-2026-02-01.md").write_text(
        f"# A report\n\n{static.ROUNDS}\n\n{rows}\n### Where it goes\n\n| two | 1 | 2 |\n"
    )
    assert static.model_rows(tmp_path) == [{"problem": "one", "H100": 0.9, "T4": 4.0}]
