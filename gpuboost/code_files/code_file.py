"""`CodeFile`: a training set that stays on the disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.binning import MAX_VALUE_BINS, BinMapper, StoredMatrix
from gpuboost.binning.codes import N_CODES
from gpuboost.binning.stored import WIDTHS
from gpuboost.boosters.base import Problem
from gpuboost.code_files.container import Container, refuse
from gpuboost.code_files.cuts import ChosenCuts, GivenCuts
from gpuboost.code_files.row_files import ENOUGH_DISTINCT
from gpuboost.code_files.writer import BINS, CODES, COUNTS, TARGET, WEIGHTS, write_code_file
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.parameters import check_bool, check_integer
from gpuboost.inputs.samples import Sample
from gpuboost.peers.rows import RowOrder
from gpuboost.persistence.checks import check_bins
from gpuboost.persistence.values import decode, decode_labels
from gpuboost.streams.dispatch import as_source


class CodeFile:
    """A training set in a file: the codes of the columns, one byte a value, labels and weights.

    It is written once, from rows that need not fit in memory, and `fit` of every booster of trees but FilterBoost takes it in
    place of X, y and sample_weight: the model is the one that `fit` makes of the rows in memory, byte for byte. On the CPU
    the codes stay in the file: a tree reads them from front to back, one time more than its leaves are deep. On a CUDA device
    they must fit in its memory, and the reference ("numpy") takes them into memory.

    What is in memory is what a booster keeps of each row, whatever the number of columns. As measured, at most so many bytes a
    row with 2, 7 and 10 classes, and 8 more where rows have weights:

    =================== ==== ==== =====
    classes               2    7    10
    =================== ==== ==== =====
    AdaBoost.MH          105  224   311
    SAMME, GAMBLE        101  154   208
    REBEL                112  226   305
    MART, LogitBoost     129  360   483
    ABC-Boost             --  707  1356
    =================== ==== ==== =====

    Beside it there are some megabytes of codes, and the histograms of a tree.

    Parameters
    ----------
    path : str or path
        Of a file that `write` has written. Its header is read now; all of it is checked when it is trained on.

    Attributes
    ----------
    path : str
    n_rows, n_features : int
        Rows without a weight are not in the file.
    feature_names : list or None
    classes : ndarray, shape (n_classes,)
        The sorted labels.
    target : str or None
        The column of the labels, where they came from a column with a name.
    max_bins : int
        What the cuts were chosen with.
    bin_mapper : BinMapper
        The cuts.

    Raises
    ------
    CodeFileError
        If it is no code file, damaged, cut short, or of a newer gpuboost.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import gpuboost, tempfile
    >>> from sklearn.datasets import load_iris
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = gpuboost.CodeFile.write(load_iris(return_X_y=True), folder.name + "/iris.codes")
    >>> file  # doctest: +ELLIPSIS
    <CodeFile '...iris.codes': 150 rows, 4 features, 3 classes>
    >>> model = gpuboost.fit(file, n_estimators=20)

    Rows to watch have the cuts of the training:

    >>> watched = gpuboost.CodeFile.write(load_iris(return_X_y=True), folder.name + "/watched.codes", cuts_of=file)
    >>> model = gpuboost.fit(file, eval_set=watched, early_stopping=True)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._container = container = Container.read(path)
        self.path = container.path
        try:
            self._read_content(container.content)
        except (ValueError, TypeError, LookupError) as error:
            refuse(self.path, f"was changed: {error}")

    def _read_content(self, content: dict[str, Any]) -> None:
        self.classes: NDArray[Any] = decode_labels(content["classes"])
        self.feature_names: list[Any] | None = decode(content["feature_names"], {})
        self.target: str | None = content.get("target")
        if not (self.target is None or isinstance(self.target, str)):
            raise TypeError("its target is no text")
        self.max_bins = check_integer("max_bins", content["max_bins"], 2, MAX_VALUE_BINS)
        self._n_distinct = check_integer("n_distinct", content["n_distinct"], 1, ENOUGH_DISTINCT)
        self._is_weighted = check_bool("weighted", content["weighted"])
        places = self._container.places
        cuts = {name: self._container.array(name, dtype, places[name][1]) for name, dtype in BINS.items()}
        self.bin_mapper = BinMapper(**cuts)
        check_bins(self.bin_mapper)
        if self.bin_mapper.digest() != content["cuts"]:
            raise ValueError("its cuts do not match its header")
        dtype, (n_blocks, self.n_rows, width), self._offset = places[CODES]
        self._shape, self.n_features = (n_blocks, self.n_rows, width), self.bin_mapper.n_features
        if dtype != np.uint8 or width not in WIDTHS or n_blocks != -(-self.n_features // width) or self.n_rows < 1:
            raise ValueError("its codes do not fit its columns")

    @classmethod
    def write(
        cls,
        source: Any,
        path: str | os.PathLike[str],
        *,
        target: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        shuffle: int | None = None,
        max_bins: int = MAX_VALUE_BINS,
        cuts_of: CodeFile | None = None,
        n_jobs: int | None = None,
        memory_mb: int = 256,
    ) -> Self:
        """Write a code file.

        The source is read once. Its values are kept meanwhile in a file without a name in the folder of ``path``, which takes
        4 or 8 bytes a value (1 or 2 if all are small integers), and is gone at the end, also if the process is killed. So are
        labels and weights. What is in memory does not grow with the number of rows: columns that are too long for it are read
        several times, some rows at a time, until their cuts are known.

        Parameters
        ----------
        source : Any
            Paths of Parquet, Feather or CSV files, a tuple (X, y) or (X, y, weight) of arrays or memory maps, an iterable or a
            generator of batches, Dask: all that `gpuboost.streams.as_source` takes and that ends. One label a row.
        path : str or path
            Written whole or not at all: an error or a kill in the middle leaves what was there before.
        target, weight, columns, shuffle
            See `gpuboost.streams.as_source`. They name columns of files; ``shuffle`` is the seed of another order.
        max_bins : int, default 255
            Bins of a feature, as of the estimator that shall be trained.
        cuts_of : CodeFile, optional
            A training set whose cuts, and ``max_bins``, this file is to have, so that it can be in the `eval_set` of a training
            on that one. It must have the same columns.
        n_jobs : int or None
            Threads.
        memory_mb : int, default 256
            So many megabytes (2**20 bytes) may be taken to choose the cuts, beside what the source needs. The file does not
            depend on it.

        Returns
        -------
        CodeFile

        Raises
        ------
        StreamError
            If the source fails.
        ValueError, TypeError
            If labels, weights or columns are not usable.
        OSError
            If the file cannot be written.
        """
        max_bins = check_integer("max_bins", max_bins, 2, MAX_VALUE_BINS)
        memory = check_integer("memory_mb", memory_mb, 1) << 20
        if cuts_of is not None and not isinstance(cuts_of, CodeFile):
            raise TypeError(f"cuts_of must be a CodeFile, got a {type(cuts_of).__name__}")
        if cuts_of is not None and max_bins not in (MAX_VALUE_BINS, cuts_of.max_bins):
            raise ValueError(f"max_bins must be {cuts_of.max_bins}, as of {cuts_of.path!r}, or not be given, got {max_bins}")
        options = {"target": target, "weight": weight, "columns": columns, "shuffle": shuffle}
        cuts = ChosenCuts(max_bins, memory) if cuts_of is None else cuts_of.given_cuts()
        write_code_file(as_source(source, **options), path, cuts, n_jobs, target)  # type: ignore[arg-type]
        return cls(path)

    def given_cuts(self) -> GivenCuts:
        """Return the cuts as those of another file that is to be written."""
        return GivenCuts(self.bin_mapper, self.max_bins, self.feature_names, self.path)

    @property
    def sha256(self) -> str:
        """The checksum of the file, as hexadecimal digits."""
        return self._container.sha256

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.n_rows, self.n_features

    def __repr__(self) -> str:
        sizes = f"{self.n_rows} rows, {self.n_features} features, {len(self.classes)} classes"
        return f"<{type(self).__name__} {self.path!r}: {sizes}>"

    def __array__(self, *arguments: Any, **options: Any) -> NDArray[Any]:
        raise TypeError(f"{self!r} has codes and no values: only `fit` of boosters of trees, without FilterBoost, takes it")

    def check(self) -> None:
        """Read the whole file, compare it with its checksum, and see that it holds what it may. `fit` does so.

        Raises
        ------
        CodeFileError
            If it is damaged.
        """
        self._container.check()
        matrix = self.matrix()
        highest = np.zeros((matrix.shape[0], matrix.shape[2]), np.uint8)
        for _, codes in matrix.chunks():
            np.maximum(highest, codes.max(axis=1), out=highest)
        n_bins, counts = np.ones(highest.size, np.int32), matrix.code_counts
        n_bins[: self.n_features] = matrix.n_bins
        is_above = np.arange(N_CODES) >= matrix.n_bins[:, None]
        if (highest.ravel() >= n_bins).any() or ((counts != 0) & is_above).any() or (counts.sum(axis=1) != self.n_rows).any():
            refuse(self.path, "was changed: it has codes that its cuts do not give")

    def sample(self) -> tuple[StoredSample, LabelEncoder]:
        """Return the rows as what estimators train on, after a check of the file."""
        self.check()
        read, n_classes = self._container.array, len(self.classes)
        target = read(TARGET, "<i4", (self.n_rows,))
        weights = read(WEIGHTS, "<f8", (self.n_rows,)) if self._is_weighted else np.broadcast_to(1.0, self.n_rows)
        if not (target.min() >= 0 and target.max() < n_classes and (weights > 0).all() and (weights <= 1).all()):
            refuse(self.path, "was changed: it has labels or weights that cannot be")
        order = RowOrder.alone(self.n_rows)
        return StoredSample(self, np.zeros(0, np.intp), target, weights, order), LabelEncoder(self.classes, False)

    def watched_sample(self, encoder: LabelEncoder, name: str) -> StoredSample:
        """Return the rows as what estimators watch, with the classes of their training; ``name`` is for messages.

        Raises
        ------
        ValueError
            If there is a label that is no class of the training.
        """
        number = encoder.encode(self.classes, f"y of {name}")
        sample, _ = self.sample()
        return replace(sample, target=number[sample.target])

    def matrix(self) -> StoredMatrix:
        """Return the codes, which have the file open."""
        counts, mapper = self._container.array(COUNTS, "<i8", (self.n_features, N_CODES)), self.bin_mapper
        return StoredMatrix(self._container.open(), self._offset, self._shape, mapper.n_bins, mapper.has_missing, counts)


@dataclass(frozen=True)
class StoredSample(Sample):
    """The rows of a code file, all of them: X is the file, and ``rows`` are not listed."""

    def subset(self, chosen: NDArray[np.intp]) -> Sample:
        if len(chosen) == len(self.target):
            return self
        raise ValueError(
            f"the cuts of {self.X.path!r} were chosen on all of its rows, so none can be left out of a training: "
            "early_stopping needs an eval_set, and a cost matrix costs for every class"
        )

    def n_distinct(self, enough: int) -> int:
        if enough > ENOUGH_DISTINCT:
            raise ValueError(f"code files tell up to {ENOUGH_DISTINCT} distinct rows, asked for {enough}")
        return min(int(self.X._n_distinct), enough)

    def fit_bins(self, max_bins: int, n_threads: int) -> BinMapper:
        if max_bins != self.X.max_bins:
            raise ValueError(f"max_bins must be {self.X.max_bins}, with which {self.X.path!r} was written, got {max_bins}")
        mapper: BinMapper = self.X.bin_mapper
        return mapper

    def problem(self, backend: Backend, mapper: BinMapper, encoder: LabelEncoder) -> tuple[Problem, bool]:
        if mapper.digest() != self.X.bin_mapper.digest():
            raise ValueError(
                f"{self.X.path!r} has other cuts than the model that is trained; write it with cuts_of, the training file"
            )
        data = backend.load(self.X.matrix())
        return Problem(backend, data, *self.labels(encoder), self.order), bool(backend.usable(data).any())
