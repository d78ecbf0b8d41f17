"""The reader that a booster draws its examples from."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from gpuboost.inputs.parameters import check_integer
from gpuboost.streams.ahead import ReadAhead
from gpuboost.streams.checks import BatchChecks
from gpuboost.streams.contract import Source, Step
from gpuboost.streams.passes import Passes


class ExampleReader:
    """Steps of a source's rows, read ahead on a thread.

    The rows of a step depend on the source's rows, ``step_rows`` and ``start`` only: a step begins at a multiple of
    ``step_rows`` in its pass, or at ``start``, and ends before the next multiple, or with the pass, or with ``max_examples``.

    Parameters
    ----------
    source : Source
    step_rows : int
        Rows of a step.
    recycle : bool
        Whether to begin again where the source ends.
    max_examples : int, optional
        How many rows to give, counted from ``start``, over all passes.
    start : tuple of int, default (0, 0)
        The pass and the row of it to begin with.
    n_ahead : int, default 2
        How many steps may be ready, or begun, before they are asked for.

    Attributes
    ----------
    ended : str or None
        Why there are no more steps, once the last one was given.

    Raises
    ------
    ValueError
        If the source cannot be repeated as asked, or a parameter is out of its range; nothing has been read by then.

    Examples
    --------
    >>> from gpuboost.streams import ArraySource, ExampleReader
    >>> with ExampleReader(ArraySource([[1.0], [2.0], [3.0]], [0, 1, 0]), step_rows=2, recycle=False) as reader:
    ...     [step.y.tolist() for step in reader]
    [[0, 1], [0]]
    """

    def __init__(
        self,
        source: Source,
        step_rows: int,
        recycle: bool,
        max_examples: int | None = None,
        start: tuple[int, int] = (0, 0),
        n_ahead: int = 2,
    ) -> None:
        pass_number, row = check_integer("the pass of start", start[0], 0), check_integer("the row of start", start[1], 0)
        left = None if max_examples is None else check_integer("max_examples", max_examples, 0)
        if recycle and not source.repeatable:
            raise ValueError(f"a {type(source).__name__} gives its rows once: it cannot be recycled, use recycle=False")
        if source.n_rows is not None and row > source.n_rows:
            raise ValueError(f"start must be a row of the source, which has {source.n_rows}, got row {row}")
        checks = BatchChecks(source.n_features, source.feature_names)
        self._passes = Passes(source, check_integer("step_rows", step_rows, 1), recycle, left, checks)
        self._ahead = ReadAhead(self._passes.steps(pass_number, row), check_integer("n_ahead", n_ahead, 1))
        self.ended: str | None = None

    @property
    def n_features(self) -> int | None:
        """Number of columns; None if the source does not say, and nothing has been read."""
        return self._passes.checks.n_features

    @property
    def feature_names(self) -> list[Any] | None:
        """Names of the columns; None if there are none, or as `n_features`."""
        return self._passes.checks.feature_names

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Step:
        """Return the next step; a `StreamError` if the source fails before its end."""
        step = self._ahead.take()
        if step is None:
            self.ended = self._passes.ended
            raise StopIteration
        return step

    def close(self) -> None:
        """End the thread, whatever it is doing. May be called again."""
        self._ahead.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
