"""Run CUDA C on the CPU: the unmodified text of ``kernels/*.cu``, compiled as C++17.

``emulator.h`` declares what CUDA C needs, ``emulator.cpp`` runs blocks one after another with a fiber for each CUDA thread. In
between stands this module: it rewrites what no header can express, compiles, loads, and launches with arguments of just the
types that the kernel declares.

The environment says how, so that whole test runs can be repeated under sanitizers (see ``sanitized.py``):

GPUBOOST_EMULATOR_SANITIZE : "asan" (addresses and undefined behaviour), "tsan" (races), or nothing
GPUBOOST_EMULATOR_CACHE : folder of the compiled kernels; else one of the user's in the folder for temporary files
CXX : the compiler, else g++

What it cannot show: kernels that wait for other blocks or spin on memory hang, as a thread runs until it calls a barrier or a
primitive of its warp; and weak memory order, but for what the thread sanitizer says about missing fences.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from gpuboost.backends.cuda.kernels import Kernel, Parameter
from gpuboost.backends.cuda.launch import MAX_GRID
from tests.cuda_on_cpu.device_array import DeviceArray

HERE = Path(__file__).resolve().parent
ORDERS = ("forward", "reverse", "random")
SHARED_WITHOUT_OPT_IN = 48 * 1024
LOCK = threading.Lock()
"""There is one device: launches of several threads come one after another."""

CXX = os.environ.get("CXX", "g++")
FLAGS = ("-std=c++17", "-fPIC", "-shared", "-fno-stack-protector")
KERNEL_FLAGS = (
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-fno-exceptions",
    "-fvisibility=hidden",
    "-Wall",
)
SANITIZERS = {
    "": ("-O2",),
    "asan": (
        "-O1",
        "-g1",
        "-fno-omit-frame-pointer",
        "-fsanitize=address,undefined,float-cast-overflow",
        "-fno-sanitize-recover=all",
        "-DEMULATOR_ASAN",
    ),
    "tsan": ("-O1", "-g1", "-fsanitize=thread", "-DEMULATOR_TSAN"),
}
FORMATS = {
    "i1": "b7x",
    "u1": "B7x",
    "i2": "h6x",
    "u2": "H6x",
    "i4": "i4x",
    "u4": "I4x",
    "f4": "f4x",
    "i8": "q",
    "u8": "Q",
    "f8": "d",
}


class KernelError(RuntimeError):
    """A kernel stopped: a deadlock, divergence, a shuffle from a lane that takes no part, or a failed assertion."""


class CompileError(RuntimeError):
    """The compiler did not accept a kernel."""


@cache
def unavailable() -> str | None:
    """Return why kernels cannot be run here, or None."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return "the emulator needs Linux on x86-64"
    return None if shutil.which(CXX) else f"the emulator needs a C++ compiler, and there is no {CXX}"


def sanitizer() -> str:
    """Return the sanitizer that the environment asks for, "" for none."""
    name = os.environ.get("GPUBOOST_EMULATOR_SANITIZE", "")
    if name not in SANITIZERS:
        raise ValueError(f"GPUBOOST_EMULATOR_SANITIZE must be one of {sorted(SANITIZERS)}, got {name!r}")
    return name


# ---- translation -------------------------------------------------------------------------------------------------------------

ENTRY_POINT = re.compile(
    r'(?P<linkage>extern\s+"C"\s+)?__global__\s+(?:void\s+)?(?:__launch_bounds__\s*\((?P<bounds>[^()]*)\)\s*)?(?:void\s+)?'
    r"(?P<name>\w+)\s*\((?P<parameters>[^()]*)\)"
)
SHARED = re.compile(r"(?P<dynamic>extern\s+)?__shared__\s+(?:__align__\s*\(\d+\)\s*)?(?P<declaration>[^;=(]+);")
DECLARATOR = re.compile(r"\s*(?P<name>\w+)\s*(?P<dimensions>(?:\[[^\]]*\]\s*)*)$")


