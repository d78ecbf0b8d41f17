"""Tables as people really have them, and worse: odd types, odd text, broken bytes."""

from __future__ import annotations

import datetime
import gzip
import io
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyarrow import feather, parquet

TEXTS = [
    "",
    "a",
    "NA",
    "NaN",
    "1",
    "1.0",
    "007",
    "1e400",
    "-inf",
    "x,y",
    'say "hi"',
    "two\nlines",
    "ü",
    "True",
    "?",
    "0x10",
    "\u2028",
    " 3 ",
]
DAY = datetime.date(2024, 2, 29)


def odd_column(random: Random, n_rows: int) -> pa.Array:
    """A column of a random type, perhaps with missing values."""
    kind = random.choice(list(MAKERS))
    make = MAKERS[kind]
    share = random.choice([0, 0, 0.2, 1])
    values = [None if random.random() < share else make(random) for _ in range(n_rows)]
    if kind == "dictionary":
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, TYPES.get(kind))


MAKERS: dict[str, Any] = {
    "int64": lambda r: r.randint(-3, 3),
    "wide": lambda r: r.randint(-(2**63), 2**63 - 1),
    "uint64": lambda r: r.randint(0, 2**64 - 1),
    "int8": lambda r: r.randint(-128, 127),
    "float64": lambda r: r.choice([0.5, -0.0, 1e308, float("inf"), float("-inf"), float("nan"), 5e-324]),
    "float32": lambda r: r.random(),
    "bool": lambda r: r.random() < 0.5,
    "string": lambda r: r.choice(TEXTS),
    "large_string": lambda r: r.choice("abc"),
    "binary": lambda r: r.choice([b"", b"\xff\0"]),
    "date": lambda r: DAY + datetime.timedelta(r.randint(0, 3)),
    "timestamp": lambda r: datetime.datetime(2024, 1, 1, r.randint(0, 3)),
    "time": lambda r: datetime.time(r.randint(0, 3)),
    "duration": lambda r: datetime.timedelta(r.randint(0, 3)),
    "decimal": lambda r: Decimal(r.randint(-999, 999)).scaleb(-2),
    "whole decimal": lambda r: Decimal(r.randint(0, 3)),
    "list": lambda r: [1, 2],
    "struct": lambda r: {"a": 1},
    "null": lambda r: None,
    "dictionary": lambda r: r.choice("abc"),
}
TYPES = {
    "uint64": pa.uint64(),
    "int8": pa.int8(),
    "float32": pa.float32(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "time": pa.time64("us"),
    "duration": pa.duration("s"),
    "decimal": pa.decimal128(9, 2),
    "whole decimal": pa.decimal128(20, 0),
    "null": pa.null(),
}
NAMES = ["a", "b", "c", "d", "e", "1", "0", "-1", "two words", "", "ü", 'a"b', "x\ny", "__index_level_0__", "p_a", "prediction"]


def odd_table(random: Random) -> pa.Table:
    """Some odd columns, some plain ones, and the target "y"."""
    n_rows = random.choice([0, 1, 2, 5, *[12] * 6, 40])
    n_columns = random.choice([0, 1, 2, 2, 3, 3, 4])
    names = random.sample(NAMES, n_columns) if random.random() < 0.9 else random.choices(NAMES, k=n_columns)
    plain = random.random() < 0.6
    columns = [pa.array([random.gauss(0, 1) for _ in range(n_rows)]) if plain else odd_column(random, n_rows) for _ in names]
    labels = pa.array([random.choice("xyz") for _ in range(n_rows)], pa.string())
    target = labels if random.random() < 0.8 else odd_column(random, n_rows)
    return pa.table([*columns, target], names=[*names, "y"])


def cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if any(mark in text for mark in ',"\n\r;\t') else text


def as_csv(random: Random, table: pa.Table) -> bytes:
    """A table as text, in one of many styles."""
    end, separator = random.choice(["\n", "\n", "\r\n", "\r"]), random.choice([",", ",", ",", ";", "\t"])
    rows = [[cell(name) for name in table.column_names]]
    rows += [[cell(value) for value in row] for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    if random.random() < 0.1 and rows:
        random.choice(rows).append("more")
    if random.random() < 0.1 and len(rows) > 1:
        random.choice(rows).pop()
    if random.random() < 0.1:
        rows.insert(random.randint(0, len(rows)), [])
    text = end.join(separator.join(row) for row in rows) + random.choice(["", end, end * 2])
    encoding = random.choice(["utf-8"] * 9 + ["utf-8-sig", "latin-1", "utf-16"])
    return text.encode(encoding, "replace")


def broken(random: Random, content: bytes) -> bytes:
    """Content with some of its bytes cut off, changed, removed or put in."""
    for _ in range(random.choice([0, 0, 1, 1, 3])):
        at = random.randint(0, len(content))
        noise = random.choice([b"\0", b'"', b"\xff", b",", b"\n", b"\r", random.randbytes(3)])
        content = random.choice(
            [
                content[:at],
                content[:at] + noise + content[at + 1 :],
                content[:at] + content[at + 5 :],
                content[:at] + noise + content[at:],
            ]
        )
    return content


def odd_file(random: Random, folder: Path) -> Path:
    """Write a file of a random kind, and return its path."""
    table, kind = odd_table(random), random.choice(["csv", "csv", "csv", "csv.gz", "tsv", "parquet", "parquet", "feather"])
    file = io.BytesIO()
    if kind in ("parquet", "feather"):
        try:
            parquet.write_table(table, file) if kind == "parquet" else feather.write_feather(table, file)
        except (pa.ArrowException, ValueError):  # some types are not for files
            file.write(random.randbytes(100))
        content = file.getvalue() if random.random() < 0.8 else broken(random, file.getvalue())
    else:
        content = as_csv(random, table)
        content = broken(random, content) if random.random() < 0.5 else content
        if kind == "csv.gz":
            content = gzip.compress(content, mtime=0)
            content = broken(random, content) if random.random() < 0.3 else content
    path = folder / f"odd.{kind}"
    path.write_bytes(content)
    return path
