"""What can be known of the CUDA path without a card: machine code, occupancy, waves, launches, and a model of a round.

    python benchmarks/gpu/static.py [--data-dir DIR] [--out FOLDER] [--quick]

It needs NVRTC and nvdisasm (the extras test and gpu-dev) and g++, and writes ``FOLDER/static-<date>.md``.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import gpuboost  # noqa: E402
from benchmarks.gpu import data, nvrtc, sass  # noqa: E402
from benchmarks.gpu.cards import ASSUMED, CARDS, DEPENDENT_LOADS, SHAPES, Card, waves  # noqa: E402
from benchmarks.gpu.facts import sources  # noqa: E402
from benchmarks.gpu.model import Model, Round  # noqa: E402
from benchmarks.gpu.rounds import REPLAYED, Recorded, record  # noqa: E402
from benchmarks.gpu.step import Step, write_whole  # noqa: E402
from gpuboost.backends.cuda.gpu import Limits  # noqa: E402
from gpuboost.backends.cuda.kernels import KERNELS  # noqa: E402

FIVE_LEAVES = {"max_leaf_nodes": 5}
BOOSTERS: dict[str, dict[str, Any]] = {
    "AdaBoost.MH, discrete": {"algorithm": "adaboost-mh", "variant": "discrete", **FIVE_LEAVES},
    "AdaBoost.MH, real": {"algorithm": "adaboost-mh", "variant": "real", **FIVE_LEAVES},
    "SAMME": {"algorithm": "samme", **FIVE_LEAVES},
    "GAMBLE": {"algorithm": "gamble", **FIVE_LEAVES},
    "REBEL, depth 2": {"algorithm": "rebel", "max_depth": 2},
    "MART": {"algorithm": "mart", **FIVE_LEAVES},
    "LogitBoost": {"algorithm": "logitboost", **FIVE_LEAVES},
    "ABC-MART": {"algorithm": "abc-boost", "loss": "mart", **FIVE_LEAVES},
    "ABC-LogitBoost": {"algorithm": "abc-boost", "loss": "logit", **FIVE_LEAVES},
}
PLANNED_ON = "H100"
"""The card whose plans are recorded."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [" | ".join(map(str, row)) for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


# ---- machine code ------------------------------------------------------------------------------------------------------------


def needs(card: Card) -> dict[str, nvrtc.Resources]:
    """Return what every kernel needs on a card's architecture."""
    files = sorted({kernel.file for kernel in KERNELS.values()})
    return {one.name: one for file in files for one in nvrtc.resources(nvrtc.of_file(file, card.architecture).log)}