def translate(text: str, file: str) -> str:
    """Return preprocessed CUDA C as C++: with shared variables of blocks, and a table of the kernels at its end."""
    text = SHARED.sub(lambda match: shared_variables(match["dynamic"], match["declaration"]), text)
    table = []
    for match in ENTRY_POINT.finditer(text):
        parameters = [parameter.split()[-1].lstrip("*&") for parameter in match["parameters"].split(",") if parameter.strip()]
        max_block = int((match["bounds"] or "1024").split(",")[0])
        table.append(f'EMULATED_KERNEL({match["name"]}, {max_block}, "{" ".join(parameters)}")')
    if not table:
        raise ValueError(f"{file} has no __global__ function")
    # A kernel may have the name of a function of the C library, as long as it is a C++ function here.
    text = ENTRY_POINT.sub(lambda match: match[0].removeprefix(match["linkage"] or ""), text)
    rows = ",\n".join([*dict.fromkeys(table), "{}"])
    return (
        f'#include "emulator.h"\n{text}\n'
        f'extern "C" __attribute__((visibility("default"))) const emulator::Kernel emulator_kernels[] = {{\n{rows}}};\n'
    )


def shared_variables(dynamic: str | None, declaration: str) -> str:
    """Return the C++ for what stands between ``__shared__`` and the semicolon."""
    first, *others = split_declarators(declaration)
    match = DECLARATOR.search(first)
    unclear = ValueError(f"cannot read the declaration of shared memory {declaration.strip()!r}")
    if match is None:
        raise unclear
    base = first[: match.start()].strip()
    if dynamic:
        if others or match["dimensions"].strip() != "[]":
            raise unclear
        return f"{base}* {match['name']} = ({base}*)emulator::dynamic_shared();"
    lines = []
    for declarator in (first[match.start() :], *others):
        match = DECLARATOR.fullmatch(declarator)
        if match is None:
            raise unclear
        name = match["name"]
        lines += [
            f"typedef {base} {name}_type{match['dimensions']};",
            f"static emulator::Shared<{name}_type> {name}_memory;",
            f"{name}_type& {name} = {name}_memory.of_block();",
        ]
    return " ".join(lines)


def split_declarators(declaration: str) -> list[str]:
    """Split at the commas that stand in no brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(declaration):
        depth += (letter in "<[({") - (letter in ">])}")
        if letter == "," and depth == 0:
            parts.append(declaration[start:position])
            start = position + 1
    return [*parts, declaration[start:]]


# ---- compilation -------------------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    chosen = os.environ.get("GPUBOOST_EMULATOR_CACHE")
    folder = Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"gpuboost-emulator-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def compiler(*arguments: str | Path, text: str | None = None) -> str:
    done = subprocess.run([CXX, *map(str, arguments)], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompileError(f"{CXX} failed:\n{done.stderr}")
    return done.stdout


@cache
def compiler_version() -> str:
    return compiler("--version")


def cached(name: str, key: tuple[str, ...], build: Any) -> Path:
    """Return the file of that content in the cache, after ``build(path)`` if need be. Processes may do so at the same time."""
    digest = hashlib.sha256("\0".join([compiler_version(), *key]).encode()).hexdigest()[:24]
    path = cache_folder() / f"{name}-{digest}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            build(Path(folder) / path.name)
            os.replace(Path(folder) / path.name, path)
    return path


def own_source(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@cache
def runtime() -> ctypes.CDLL:
    """Compile and load ``emulator.cpp``. There is one, so that all kernels share its fibers."""
    mode = sanitizer()
    # Not compiled with the sanitizer: only what kernels do is watched.
    flags = (*FLAGS, "-O2", "-Wall", "-Wextra", *(flag for flag in SANITIZERS[mode] if flag.startswith("-D")))
    key = (*map(own_source, ("runtime.h", "fibers.h", "shared_memory.h", "emulator.cpp")), *flags)
    path = cached(f"runtime-{mode or 'plain'}", key, lambda path: compiler(*flags, HERE / "emulator.cpp", "-o", path))
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    u, size = ctypes.c_uint, ctypes.c_size_t
    library.emulator_launch.argtypes = [ctypes.c_void_p, ctypes.c_char_p, u, u, u, u, size, size, ctypes.c_int, ctypes.c_uint64]
    library.emulator_launch.restype = ctypes.c_char_p
    library.emulator_allocate.argtypes, library.emulator_allocate.restype = [size], ctypes.c_void_p
    library.emulator_free.argtypes, library.emulator_free.restype = [ctypes.c_void_p], None
    return library


def build(text: str, file: str) -> Path:
    """Compile CUDA C.

    Raises
    ------
    CompileError
        If the compiler does not accept it.
    ValueError
        If it has no kernel, or a declaration of shared memory that cannot be read.
    """
    mode = sanitizer()
    flags = (*FLAGS, *KERNEL_FLAGS, *SANITIZERS[mode])

    def compile_to(path: Path) -> None:
        named = f'#line 1 "{file}"\n{text}'
        preprocessed = compiler("-std=c++17", "-w", "-E", "-x", "c++", "-", text=named)
        compiler(*flags, f"-I{HERE}", "-x", "c++", "-", "-o", path, text=translate(preprocessed, file))

    key = (*map(own_source, ("runtime.h", "emulator.h", "emulator.py")), file, text, *flags)
    return cached(f"{Path(file).stem}-{mode or 'plain'}", key, compile_to)


# ---- launching ---------------------------------------------------------------------------------------------------------------


class Row(ctypes.Structure):
    """``emulator::Kernel``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("run", ctypes.c_void_p),
        ("types", ctypes.c_char_p),
        ("parameters", ctypes.c_char_p),
        ("max_block", ctypes.c_int),
    )


