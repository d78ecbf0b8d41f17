"""Machine code: what nvdisasm reads out of a cubin, and the loops in it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from benchmarks.gpu import nvrtc

DISASSEMBLER = "NVDISASM"
"""The environment variable that names nvdisasm where it is neither in a wheel nor in ``PATH``."""
WHEEL = "nvidia-cuda-nvdisasm"
MARKS = {
    "histogram": "ATOMS",
    "sweep": "SHFL.UP",
    "partition_rows": "VOTE",
    "quantise": "F2I",
    "reweight": "DMUL",
    "leaf_sums": "ATOMS",
}
"""Opcodes by which the inner loops of kernels are known; of others, by a load."""
CODE = re.compile(r"\s+/\*(?P<at>[0-9a-f]{4,})\*/\s+(?:(?P<guard>@!?U?P\w+)\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>[^;]*);")
FUNCTION = re.compile(r"\.text\.(\w+):")
LABEL = re.compile(r"(\.L_\w+):")
TARGET = re.compile(r"`\((\.L_\w+)\)")


@dataclass(frozen=True)
class Instruction:
    """One instruction; ``target`` is the address that it may jump to."""

    at: int
    guard: str
    opcode: str
    target: int | None

    @property
    def jumps(self) -> bool:
        return self.opcode.startswith("BRA") and self.target is not None


@dataclass(frozen=True)
class Loop:
    """The instructions from a branch's target to the branch back to it."""

    code: tuple[Instruction, ...]

    def __len__(self) -> int:
        return len(self.code)

    def count(self, prefix: str) -> int:
        """Return how many opcodes begin with ``prefix``."""
        return sum(one.opcode.startswith(prefix) for one in self.code)

    def holds(self, other: Loop) -> bool:
        """Return whether another loop lies inside."""
        return len(other) < len(self) and self.code[0].at <= other.code[0].at and other.code[-1].at <= self.code[-1].at

    def depths(self) -> Counter[int]:
        """Return how many instructions may be jumped over by so many branches of the loop: 0 are always executed."""
        skips = [(one.at, one.target) for one in self.code if one.jumps and one.target and one.target > one.at and one.guard]
        return Counter(sum(at < one.at < end for at, end in skips) for one in self.code)


@dataclass(frozen=True)
class Kernel:
    """The machine code of an entry point."""

    name: str
    code: tuple[Instruction, ...]

    def opcodes(self) -> Counter[str]:
        return Counter(one.opcode for one in self.code)

    @cached_property
    def loops(self) -> list[Loop]:
        """All loops, in the order of their beginnings, without what only diverged warps come by."""
        warm = without_divergence(self.code)
        ends: dict[int, int] = {}
        for one in warm:
            if one.jumps and one.target is not None and one.target < one.at:
                ends[one.target] = max(ends.get(one.target, 0), one.at)
        return [Loop(tuple(one for one in warm if a <= one.at <= b)) for a, b in sorted(ends.items())]

    def loops_with(self, prefix: str) -> list[Loop]:
        """Return the loops with such opcodes that have no smaller one with them inside."""
        loops = [loop for loop in self.loops if loop.count(prefix)]
        return [loop for loop in loops if not any(loop.holds(other) for other in loops)]

    def loop_with(self, prefix: str) -> Loop:
        """Return the longest of `loops_with`; an empty one if there is none."""
        return max(self.loops_with(prefix), key=len, default=Loop(()))

    @property
    def inner_loop(self) -> Loop:
        """The loop in which the kernel's time goes, known by the opcode that does its work."""
        return self.loop_with(next((mark for name, mark in MARKS.items() if self.name.startswith(name)), "LDG"))


def without_divergence(code: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """Leave out what ``BRA.DIV`` jumps to, up to the branch back: there the compiler has a warp that has diverged shuffle."""
    starts = {one.target for one in code if one.opcode == "BRA.DIV"}
    kept, is_cold = [], False
    for one in code:
        is_cold = is_cold or one.at in starts
        if not is_cold:
            kept.append(one)
        elif one.opcode == "BRA" and not one.guard:
            is_cold = False
    return tuple(kept)


def disassembler() -> str:
    """Return nvdisasm: of ``$NVDISASM``, of its wheel, or of ``PATH``."""
    if named := os.environ.get(DISASSEMBLER):
        return named
    try:
        files = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.stem == "nvdisasm" and (path := Path(str(file.locate()))).is_file():
            return str(path)
    if found := shutil.which("nvdisasm"):
        return found
    raise nvrtc.Unavailable(f"there is no nvdisasm: pip install {WHEEL}, the extra gpu-dev, or set {DISASSEMBLER}")


def parse(text: str) -> list[Kernel]:
    """Read what ``nvdisasm -c`` prints."""
    lines: dict[str, list[tuple[int, str, str, str]]] = {}
    labels: dict[str, int] = {}
    waiting: list[str] = []
    name = ""
    for line in text.splitlines():
        if function := FUNCTION.match(line):
            name = function[1]
            lines[name] = []
        elif label := LABEL.match(line):
            waiting.append(label[1])
        elif found := CODE.match(line):
            at = int(found["at"], 16)
            labels |= dict.fromkeys(waiting, at)
            waiting.clear()
            lines[name].append((at, found["guard"] or "", found["opcode"], found["operands"]))
    return [
        Kernel(
            name,
            tuple(
                Instruction(at, guard, opcode, labels.get(to[1]) if (to := TARGET.search(operands)) else None)
                for at, guard, opcode, operands in code
            ),
        )
        for name, code in lines.items()
    ]


@cache
def of_file(file: str, architecture: int) -> dict[str, Kernel]:
    """Disassemble a file of kernels, once in a process."""
    tool, cubin = disassembler(), nvrtc.of_file(file, architecture).cubin
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{file}.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([tool, "-c", str(path)], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise nvrtc.Unavailable(f"{tool} cannot read sm_{architecture}: {done.stderr.strip()}")
    return {kernel.name: kernel for kernel in parse(done.stdout)}
