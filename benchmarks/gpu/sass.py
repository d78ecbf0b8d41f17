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
        """Loops without a loop inside, in their order."""
        ends: dict[int, int] = {}
        for one in self.code:
            if one.jumps and one.target is not None and one.target < one.at:
                ends[one.target] = max(ends.get(one.target, 0), one.at)
        spans = sorted(ends.items())
        inner = [(a, b) for a, b in spans if not any((c, d) != (a, b) and a <= c and d <= b for c, d in spans)]
        return [Loop(tuple(one for one in self.code if a <= one.at <= b)) for a, b in inner]

    @property
    def inner_loop(self) -> Loop:
        """The loop with the most shared atomics, of those the longest; an empty one if there is none."""
        return max(self.loops, key=lambda loop: (loop.count("ATOMS"), len(loop)), default=Loop(()))


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