class CompiledKernel:
    """A kernel that can be launched.

    Parameters
    ----------
    kernel : Kernel
        What is registered; it must be what ``row`` says of the compiled kernel.
    row : Row

    Raises
    ------
    TypeError
        If the registered signature is not that of the compiled kernel.
    """

    def __init__(self, kernel: Kernel, row: Row) -> None:
        check_signature(kernel, row)
        self.kernel = kernel
        self._run = row.run
        self._slots = struct.Struct("<" + "".join(map(slot_format, kernel.parameters)))

    def launch(
        self,
        grid: tuple[int, int, int],
        block: int,
        arguments: tuple[DeviceArray | np.generic | np.ndarray[Any, Any] | None, ...],
        *,
        shared_bytes: int = 0,
        shared_limit: int = SHARED_WITHOUT_OPT_IN,
        order: str = "forward",
        seed: int = 0,
    ) -> None:
        """Run the kernel to its end.

        Parameters
        ----------
        grid : tuple of int
        block : int
        arguments : tuple
            Arrays, structs and scalars of just the registered dtypes; None is a null pointer.
        shared_bytes : int
            Dynamic shared memory.
        shared_limit : int
            How much shared memory a block has. Beyond 48 KiB a device must be asked for it.
        order : {"forward", "reverse", "random"}
            In which order blocks and threads run.
        seed : int
            Of the random order, and of what uninitialised shared memory holds.

        Raises
        ------
        TypeError, ValueError
            If an argument or the shape of the launch is not what the kernel takes.
        KernelError
            If it does not end well.
        """
        self._check_launch(grid, block, shared_bytes, shared_limit)
        self._check_arguments(arguments)
        with LOCK, exact_copies(arguments) if sanitizer() == "asan" else nullcontext(arguments) as arguments:
            slots = self._slots.pack(*map(slot_value, arguments))
            error = runtime().emulator_launch(
                self._run, slots, *grid, block, shared_bytes, shared_limit, ORDERS.index(order), seed % 2**64
            )
        if error is not None:
            raise KernelError(f"{self.kernel.name}: {error.decode()}")

    def _check_launch(self, grid: tuple[int, int, int], block: int, shared_bytes: int, shared_limit: int) -> None:
        name = self.kernel.name
        if not all(1 <= n <= limit for n, limit in zip(grid, MAX_GRID, strict=True)):
            raise ValueError(f"{name}: a grid must be from (1, 1, 1) to {MAX_GRID}, got {grid}")
        if not 1 <= block <= self.kernel.max_block:
            raise ValueError(f"{name}: a block must be from 1 to {self.kernel.max_block} threads, got {block}")
        if not 0 <= shared_bytes <= shared_limit:
            raise ValueError(f"{name}: {shared_bytes} bytes of dynamic shared memory, but a block has {shared_limit}")

    def _check_arguments(self, arguments: tuple[Any, ...]) -> None:
        parameters = self.kernel.parameters
        if len(arguments) != len(parameters):
            raise TypeError(f"{self.kernel.name} takes {len(parameters)} arguments, got {len(arguments)}")
        for parameter, argument in zip(parameters, arguments, strict=True):
            if parameter.is_array and argument is None:
                continue
            wanted: type = DeviceArray if parameter.is_array else np.ndarray if parameter.dtype.names else np.generic
            if not isinstance(argument, wanted) or argument.dtype != parameter.dtype:
                what = {DeviceArray: "a device array", np.ndarray: "a struct", np.generic: "a NumPy scalar"}[wanted]
                got = getattr(argument, "dtype", type(argument).__name__)
                raise TypeError(f"{self.kernel.name}({parameter.name}) takes {what} of {parameter.dtype}, got {got}")
            if parameter.is_array and not argument.flags.c_contiguous:
                raise TypeError(
                    f"{self.kernel.name}({parameter.name}) takes a C-contiguous array, got strides {argument.strides}"
                )


