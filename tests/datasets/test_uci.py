from __future__ import annotations

import numpy as np
import pytest

from gpuboost.datasets.poker import label_poker_hands
from gpuboost.datasets.uci import ADDRESS, SOURCES, parse

NAN = float("nan")

# Lines as they stand in the repository's files, shortened where there are many columns, and what they mean.
FIRST_LINES = {
    "glass": (
        "1,1.52101,13.64,4.49,1.10,71.78,0.06,8.75,0.00,0.00,1\n",
        [1.52101, 13.64, 4.49, 1.1, 71.78, 0.06, 8.75, 0, 0],
        0,
    ),
    "letter": ("T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\n", [2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8], 19),
    "pendigits": (
        " 47,100, 27, 81, 57, 37, 26,  0,  0, 23, 56, 53,100, 90, 40, 98, 8\n",
        [47, 100, 27, 81, 57, 37, 26, 0, 0, 23, 56, 53, 100, 90, 40, 98],
        8,
    ),
    "poker": ("1,10,1,11,1,13,1,12,1,1,9\r\n", [1, 10, 1, 11, 1, 13, 1, 12, 1, 1], 9),
    "vehicle": (
        "95 48 83 178 72 10 162 42 20 159 176 379 184 70 6 16 187 197 van \n",
        [95, 48, 83, 178, 72, 10, 162, 42, 20, 159, 176, 379, 184, 70, 6, 16, 187, 197],
        3,
    ),
    "vowel": (
        "0 0 0 -3.639 0.418 -0.670 1.779 -0.168 1.627 -0.388 0.529 -0.874 -0.814 10\n",
        [-3.639, 0.418, -0.67, 1.779, -0.168, 1.627, -0.388, 0.529, -0.874, -0.814],
        10,
    ),
    "segmentation": (
        ";;; a comment\n;;; another\n\nREGION-CENTROID-COL,REGION-CENTROID-ROW\n\n\n"
        "SKY,140.0,25.0,9,0.0,0.0,1.5,2.5,1.0,0.25,128.0,117.5,142.5,123.5,-30.5,43.0,-12.5,142.5,0.125,-2.5E-2\n",
        [140, 25, 9, 0, 0, 1.5, 2.5, 1, 0.25, 128, 117.5, 142.5, 123.5, -30.5, 43, -12.5, 142.5, 0.125, -0.025],
        1,
    ),
    "soybean": (
        "2-4-d-injury,?,?,?,?,?,?,?,?,?,?,?,1,0,2,2,0,1,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?\n",
        [*[NAN] * 11, 1, 0, 2, 2, 0, 1, *[NAN] * 18],
        17,
    ),
    "splice": ("EI,           A-DONOR-521,               " + "AGTCDNSR" * 7 + "CCCC\n\n", [*list(range(8)) * 7, 3, 3, 3, 3], 0),
    "isolet": (", ".join(["-0.4394", " 1.0000"] * 308 + ["0.5"]) + ", 26.\n", [*[-0.4394, 1] * 308, 0.5], 25),
    "optdigits": (",".join(["16", "0"] * 32) + ",7\n", [16, 0] * 32, 7),
    "satimage": (" ".join(["92", "115"] * 18) + " 7\n", [92, 115] * 18, 5),
}


@pytest.mark.parametrize("name", SOURCES)
def test_first_lines(name: str) -> None:
    text, row, label = FIRST_LINES[name]
    X, y = parse(text, SOURCES[name])
    np.testing.assert_array_equal(X, [row])
    assert (y.tolist(), y.dtype) == ([label], np.uint8)


@pytest.mark.parametrize("name", SOURCES)
def test_more_lines(name: str) -> None:
    """Lines after the header, repeated, are more rows."""
    text, row, label = FIRST_LINES[name]
    line = text.rstrip("\n").rsplit("\n", 1)[-1]
    X, y = parse("\n" * SOURCES[name].n_header + f"{line}\n{line}\n{line}", SOURCES[name])
    np.testing.assert_array_equal(X, [row] * 3)
    assert y.tolist() == [label] * 3


@pytest.mark.parametrize("name", SOURCES)
def test_the_table_fits_together(name: str) -> None:
    source = SOURCES[name]
    assert len(set(source.files)) == len(source.files)
    assert len(source.parts) in (1, 2)
    assert len(set(source.labels)) == len(source.labels)
    assert len(set(source.class_names)) == len(source.class_names)
    assert len(source.class_names) in (0, len(source.labels))
    assert set(source.categorical) <= set(range(source.n_features))
    fingerprints = [part.fingerprint for part in source.parts if part.fingerprint]
    assert all(len(text) == 16 and int(text, 16) >= 0 for text in fingerprints)
    assert ADDRESS.endswith("/")


def test_rule_of_poker() -> None:
    assert SOURCES["poker"].rule is label_poker_hands


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("letter", "", "there are no rows"),
        ("letter", "\n\n", "there are no rows"),
        ("letter", "<!DOCTYPE html>\n<html>\n", "row 1 with 1 columns"),
        ("letter", "t,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\n", "'t'"),  # no such letter
        ("letter", "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0\n", "row 1 with 16 columns"),
        ("letter", "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\nT,2,8,3\n", "row 2 with 4 columns"),
        ("letter", "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,x\n", "'x'"),
        ("satimage", " ".join(["92"] * 36) + " 6\n", "'6'"),  # a class that the documentation has and the rows have not
        ("soybean", "brown-spot,?,z" + ",0" * 33, "'z'"),
        ("splice", "EI, NAME, " + "X" * 60, "'X'"),
        ("splice", "EI", "expected 2"),
    ],
)
def test_other_lines(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text, SOURCES[name])
