"""What NVRTC makes of the kernels, without a card: its messages, the PTX, the machine code, and what a kernel needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from gpuboost.backends.cuda import kernels

RESOURCES = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers(?P<more>[^\n]*)",
    re.DOTALL,
)


class Unavailable(Exception):
    """There is no NVRTC, or it does not know an architecture; the message says which."""


@dataclass(frozen=True)
class Compiled:
    """What the compiler says and what it makes; no machine code for a virtual architecture."""

    log: str
    ptx: str
    cubin: bytes


@dataclass(frozen=True)
class Resources:
    """What a kernel needs, as ``ptxas -v`` says; bytes of its stack, of spills, and of static shared memory."""

    name: str
    registers: int
    stack: int
    spilled: int
    shared: int


def checked(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    assert status.value == 0, status
    return values[0] if values else None


def bindings() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise Unavailable(f"NVRTC needs cuda-bindings and cuda-toolkit[nvrtc]: {error}") from error
    return nvrtc


@cache
def supported() -> tuple[int, ...]:
    """Return the architectures that NVRTC knows."""
    try:
        return tuple(checked(bindings().nvrtcGetSupportedArchs()))
    except RuntimeError as error:  # the bindings are there, the library is not
        raise Unavailable(f"NVRTC needs cuda-toolkit[nvrtc]: {error}") from error


def version() -> str:
    """Return NVRTC's own."""
    status, major, minor = bindings().nvrtcVersion()
    assert status.value == 0, status
    return f"{major}.{minor}"


def room(n_bytes: int) -> bytes:
    """Return bytes for NVRTC to write into: two at least, since Python has each single byte once in a process."""
    return b" " * max(n_bytes, 2)


def compiled(text: str, file: str, more: list[str]) -> Compiled:
    """Compile with the kernels' and more options; an AssertionError with what the compiler says if there are errors."""
    supported()
    nvrtc = bindings()
    program = checked(nvrtc.nvrtcCreateProgram(text.encode(), f"{file}.cu".encode(), 0, [], []))
    options = [option.encode() for option in (*kernels.OPTIONS, *more)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)

    def fetched(what: str) -> bytes:
        target = room(checked(getattr(nvrtc, f"nvrtcGet{what}Size")(program)))
        checked(getattr(nvrtc, f"nvrtcGet{what}")(program, target))  # fills it
        return target

    log = fetched("ProgramLog").decode(errors="replace")
    assert status.value == 0, log
    is_virtual = any("=compute_" in option for option in more)
    found = Compiled(log, fetched("PTX").decode(), b"" if is_virtual else fetched("CUBIN"))
    checked(nvrtc.nvrtcDestroyProgram(program))
    return found


def machine_code(text: str, file: str, architecture: int) -> Compiled:
    """Compile for an architecture, and let the assembler say what every kernel needs."""
    if architecture not in supported():
        raise Unavailable(f"this NVRTC does not know sm_{architecture}, only {supported()}")
    return compiled(text, file, [f"-arch=sm_{architecture}", "--ptxas-options=-v"])


@cache
def of_file(file: str, architecture: int) -> Compiled:
    """Compile a file of kernels for an architecture, once in a process."""
    return machine_code(kernels.source(file), file, architecture)


def resources(log: str) -> list[Resources]:
    """Read what the assembler says of every kernel."""

    def shared(more: str) -> int:
        found = re.search(r"(\d+) bytes smem", more)
        return int(found[1]) if found else 0

    return [
        Resources(m["name"], int(m["registers"]), int(m["stack"]), int(m["stores"]) + int(m["loads"]), shared(m["more"]))
        for m in RESOURCES.finditer(log)
    ]
