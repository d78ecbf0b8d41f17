"""Plant errors in kernels, and see which mode of the emulator catches them.

A mutant is the text of a file of kernels with a small change. It is caught if its case, a few launches whose results are known,
fails in any of the three orders: without a sanitizer, with the one for addresses, or with the one for races.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from gpuboost.backends.cuda import kernels
from tests.cuda_on_cpu import emulator, forked, sanitized
from tests.cuda_on_cpu.gpu import EmulatedGpu

MODES = ("", *sanitized.SANITIZERS)
KERNEL = re.compile(r'^extern "C" __global__ void(?: __launch_bounds__\([^)]*\))?\s+(\w+)\([^{]*\{.*?^\}\n', re.M | re.DOTALL)


@dataclass(frozen=True)
class Mutant:
    """A planted error.

    Attributes
    ----------
    file : str
        Of kernels; with the headers that it includes.
    original : str
        Stands in it once.
    replacement : str
    case : callable
        Launches kernels of a device, and raises if their results are wrong.
    source : callable
        From the name of a file to its text.
    kernels : tuple of str
        Those of the file that the case launches, so that the others need not be compiled; empty for all.
    """

    file: str
    original: str
    replacement: str
    case: Callable[[EmulatedGpu], None]
    source: Callable[[str], str] = kernels.source
    kernels: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the file with the error."""
        text = self.source(self.file)
        if text.count(self.original) != 1:
            raise ValueError(f"{self.original!r} stands {text.count(self.original)} times in {self.file}.cu")
        text = text.replace(self.original, self.replacement)
        if not self.kernels:
            return text
        return KERNEL.sub(lambda match: match[0] if match[1] in self.kernels else "\n" * match[0].count("\n"), text)

    def run(self, *, planted: bool = True) -> None:
        """Run the case in every order, with or without the error."""
        text = self.text()
        for order in emulator.ORDERS:
            self.case(
                EmulatedGpu(order, seed=1, source=lambda file: text if planted and file == self.file else self.source(file))
            )


def named(planted: Iterable[str], by_default: Collection[str]) -> list[Any]:
    """Return the names of mutants as parameters of a test, of which most are for the nights."""
    return [name if name in by_default else pytest.param(name, marks=pytest.mark.exhaustive) for name in planted]


def asked_for(request: pytest.FixtureRequest, test: str) -> list[str]:
    """Return the names of all mutants that a test is run with, so that they can be run together."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.originalname == test]
    return [item.callspec.params["name"] for item in items]


def failures(
    function: str, names: Sequence[str], expected: Mapping[str, str] | None = None
) -> dict[str, dict[str, str | None]]:
    """Run mutants in one mode after another, as long as they are not caught.

    Parameters
    ----------
    function : str
        What runs the mutant of a name, as "module:function".
    names : sequence of str
    expected : mapping of str to str, optional
        The modes that catch some of them, which come first.

    Returns
    -------
    dict of str to dict
        For each mutant why it failed, or None, by mode. Modes that cannot be used here are missing.
    """
    found: dict[str, dict[str, str | None]] = {name: {} for name in names}
    first = {name: (expected or {}).get(name, MODES[0]) for name in names}

    def run(mode: str, some: Sequence[str]) -> None:
        if some and sanitized.unavailable(mode) is None:
            for name, failure in forked.outcomes(mode, function, some).items():
                found[name][mode] = failure

    for mode in MODES:
        run(mode, [name for name in names if first[name] == mode])
    for mode in MODES:
        run(mode, [name for name in names if first[name] != mode and not any(found[name].values())])
    return found