def occupancy(needed: nvrtc.Resources, limits: Limits, block: int) -> float:
    """Return the share of a multiprocessor's threads that blocks of a kernel fill, by registers, static memory and threads."""
    warps = -(-needed.registers // 8) * 8 * block  # registers are given out by eight for each thread
    by_shared = limits.shared_per_multiprocessor // (needed.shared + 1024)
    blocks = min(limits.registers_per_multiprocessor // warps, by_shared, limits.threads_per_multiprocessor // block)
    return blocks * block / limits.threads_per_multiprocessor


def of_kernels() -> str:
    """Return the tables of machine code, a row for each kernel."""
    needed = {name: needs(card) for name, card in CARDS.items()}
    head = ["kernel", *(f"sm_{card.architecture}" for card in CARDS.values())]

    def rows(cell: Callable[[str, str], str]) -> list[list[str]]:
        return [[f"`{kernel}`", *(cell(kernel, name) for name in CARDS)] for kernel in sorted(KERNELS)]

    def loop(kernel: str, name: str) -> str:
        found = sass.of_file(KERNELS[kernel].file, CARDS[name].architecture)[kernel].inner_loop
        return f"{len(found)} ({found.count('LDG')}, {found.count('ATOMS')})"

    def resources(kernel: str, name: str) -> str:
        one = needed[name][kernel]
        filled = occupancy(one, CARDS[name].limits, KERNELS[kernel].max_block)
        return f"{one.registers}, {one.shared}, {one.spilled}, {100 * filled:.0f} %"

    return (
        "## Inner loops\n\nInstructions of the loop in which a kernel's time goes (loads, shared atomics), as the compiler "
        "unrolls it.\n\n"
        + table(head, rows(loop))
        + "\n## Registers, static shared memory, spills, occupancy\n\nOf a thread; bytes; bytes; the threads of a "
        "multiprocessor that blocks of the largest size fill. The histogram's dynamic memory lowers its occupancy further.\n\n"
        + table(head, rows(resources))
    )


def of_waves() -> str:
    rows = [[shape, *(f"{100 * min(waves(SHAPES[shape], card.limits)):.0f} %" for card in CARDS.values())] for shape in SHAPES]
    return "## Waves of the histogram's blocks at the root\n\nThe share of the device that is busy while they run.\n\n" + table(
        ["shape", *CARDS], rows
    )


# ---- rounds ------------------------------------------------------------------------------------------------------------------


def fit(X: NDArray[Any], y: NDArray[Any], options: dict[str, Any], device: str) -> Any:
    return gpuboost.fit(X, y, n_estimators=4, device=device, **options)


def of_boosters() -> str:
    """Return what a round of every booster queues, with five leaves and four classes."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 4, 300)
    rows = []
    for name, options in BOOSTERS.items():
        counts = record(partial(fit, X, y, options), CARDS[PLANNED_ON].limits).counts()
        waits, puts, grown = counts.pop("get", 0), counts["put"], sum(counts[kernel] for kernel in REPLAYED)
        rows.append((name, grown, counts.total() - grown - puts, puts, waits))
    return (
        "## A round's items\n\nWith five leaves and four classes, 300 rows. A graph replays the first column in one call.\n\n"
        + table(["booster", "launches of the growth", "other launches", "copies to the device", "waits"], rows)
    )


def poker(step: Step) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return hands of cards, ranks and suits, of eight classes: from ``poker25k.npz``, or made."""
    path = step.data_dir / "poker25k.npz" if step.data_dir else None
    if path is not None and path.exists():
        with np.load(path) as z:
            return z["X_train"], z["y_train"]
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(1, 5 + 9 * (column % 2), step.choose(25_010, 160)) for column in range(10)], axis=1)
    return X.astype(np.uint8), rng.choice(8, len(X), p=[0.5, 0.42, 0.048, 0.021, 0.004, 0.003, 0.003, 0.001])


