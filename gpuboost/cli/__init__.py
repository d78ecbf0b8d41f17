"""The command line: ``gpuboost`` and ``python -m gpuboost``. One command a file, which loads what it needs when it runs."""

from __future__ import annotations

import click

from gpuboost.cli.commands.algorithms import algorithms
from gpuboost.cli.commands.bench import bench
from gpuboost.cli.commands.demo import demo
from gpuboost.cli.commands.doctor import doctor
from gpuboost.cli.commands.encode import encode
from gpuboost.cli.commands.evaluate import evaluate
from gpuboost.cli.commands.fit import fit
from gpuboost.cli.commands.inspect import inspect
from gpuboost.cli.commands.plot import plot
from gpuboost.cli.commands.predict import predict
from gpuboost.cli.program import Program
from gpuboost.registry import __version__

__all__ = ["main"]


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpuboost")
def main() -> None:
    """Multi-class boosting: one model, bit for bit, on every backend.

    Data are tables: CSV and TSV (also gzipped), Parquet, Feather, .npz, .npy and libsvm files, or - for CSV from the standard
    input. The exit status is 0, 1 for an error, 2 for wrong usage and 130 after Ctrl-C (and SIGTERM).
    """


for command in (fit, predict, evaluate, encode, inspect, plot, algorithms, bench, demo, doctor):
    main.add_command(command)
