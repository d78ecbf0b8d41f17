"""Options that several commands have, and how they print."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import click


class DeviceName(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3 only
    """The name of a device, or its number, which may be there or not."""

    name = "device"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        """Return what the parameter ``device`` of estimators takes."""
        if re.fullmatch(r"auto|cpu|numpy|cuda(:\d+)?|\d+", str(value), re.ASCII) is None:
            self.fail(f"{value!r} is unknown; expected auto, cpu, numpy, cuda, cuda:1 or a CUDA device number", param, ctx)
        return int(value) if str(value).isdecimal() else str(value)


DEVICE = DeviceName()

device_option = click.option(
    "--device",
    type=DEVICE,
    default="auto",
    show_default=True,
    metavar="D",
    help="auto, cpu, numpy, cuda, cuda:1 or a CUDA device number.",
)
jobs_option = click.option("--jobs", type=int, metavar="N", help="Threads of the CPU; all that may be used if not given.")
no_header_option = click.option("--no-header", is_flag=True, help="CSV files have no row of names; columns have numbers.")
missing_option = click.option(
    "--missing", multiple=True, metavar="TEXT", help="A text that stands for a missing value in CSV, such as ?."
)
cost_option = click.option(
    "--cost-matrix", metavar="FILE", help="What mistakes cost: CSV with true labels down and predicted ones across, "
    "JSON {true: {predicted: cost}}, or .npy in the order of the classes."
)  # fmt: skip


def keep_json(context: click.Context, _: click.Parameter, value: bool) -> bool:
    """Keep the value of ``--json`` for `gpuboost.cli.program`, too: errors are then objects as well."""
    context.find_root().meta["json"] = value
    return value


json_option = click.option(
    "--json", "as_json", is_flag=True, callback=keep_json, help="Print one JSON object; all else to the standard error."
)
quiet_option = click.option("--quiet", is_flag=True, help="Print nothing but warnings and errors.")


@dataclass(frozen=True)
class Printer:
    """Where a command's words go: results to the standard output, remarks to the standard error."""

    as_json: bool = False
    quiet: bool = False

    def note(self, text: str) -> None:
        """Print a remark."""
        if not self.quiet:
            click.echo(text, err=True)

    def note_compiling(self) -> None:
        """Print a remark if loops have to be compiled first, when it comes to that."""
        from gpuboost.backends.cpu import compiling

        compiling.waiting[:] = [lambda: self.note("Compiling the loops for this CPU; they are kept for the next time ...")]

    def warn(self, text: str) -> None:
        """Print a warning, also if the command is to be quiet."""
        click.echo(f"Warning: {text}", err=True)

    def result(self, facts: dict[str, Any], text: str) -> None:
        """Print a result, as an object or as text."""
        if self.as_json:
            click.echo(json.dumps(plain(facts)))
        elif not self.quiet:
            click.echo(text)


def ending(reason: str, n_kept: int, n_run: int) -> str:
    """Return how a training has ended, and that early stopping has kept the first of its rounds if it has."""
    if n_kept == n_run:
        return reason
    kept = f"early stopping kept {n_kept} of {n_run}"
    return kept if reason == "early stopping" else f"{kept}; {reason}"


def plain(value: Any) -> Any:
    """Return a value as what JSON has: numbers that are not finite become null, what JSON lacks becomes text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        from gpuboost.inputs.label_values import python_labels

        return plain(python_labels(value) if value.ndim else str(value) if value.dtype.kind in "mM" else value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def grid(rows: list[list[str]], left: int = 1) -> str:
    """Return rows of text as a table: the first ``left`` columns are flush to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