def problems(step: Step) -> dict[str, Callable[[str], Any]]:
    """Return trainings by name."""
    mnist, covtype = data.load(step, "mnist"), data.load(step, "covtype")
    X, y = data.whole(covtype)
    X, y = X[: len(X) * 4 // 5], y[: len(X) * 4 // 5]  # 464,809 rows
    real = {"algorithm": "adaboost-mh", "variant": "real"}
    return {
        "MNIST, 8 inner nodes": partial(fit, mnist.X, mnist.y, {**real, "max_leaf_nodes": 9}),
        "Covertype, 16 inner nodes": partial(fit, X, y, {**real, "max_leaf_nodes": 17}),
        "Covertype, 31 inner nodes": partial(fit, X, y, {**real, "max_leaf_nodes": 32}),
        "ABC-MART on poker hands, 19 inner nodes": partial(
            fit, *poker(step), {"algorithm": "abc-boost", "loss": "mart", "max_leaf_nodes": 20}
        ),
    }


ROUNDS, WITHOUT_GRAPHS = "## A round, in ms", "without graphs"


def model_rows(folder: Path = ROOT / "benchmarks" / "results") -> list[dict[str, Any]]:
    """Return the modelled rounds of the newest report: a training's name as "problem", and milliseconds by card."""
    report = max(folder.glob("static-*.md"), default=None)
    if report is None:
        return []
    text = report.read_text(encoding="utf-8").partition(ROUNDS)[2].partition("\n#")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    named = [row for row in rows if row[0] != WITHOUT_GRAPHS]
    return [{"problem": row[0], **{card: float(ms) for card, ms in zip(head[1:], row[1:], strict=True)}} for row in named]


def of_model(recorded: dict[str, Recorded]) -> str:
    """Return the modelled rounds."""
    rows, parts = [], []
    for name, one in recorded.items():
        models = {card: Model(CARDS[card], one) for card in CARDS}
        rounds = {card: model.round() for card, model in models.items()}
        rows.append([name, *(f"{1e3 * found.seconds:.2f}" for found in rounds.values())])
        rows.append([WITHOUT_GRAPHS, *(f"{1e3 * model.round(graphs=False).seconds:.2f}" for model in models.values())])
        parts.append((name, rounds[PLANNED_ON], models[PLANNED_ON]))
    return (
        f"{ROUNDS}\n\n"
        + table(["", *CARDS], rows)
        + f"\n### Where it goes on an {PLANNED_ON}\n\nMilliseconds. The device works while the host queues; what is left of "
        "both is waited for. Executed is the share of (warp, row) pairs in which the histogram's loop adds anything, and of "
        "these the share of a word's features that are added.\n\n"
        + table(["", "round", "device", "host", "waits", "executed", "largest parts"], [shown(*part) for part in parts])
    )


def shown(name: str, found: Round, model: Model) -> list[str]:
    largest = sorted(found.of_kernel.items(), key=lambda part: -part[1])[:4]
    executed = f"{100 * model.shares.body:.0f} %, {100 * model.shares.atomics:.0f} %"
    times = [f"{1e3 * seconds:.2f}" for seconds in (found.seconds, found.device, found.host)]
    return [
        name,
        *times,
        str(found.waits),
        executed,
        ", ".join(f"`{kernel}` {1e3 * seconds:.2f}" for kernel, seconds in largest),
    ]


def assumptions() -> str:
    loads = ", ".join(f"`{kernel}` {n}" for kernel, n in DEPENDENT_LOADS.items())
    numbers = [(name, f"{one.value:g} {one.unit}", one.why) for name, one in ASSUMED.items()]
    cards = [
        (name, f"sm_{card.architecture}", card.limits.n_multiprocessors, f"{card.clock / 1e9:g}", f"{card.memory / 1e12:g}")
        for name, card in CARDS.items()
    ]
    return (
        "## What the model assumes\n\nWhere there is a *, microseconds of our Python were measured on a core of an AMD EPYC "
        "(12 for a thousand turns of an empty loop), with a device that does nothing.\n\n"
        + table(["", "value", "why"], [*numbers, ("loads that wait for one another", f"2; {loads}", "read in the sources")])
        + "\n"
        + table(["card", "", "multiprocessors", "GHz", "TB/s"], cards)
    )


def main(arguments: Sequence[str] | None = None) -> Path:
    """Write the report, and return where it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="with mnist.npz, covtype.npz and poker25k.npz; else such data are made")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--quick", action="store_true", help="tiny problems: does it run?")
    given = parser.parse_args(arguments)
    date = datetime.date.today().isoformat()
    with tempfile.TemporaryDirectory() as folder:
        step = Step("static", Path(folder), 0.0, given.data_dir, given.quick)
        limits = CARDS[PLANNED_ON].limits
        recorded = {name: record(train, limits) for name, train in problems(step).items()}
    origin = "files" if given.data_dir else "made data of their shapes"
    head = (
        f"# The CUDA path without a card\n\n{date}, `benchmarks/gpu/static.py`, NVRTC {nvrtc.version()}, sources {sources()}, "
        f"{origin}. Instructions, registers, waves, launches and waits are counted; times are a model's, as good as what it "
        "assumes.\n"
    )
    text = "\n".join([head, of_model(recorded), assumptions(), of_boosters(), of_waves(), of_kernels()])
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"static-{date}.md"
    write_whole(path, text)
    return path


if __name__ == "__main__":
    try:
        print(main())
    except nvrtc.Unavailable as error:
        sys.exit(f"static.py: {error}")
