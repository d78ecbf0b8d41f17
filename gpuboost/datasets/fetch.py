"""Data sets from their original place, or from files that somebody has already."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuboost.datasets.dataset import Dataset, fingerprint, read_dataset
from gpuboost.datasets.uci import ADDRESS, DIGITS, SOURCES, Part, Source, parse
from gpuboost.datasets.unix_compress import decompress

__all__ = ["fetch_covtype", "fetch_mnist", "fetch_uci"]

DataDir = str | os.PathLike[str] | None

MNIST = (Part(60_000, "386a0fff07efe9ae"), Part(10_000, "292a2c8e9008782f"))
COVTYPE = {
    "uci": (Part(15_120, "47d0b4b2e1c47f24"), Part(565_892, "1ec68a90e46e3788")),
    "abc": (Part(290_506, "3e197ace47017a5a"), Part(290_506, "34aee6c1e900e872")),
}
COVER_TYPES = ("Spruce/Fir", "Lodgepole Pine", "Ponderosa Pine", "Cottonwood/Willow", "Aspen", "Douglas-fir", "Krummholz")
ABC_ROWS = (
    "https://raw.githubusercontent.com/pltrees/abcboost/d10c9bda5c782fa7aac7b48689099a8694438235/data/covtype.train.index.csv"
)


def fetch_mnist(*, data_dir: DataDir = None) -> Dataset:
    """Return MNIST: 60,000 handwritten digits to train on and 10,000 to test, 28 x 28 pixels, 10 classes.

    Parameters
    ----------
    data_dir : str, path-like or None
        Directory with ``mnist.npz``, a file for `read_dataset` with ``X_train, y_train, X_test, y_test``. None
        downloads ``mnist_784``, version 1, from OpenML by `sklearn.datasets.fetch_openml`, which keeps it in
        scikit-learn's data directory (with pandas it is read faster).

    Returns
    -------
    Dataset
        X of uint8, shape (70000, 784).

    Raises
    ------
    OSError
        If it cannot be downloaded, or there is no such file.
    ValueError
        If what is found is something else.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner (1998), Gradient-based learning applied to document recognition, Proceedings of
    the IEEE 86(11), 2278-2324.
    """
    if data_dir is not None:
        found, where = _read("mnist", data_dir)
    else:
        where = "OpenML, https://www.openml.org/d/554"
        with _downloading("mnist", where, "X_train, y_train, X_test, y_test"):
            from sklearn.datasets import fetch_openml

            parser = "pandas" if find_spec("pandas") else "liac-arff"
            bunch = fetch_openml("mnist_784", version=1, as_frame=False, parser=parser)
        found = Dataset("mnist", bunch.data, np.asarray(bunch.target, np.uint8))
    return _checked(found, where, Source(files=(), parts=MNIST, n_features=784, labels=DIGITS))


def fetch_covtype(*, data_dir: DataDir = None, split: Literal["uci", "abc"] = "uci") -> Dataset:
    """Return Covertype: 581,012 patches of forest, 10 measurements, 44 indicators, 7 classes.

    Parameters
    ----------
    data_dir : str, path-like or None
        Directory with ``covtype.npz``, a file for `read_dataset` with ``X, y`` in the original order and, for
        ``split="abc"``, ``abc_train_mask``: a bit for each row, packed by `numpy.packbits`, which is 1 for training
        rows. None downloads the set by `sklearn.datasets.fetch_covtype`, which keeps it in scikit-learn's data
        directory, and the training rows of the split from the repository of abcboost.
    split : {"uci", "abc"}
        Which rows are for training: the first 15,120, 2,160 of each class, as the authors of the set have it (the
        last 3,780 of them to choose parameters), or the half of all rows that the experiments with ABC-Boost use.

    Returns
    -------
    Dataset
        X of int16, shape (581012, 54), in column order; training rows first.

    Raises
    ------
    OSError
        If it cannot be downloaded, or there is no such file.
    ValueError
        If split is something else, or what is found.

    References
    ----------
    Blackard and Dean (1999), Comparative accuracies of artificial neural networks and discriminant analysis in
    predicting forest cover types from cartographic variables, Computers and Electronics in Agriculture 24(3), 131-151.
    Li and Zhao (2022), Fast ABC-Boost: a unified framework for selecting the base class in multi-class classification.
    """
    if split not in COVTYPE:
        raise ValueError(f"split must be 'uci' or 'abc', got {split!r}")
    if data_dir is not None:
        found, where = _read("covtype", data_dir)
        X, y = found.X, found.y
    else:
        where = "figshare, by sklearn.datasets.fetch_covtype"
        with _downloading("covtype", where, "X, y"):
            from sklearn.datasets import fetch_covtype as download

            bunch = download()
        X, y = bunch.data, bunch.target - 1
    if split == "abc":
        mask = _abc_mask(len(y)) if data_dir is None else _abc_mask_of_file(Path(where), len(y))
        order = np.argsort(~mask, kind="stable")
        X, y = X[order], y[order]
    found = Dataset("covtype", np.asarray(X, np.int16, order="F"), y)
    return _checked(found, where, Source(files=(), parts=COVTYPE[split], n_features=54, dtype=np.int16, labels=COVER_TYPES))


def fetch_uci(name: str, *, data_dir: DataDir = None) -> Dataset:
    """Return a set of the UCI Machine Learning Repository.

    ============ =========== ======== ======= ==============================================================
    name         rows        features classes
    ============ =========== ======== ======= ==============================================================
    glass        214         9        6
    isolet       6238+1559   617      26      takes some seconds each time, as it is compressed
    letter       16000+4000  16       26
    optdigits    3823+1797   64       10
    pendigits    7494+3498   16       10
    poker        25010+10^6  10       10      suits are categories
    satimage     4435+2000   36       6
    segmentation 210+2100    19       7       column 2 is constant
    soybean      307+376     35       19      categories, some missing; the numbers are those of the repository
    splice       3190        60       3       categories: places in AGTCDNSR; no original split
    vehicle      846         18       4       no original split
    vowel        528+462     10       11      no speaker is in both parts
    ============ =========== ======== ======= ==============================================================

    Parameters
    ----------
    name : str
    data_dir : str, path-like or None
        Directory with ``NAME.npz``, a file for `read_dataset` with ``X_train, y_train, X_test, y_test``, or with
        ``X, y`` for a set without an original split. None downloads the set from the repository by
        `sklearn.datasets.fetch_file`, which keeps it in scikit-learn's data directory.

    Returns
    -------
    Dataset
        X of uint8, int16 or float32. What was verified: of vehicle and of the test rows of poker the number of rows and
        columns and the names of the classes, of poker also that the labels follow from the rules, and of all others
        that the rows of either part are the original ones. Their order may differ between downloads and files.

    Raises
    ------
    OSError
        If it cannot be downloaded, or there is no such file.
    ValueError
        If name is none of these, or what is found is something else.

    References
    ----------
    Kelly, Longjohn and Nottingham, The UCI Machine Learning Repository, https://archive.ics.uci.edu.
    """
    if name not in SOURCES:
        raise ValueError(f"name must be one of {', '.join(SOURCES)}; got {name!r}")
    source = SOURCES[name]
    found, where = _read(name, data_dir) if data_dir is not None else _download_uci(name, source)
    return _checked(found, where, source)


def _read(name: str, data_dir: str | os.PathLike[str]) -> tuple[Dataset, str]:
    """Read ``NAME.npz`` in a directory; return also where that is."""
    path = Path(data_dir) / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"there is no {name}.npz in {data_dir}")
    return read_dataset(path), str(path)


@contextlib.contextmanager
def _downloading(name: str, place: str, keys: str) -> Iterator[None]:
    """Say of a download that fails what was tried and what else can be done."""
    try:
        yield
    except (OSError, HTTPException, ValueError) as error:  # OpenML's own errors are ValueErrors
        raise OSError(
            f"{name} cannot be downloaded from {place} ({type(error).__name__}: {error}); "
            f"if you have it, put {keys} into DIR/{name}.npz and pass data_dir=DIR"
        ) from error


def _download_uci(name: str, source: Source) -> tuple[Dataset, str]:
    """Download and read the files of a set; return also where they are now."""
    from sklearn.datasets import fetch_file

    keys = "X, y" if len(source.parts) == 1 else "X_train, y_train, X_test, y_test"
    rows, paths = [], []
    for file in source.files:
        with _downloading(name, ADDRESS + file, keys):
            path = Path(fetch_file(ADDRESS + file))
        try:
            content = path.read_bytes()
            text = (decompress(content) if file.endswith(".Z") else content).decode("latin-1")
            rows.append(parse(text, source))
        except ValueError as error:
            raise ValueError(f"{path}, downloaded from {ADDRESS + file}, is not what is expected: {error}") from error
        paths.append(str(path))
    X, y = (np.concatenate(arrays) for arrays in zip(*rows, strict=True))
    return Dataset(name, X, y), ", ".join(paths)


def _abc_mask(n_rows: int) -> NDArray[np.bool_]:
    """Download which rows of Covertype the experiments with ABC-Boost train on: numbers from 1, between commas."""
    with _downloading("covtype", ABC_ROWS, "X, y, abc_train_mask"):
        from sklearn.datasets import fetch_file

        path = fetch_file(ABC_ROWS)
    mask = np.zeros(n_rows, np.bool_)
    try:
        mask[np.array(Path(path).read_text().split(","), np.int64) - 1] = True
    except (ValueError, IndexError) as error:
        raise ValueError(f"{path}, downloaded from {ABC_ROWS}, is not what is expected: {error}") from error
    return mask


def _abc_mask_of_file(path: Path, n_rows: int) -> NDArray[np.bool_]:
    """Read the same from a file."""
    with np.load(path) as z:
        if "abc_train_mask" not in z:
            raise ValueError(f"{path} must hold abc_train_mask for split='abc'; it holds {', '.join(sorted(z.files))}")
        return np.unpackbits(z["abc_train_mask"], count=n_rows).astype(np.bool_)


def _checked(found: Dataset, where: str, source: Source) -> Dataset:
    """Return the set in its type and with its split, if it is the one that is expected."""
    parts, class_names, rule = source.parts, source.class_names or source.labels, source.rule

    def wrong(reason: str) -> ValueError:
        return ValueError(f"{where} is not {found.name} as it is known: {reason}")

    shape = (sum(part.n_rows for part in parts), source.n_features)
    if found.X.shape != shape or found.y.shape != shape[:1]:
        raise wrong(f"X and y must have the shapes {shape} and {shape[:1]}, got {found.X.shape} and {found.y.shape}")
    with np.errstate(invalid="ignore"):  # a missing value where there should be none is noticed below
        X, y = found.X.astype(source.dtype), found.y.astype(np.uint8)
    X += X.dtype.type(0)  # -0.0 becomes 0.0
    begin = 0
    for part, title in zip(parts, ("training rows", "test rows") if len(parts) == 2 else ("rows",), strict=True):
        rows = slice(begin, begin + part.n_rows)
        if part.fingerprint not in (None, fingerprint(X[rows], y[rows])):
            raise wrong(f"the {title} differ")
        begin = rows.stop
    if y.max() >= len(class_names):
        raise wrong(f"labels must be below {len(class_names)}, got {y.max()}")
    if rule is not None and not np.array_equal(rule(X), y):
        raise wrong("labels do not follow from the rows")
    n_train = parts[0].n_rows if len(parts) == 2 else None
    return Dataset(found.name, X, y, n_train, class_names, source.categorical)