def slot_format(parameter: Parameter) -> str:
    """Return how an argument stands in its slots of 8 bytes; a struct takes several."""
    if parameter.is_array:
        return "Q"
    if parameter.dtype.names:
        return f"{-(-parameter.dtype.itemsize // 8) * 8}s"
    return FORMATS[parameter.dtype.str[1:]]


def slot_value(argument: Any) -> Any:
    """Return an argument as `struct` packs it."""
    if isinstance(argument, DeviceArray):
        return argument.address
    return argument.tobytes() if isinstance(argument, np.ndarray) else argument or 0


def type_name(parameter: Parameter) -> str:
    """Return the type of a parameter as the compiled kernels write it."""
    if parameter.dtype.names:
        return f"{parameter.dtype.itemsize // 4:02d}s"
    return f"{parameter.dtype.str[1:]}{'*' if parameter.is_array else ''}"


def check_signature(kernel: Kernel, row: Row) -> None:
    """Raise a TypeError that names the parameter in which the registered and the compiled kernel differ."""
    letters, names = row.types.decode(), row.parameters.decode().split()
    compiled = [f"{name}:{letters[3 * i + 1 : 3 * i + 3]}{letters[3 * i].strip()}" for i, name in enumerate(names)]
    registered = [f"{p.name}:{type_name(p)}" for p in kernel.parameters]
    for place, (ours, theirs) in enumerate(zip_longest(registered, compiled, fillvalue="nothing"), start=1):
        if ours != theirs:
            raise TypeError(f"{kernel.name}: parameter {place} is registered as {ours}, but {kernel.file}.cu has {theirs}")
    if kernel.max_block != row.max_block:
        raise TypeError(
            f"{kernel.name}: registered with blocks of up to {kernel.max_block} threads, "
            f"but {kernel.file}.cu has __launch_bounds__({row.max_block})"
        )


@contextmanager
def exact_copies(arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Give each array a block of memory of its own for a launch, so that the sanitizer sees every access beyond it.

    Yields
    ------
    tuple
        The arguments, with addresses in place of arrays.
    """
    arrays = {(array.address, array.nbytes): array for array in arguments if isinstance(array, DeviceArray)}
    for (address, n_bytes), (next_address, _) in pairwise(sorted(arrays)):
        if address + n_bytes > next_address:
            raise ValueError("two arguments of a kernel overlap in part: it could not tell that one changes through the other")
    copies = {key: runtime().emulator_allocate(key[1]) for key in arrays}
    try:
        for (address, n_bytes), copy in copies.items():
            ctypes.memmove(copy, address, n_bytes)
        yield tuple(copies[a.address, a.nbytes] if isinstance(a, DeviceArray) else a for a in arguments)
        for (address, n_bytes), copy in copies.items():
            ctypes.memmove(address, copy, n_bytes)
    finally:
        for copy in copies.values():
            runtime().emulator_free(copy)


@cache
def load(text: str, file: str) -> dict[str, Row]:
    """Compile a file of kernels and load it, once.

    Parameters
    ----------
    text : str
        CUDA C without includes.
    file : str
        Its name, for messages.

    Returns
    -------
    dict of str to Row
        The compiled kernels by name.
    """
    runtime()
    library = ctypes.CDLL(str(build(text, file)))
    address = ctypes.addressof(Row.in_dll(library, "emulator_kernels"))
    rows: dict[str, Row] = {}
    while (row := Row.from_address(address)).name:
        rows[row.name.decode()] = row
        address += ctypes.sizeof(Row)
    return rows
