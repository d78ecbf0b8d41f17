"""``gpuboost encode``."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from gpuboost.cli import options
from gpuboost.cli.interrupts import interrupt_on
from gpuboost.cli.program import Command, Interrupted


@click.command(cls=Command)
@click.argument("data", nargs=-1, required=True)
@click.option("--target", metavar="COL", required=True, help="The column of the labels: its name, or its number from 0.")
@click.option("--out", required=True, metavar="FILE", help="The code file to write; one that is there is replaced at the end.")
@click.option("--weight", metavar="COL", help="A column of row weights.")
@click.option("--drop", multiple=True, metavar="COL", help="A column to leave out; repeatable.")
@click.option("--shuffle", type=click.IntRange(min=0), metavar="SEED", help="Another order of the rows.")
@click.option("--max-bins", type=click.IntRange(2, 255), metavar="N", help="Bins of a column, 255 at most and if not given.")
@click.option("--cuts-of", metavar="FILE", help="A code file whose cuts and labels this one gets, to be its --valid.")
@click.option("--memory-mb", type=click.IntRange(min=1), default=256, show_default=True, help="Memory to choose cuts in.")
@options.jobs_option
@options.missing_option
@options.json_option
@options.quiet_option
def encode(
    data: tuple[str, ...],
    target: str,
    out: str,
    weight: str | None,
    drop: tuple[str, ...],
    shuffle: int | None,
    max_bins: int | None,
    cuts_of: str | None,
    memory_mb: int,
    jobs: int | None,
    missing: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the table DATA, which may be larger than memory, as a code file, on which fit trains.

    DATA are Parquet, Feather or CSV files, or folders of them. They are read piece by piece, twice the labels. While it works,
    the folder of FILE holds the values once more.
    """
    from gpuboost.cli.outputs import check_output
    from gpuboost.cli.reading.file_streams import FileStream
    from gpuboost.cli.reading.tables import Reading
    from gpuboost.cli.training_streams import check_place
    from gpuboost.code_files import CodeFile
    from gpuboost.code_files.cuts import ChosenCuts
    from gpuboost.code_files.writer import write_code_file

    interrupt_on("SIGTERM", "SIGHUP")
    printer = options.Printer(as_json, quiet)
    printer.note_compiling()
    if cuts_of is not None and max_bins is not None:
        raise click.UsageError("--max-bins and --cuts-of: the bins are those of the other file")
    check_place(out, data)
    check_output(out, (), (*data, cuts_of))
    other = None if cuts_of is None else CodeFile(cuts_of)
    begun = time.perf_counter()
    stream = FileStream(data, Reading(True, missing, printer.note), target, weight, drop, shuffle)
    cuts: Any = ChosenCuts(max_bins or 255, memory_mb << 20)
    if other is None:
        stream.find_all_classes()
    else:
        cuts, stream.classes = other.given_cuts(), other.classes
        stream.remedy = f"they are those of --cuts-of {cuts_of}: remove such rows"
    try:
        write_code_file(stream, out, cuts, jobs, stream.target)
    except KeyboardInterrupt:
        raise Interrupted("nothing was written") from None
    printer.result(*described(CodeFile(out), out, time.perf_counter() - begun))


def described(file: Any, out: str, seconds: float) -> tuple[dict[str, Any], str]:
    """Return what was written, as facts and as text."""
    facts = {
        "out": out,
        "rows": file.n_rows,
        "features": file.n_features,
        "classes": len(file.classes),
        "max_bins": file.max_bins,
        "bytes": os.path.getsize(out),
        "seconds": seconds,
        "sha256": file.sha256,
    }
    sizes = f"{file.n_rows} rows, {file.n_features} features, {len(file.classes)} classes"
    return facts, f"{out}: {sizes}, {facts['bytes'] / 2**20:.1f} MiB in {seconds:.1f} s"
