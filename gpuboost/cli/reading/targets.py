"""The labels of a table."""

from __future__ import annotations

from typing import Any

import click
from numpy.typing import NDArray

from gpuboost.cli.reading.array_files import read_npy
from gpuboost.cli.reading.tables import N_SHOWN, Table


def read_labels(table: Table, target: str | None, target_file: str | None) -> NDArray[Any]:
    """Return the labels of a table, shape (n_rows,): from a column, an array beside the columns, or a file of their own.

    Raises
    ------
    click.UsageError
        If nothing says where they are.
    ValueError
        If they are not there, or one is missing.
    """
    if target_file is not None:
        table.arrays[target_file] = read_npy(target_file)
        if table.arrays[target_file].ndim != 1:
            shape = table.arrays[target_file].shape
            raise ValueError(f"{target_file} must hold one label a row, shape ({table.n_rows},), got the shape {shape}")
        n_labels = len(table.arrays[target_file])
        if n_labels != table.n_rows:
            raise ValueError(f"{target_file} has {n_labels} labels for the {table.n_rows} rows of {table.path}")
        return table.labels(target_file)
    key = target_key(table, target)
    return table.labels(key)


def target_key(table: Table, target: str | None) -> str:
    """Return the column or array of the labels: what is asked for, else the array "y".

    Raises
    ------
    click.UsageError
        If it is not asked for, and there is no such array.
    """
    if target is not None:
        return target
    if "y" in table.arrays:
        return "y"
    names = f": one of {', '.join(table.names[:N_SHOWN])}{', ...' if len(table.names) > N_SHOWN else ''}" if table.names else ""
    raise click.UsageError(f"{table.path} needs --target COL, the column of the labels{names} (or its number)")
