"""Which columns of a table are features: of a training table, and of any other for a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpuboost.cli.reading.tables import N_SHOWN, Table, closest


def training_columns(table: Table, target: str | None, weight: str | None, dropped: Sequence[str]) -> list[int]:
    """Return the positions of the features: all columns but the target, the weight and those that are dropped."""
    out = {table.index(key, "--drop"): "--drop" for key in dropped if key not in table.arrays}
    for key, what in ((target, "--target"), (weight, "--weight")):
        if key is not None and key not in table.arrays:
            index = table.index(key, what)
            if index in out:
                raise ValueError(f"{what} {key!r} and {out[index]} name the same column of {table.path}")
            out[index] = what
    return [index for index in range(table.n_columns) if index not in out]


@dataclass(frozen=True)
class Layout:
    """Which columns of its training table a model has been made of.

    Attributes
    ----------
    names : list of str or None
        The features' names; None if they have none.
    positions : list of int
        Their positions in the training table.
    n_columns : int
        The columns of the training table.
    others : list of str
        Names of the columns that it has, and that are no features: the target, the weight, what was dropped.
    """

    names: list[str] | None
    positions: list[int]
    n_columns: int
    others: list[str]

    @property
    def left_out(self) -> list[str] | list[int]:
        """The columns of the training table that are no features: their names, or their positions if they have none."""
        return self.others if self.names is not None else sorted(set(range(self.n_columns)) - set(self.positions))

    def find(self, table: Table, note: Callable[[str], None], target: str | None = None) -> list[int]:
        """Return the positions of the features in another table: by name, or in their order if one of the two has no names.

        ``target`` is a column or array of the table that is no feature.

        Raises
        ------
        ValueError
            If one is missing, or the number of columns is another.
        """
        if self.names is not None and table.names is not None:
            return self._by_name(table, note, target)
        n_wanted = len(self.positions)
        beside = [] if target is None or target in table.arrays else [table.index(target, "--target")]
        rest = [
            i for i in range(table.n_columns) if i not in beside and (table.names is None or table.names[i] not in self.others)
        ]
        if len(rest) == n_wanted:
            if (self.names is None) != (table.names is None):
                nameless = "the model" if self.names is None else table.path
                note(f"Note: {nameless} has no column names; the columns of {table.path} are taken in their order")
            return rest
        if table.n_columns == self.n_columns and table.names is None:
            return self.positions
        also = f" (of {self.n_columns} columns)" if self.n_columns != n_wanted else ""
        raise ValueError(f"{table.path} has {len(rest)} columns, but the model was trained on {n_wanted} features{also}")

    def _by_name(self, table: Table, note: Callable[[str], None], target: str | None) -> list[int]:
        assert self.names is not None
        assert table.names is not None
        at = {name: i for i, name in enumerate(table.names)}
        missing = [name for name in self.names if name not in at]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            close = closest(missing[0], [name for name in table.names if name not in self.names])
            hint = f"; is it {close!r} there?" if close else ""
            raise ValueError(f"{table.path} lacks the column {missing[0]!r}{more}, which the model was trained on{hint}")
        known = {*self.names, *self.others, target}
        extra = [name for name in table.names if name not in known]
        if extra:
            shown = ", ".join(map(repr, extra[:N_SHOWN])) + (", ..." if len(extra) > N_SHOWN else "")
            note(f"Note: {table.path} has columns that the model does not know; they are ignored: {shown}")
        return [at[name] for name in self.names]


def libsvm_width(table: Table, width: int) -> Table:
    """Return a table of a libsvm file with ``width`` columns: what a file does not mention is zero."""
    if table.matrix is None or table.n_columns == width:
        return table
    matrix = np.zeros((table.n_rows, width))
    shared = min(width, table.n_columns)
    matrix[:, :shared] = table.matrix[:, :shared]
    return Table(table.path, None, matrix=matrix, arrays=table.arrays)
