"""What `gpuboost.datasets.fetch_uci` knows: where the sets of the UCI repository are, and what their lines mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpuboost.datasets.poker import POKER_HANDS, label_poker_hands

ADDRESS = "https://archive.ics.uci.edu/ml/machine-learning-databases/"


@dataclass(frozen=True)
class Part:
    """The training rows, the test rows, or all rows: how many, and their fingerprint where one is known."""

    n_rows: int
    fingerprint: str | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """A set in the repository.

    Attributes
    ----------
    files : tuple of str
        Paths below `ADDRESS`. The rows of one file follow those of another.
    parts : tuple of Part
        Training rows and test rows, in this order; or all rows, if there is no original split.
    n_features : int
    dtype : dtype
        The smallest type that holds all values.
    labels : tuple of str
        How the classes are written in the files, by label.
    class_names : tuple of str
        What the classes are; empty if the labels say it.
    label_first : bool
        The label is the first column, not the last.
    n_ignored : int
        Columns before the features, the label not counted, that are not used.
    delimiter : str or None
        Between two columns; None is any white space.
    n_header : int
        Lines before the first row.
    letters : str
        If not empty: the features are letters of this alphabet, not delimited, and each becomes its place in it.
    categorical : tuple of int
        Features that are codes of categories.
    rule : callable or None
        A function of X that returns y.
    """

    files: tuple[str, ...]
    parts: tuple[Part, ...]
    n_features: int
    dtype: DTypeLike = np.uint8
    labels: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    label_first: bool = False
    n_ignored: int = 0
    delimiter: str | None = ","
    n_header: int = 0
    letters: str = ""
    categorical: tuple[int, ...] = ()
    rule: Callable[[NDArray[Any]], NDArray[Any]] | None = None


DIGITS = tuple("0123456789")
ALPHABET = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
SOYBEAN_DISEASES = (
    "diaporthe-stem-canker charcoal-rot rhizoctonia-root-rot phytophthora-rot brown-stem-rot powdery-mildew "
    "downy-mildew brown-spot bacterial-blight bacterial-pustule purple-seed-stain anthracnose "
    "phyllosticta-leaf-spot alternarialeaf-spot frog-eye-leaf-spot diaporthe-pod-&-stem-blight cyst-nematode "
    "2-4-d-injury herbicide-injury"
)

SOURCES = {
    "glass": Source(
        files=("glass/glass.data",),
        parts=(Part(214, "59ed509065e7c20c"),),
        n_features=9,
        dtype=np.float32,
        labels=("1", "2", "3", "5", "6", "7"),
        class_names=(
            "building windows, float",
            "building windows, not float",
            "vehicle windows, float",
            "containers",
            "tableware",
            "headlamps",
        ),
        n_ignored=1,
    ),
    "isolet": Source(
        files=("isolet/isolet1+2+3+4.data.Z", "isolet/isolet5.data.Z"),
        parts=(Part(6238, "39af0847ac24139b"), Part(1559, "f4cec6bb22c2e501")),
        n_features=617,
        dtype=np.float32,
        labels=tuple(str(k) for k in range(1, 27)),
        class_names=ALPHABET,
    ),
    "letter": Source(
        files=("letter-recognition/letter-recognition.data",),
        parts=(Part(16_000, "ddd61c78f298e3ba"), Part(4_000, "125b73054f6282d9")),
        n_features=16,
        labels=ALPHABET,
        label_first=True,
    ),
    "optdigits": Source(
        files=("optdigits/optdigits.tra", "optdigits/optdigits.tes"),
        parts=(Part(3823, "38d5b9afbd4c9d4e"), Part(1797, "f67d6a29d0e1f70e")),
        n_features=64,
        labels=DIGITS,
    ),
    "pendigits": Source(
        files=("pendigits/pendigits.tra", "pendigits/pendigits.tes"),
        parts=(Part(7494, "f9257ac02f2ac670"), Part(3498, "e7558a6083814867")),
        n_features=16,
        labels=DIGITS,
    ),
    "poker": Source(
        files=("poker/poker-hand-training-true.data", "poker/poker-hand-testing.data"),
        parts=(Part(25_010, "d6ac7da6b853a2e7"), Part(1_000_000)),
        n_features=10,
        labels=DIGITS,
        class_names=POKER_HANDS,
        categorical=(0, 2, 4, 6, 8),
        rule=label_poker_hands,
    ),
    "satimage": Source(
        files=("statlog/satimage/sat.trn", "statlog/satimage/sat.tst"),
        parts=(Part(4435, "5f77f9c498744afa"), Part(2000, "b5aded5aa398ed3b")),
        n_features=36,
        labels=("1", "2", "3", "4", "5", "7"),
        class_names=(
            "red soil",
            "cotton crop",
            "grey soil",
            "damp grey soil",
            "soil with vegetation stubble",
            "very damp grey soil",
        ),
        delimiter=None,
    ),
    "segmentation": Source(
        files=("image/segmentation.data", "image/segmentation.test"),
        parts=(Part(210, "dffa66df19b70efc"), Part(2100, "78f5d2577a016731")),
        n_features=19,
        dtype=np.float32,
        labels=("BRICKFACE", "SKY", "FOLIAGE", "CEMENT", "WINDOW", "PATH", "GRASS"),
        label_first=True,
        n_header=5,
    ),
    "soybean": Source(
        files=("soybean/soybean-large.data", "soybean/soybean-large.test"),
        parts=(Part(307, "4f7c6dd1f11b0c42"), Part(376, "8cb406ebfda1b423")),
        n_features=35,
        dtype=np.float32,
        labels=tuple(SOYBEAN_DISEASES.split()),
        label_first=True,
        categorical=tuple(range(35)),
    ),
    "splice": Source(
        files=("molecular-biology/splice-junction-gene-sequences/splice.data",),
        parts=(Part(3190, "158765fb65515d5f"),),
        n_features=60,
        labels=("EI", "IE", "N"),
        label_first=True,
        n_ignored=1,
        letters="AGTCDNSR",
        categorical=tuple(range(60)),
    ),
    "vehicle": Source(
        files=tuple(f"statlog/vehicle/xa{letter}.dat" for letter in "abcdefghi"),
        parts=(Part(846),),
        n_features=18,
        dtype=np.int16,
        labels=("opel", "saab", "bus", "van"),
        delimiter=None,
    ),
    "vowel": Source(
        files=("undocumented/connectionist-bench/vowel/vowel-context.data",),
        parts=(Part(528, "1f1f8b90a4fd889e"), Part(462, "20a024b913942994")),
        n_features=10,
        dtype=np.float32,
        labels=tuple(str(k) for k in range(11)),
        class_names=("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed"),
        n_ignored=3,
        delimiter=None,
    ),
}


def parse(text: str, source: Source) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Turn one file of a set into features and labels.

    Parameters
    ----------
    text : str
    source : Source

    Returns
    -------
    X : ndarray of float64, shape (n_rows, n_features)
        Where the file has a question mark, NaN.
    y : ndarray of uint8, shape (n_rows,)

    Raises
    ------
    ValueError
        If a line is not as expected.
    """
    first = source.n_ignored + source.label_first
    features = range(first, first + source.n_features)
    label_column = 0 if source.label_first else features.stop
    lines = [line for line in text.splitlines()[source.n_header :] if line.strip()]
    if not lines:
        raise ValueError("there are no rows")
    converters: dict[int | str, Callable[[str], float]] = {}
    if source.letters:
        lines = [_delimit_letters(line) for line in lines]
        converters |= dict.fromkeys(features, source.letters.index)
    elif "?" in text:
        converters |= {column: lambda text: np.nan if text.strip() == "?" else float(text) for column in features}
    converters[label_column] = lambda text: source.labels.index(text.strip(" ."))
    columns = [*features, label_column]
    table = np.loadtxt(lines, delimiter=source.delimiter, comments=None, converters=converters, usecols=columns, ndmin=2)
    return table[:, :-1], table[:, -1].astype(np.uint8)


def _delimit_letters(line: str) -> str:
    """Turn ``EI, NAME, CCAG`` into ``EI, NAME,C,C,A,G``."""
    front, letters = line.rsplit(",", 1)
    return f"{front},{','.join(letters.strip())}"
