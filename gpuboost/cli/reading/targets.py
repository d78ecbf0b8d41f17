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
        labels = table.arrays[target_file] = read_npy(target_file)
        if labels.ndim != 1:
            raise ValueError(f"{target_file} must hold one label a row, shape ({table.n_rows},), got the shape {labels.shape}")
        if len(labels) != table.n_rows:
            raise ValueError(f"{target_file} has {len(labels)} labels for the {table.n_rows} rows of {table.path}")
        return table.labels(target_file)
    return table.labels(target_key(table, target))


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
