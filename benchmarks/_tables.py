"""The tables of bench_cpu.py: records of single fits in, Markdown out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from statistics import median
from typing import Any

MIB = 2**20

Record = dict[str, Any]


def select(records: list[Record], **key: Any) -> list[Record]:
    """Keep the records in which all these fields have these values."""
    return [r for r in records if all(r[name] == value for name, value in key.items())]


def values_of(records: list[Record], field: str) -> list[float]:
    """Take one field of each record."""
    return [r[field] for r in records]


def seconds_of(records: list[Record]) -> dict[int, float]:
    """Map each repeat to its fit time."""
    return {r["repeat"]: r["seconds"] for r in records}


def spread(values: Iterable[float], digits: int = 2) -> str:
    """Format the median with the lowest and the highest value."""
    ordered = sorted(values)
    return f"{median(ordered):.{digits}f} [{ordered[0]:.{digits}f}, {ordered[-1]:.{digits}f}]"


def paired_ratios(values: dict[int, float], base: dict[int, float]) -> str:
    """Format the median and range of value / base over the repeats that have both."""
    ratios = [values[repeat] / base[repeat] for repeat in values if repeat in base]
    return spread(ratios) if ratios else "-"


def markdown(header: list[str], rows: Iterable[list[str]]) -> str:
    """Format a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fit_table(records: list[Record], libraries: list[str]) -> str:
    """List the whole fits: a row for each set, number of threads and library."""
    whole = [r for r in records if r["label"] in libraries]

    def rows() -> Iterator[list[str]]:
        settings = dict.fromkeys((r["set"], r["threads"]) for r in sorted(whole, key=lambda r: r["repeat"]))
        for (set_name, threads), library in product(settings, libraries):
            same = select(whole, set=set_name, threads=threads)
            mine, base = (select(same, label=label) for label in (library, "lightgbm"))
            if not mine:
                yield [set_name, str(threads), library, *["failed"] * 7]
                continue
            yield [
                set_name, str(threads), library, str(mine[0]["rounds"]),
                spread(values_of(mine, "seconds")),
                paired_ratios(seconds_of(mine), seconds_of(base)),
                f"{median(r['cpu_seconds'] / r['seconds'] for r in mine):.2f}",
                f"{100 * median(values_of(mine, 'test_error')):.2f}",
                f"{median(values_of(mine, 'peak_bytes')) / MIB:.1f}",
                f"{median(values_of(mine, 'first_call_seconds')):.2f}",
            ]  # fmt: skip

    return markdown(
        ["set", "threads", "library", "rounds", "fit, s", "fit / LightGBM", "cores busy", "test error, %",
         "peak above data, MiB", "first call, s"],
        rows(),
    )  # fmt: skip


def target_table(records: list[Record], targets: list[Record], search_rounds: int) -> str:
    """List how long gpuboost takes to be as good on the test set as LightGBM is at its end."""

    def rows() -> Iterator[list[str]]:
        for t in targets:
            same = select(records, set=t["set"], threads=t["threads"])
            mine, base = (select(same, label=label) for label in ("gpuboost to target", "lightgbm"))
            head = [t["set"], str(t["threads"]), f"{100 * t['target']:.2f}"]
            if not mine:
                first = f"not within {search_rounds}" if t["first"] is None else f"{t['first']}, fit failed"
                yield [*head, first, *["-"] * 4]
                continue
            yield [
                *head, str(t["first"]), str(t["stays"] or "-"),
                f"{100 * median(values_of(mine, 'test_error')):.2f}",
                spread(values_of(mine, "seconds")),
                paired_ratios(seconds_of(mine), seconds_of(base)),
            ]  # fmt: skip

    return markdown(
        ["set", "threads", "target error, %", "first round at target", "stays from round",
         "error of timed fit, %", "fit, s", "fit / LightGBM"],
        rows(),
    )  # fmt: skip


def round_seconds(records: list[Record]) -> dict[int, float]:
    """Map each repeat to the seconds of a round: (long fit - short fit) / difference of their rounds."""
    short, long = min(values_of(records, "rounds")), max(values_of(records, "rounds"))
    at_short, at_long = (seconds_of(select(records, rounds=rounds)) for rounds in (short, long))
    return {r: (at_long[r] - at_short[r]) / (long - short) for r in at_short if r in at_long and long > short}


def round_table(records: list[Record], adds_per_second: float) -> str:
    """List the time of a round beside its arithmetic.

    If only the smaller child of a split is summed, and the larger one is had by subtraction, a tree of L
    leaves looks at between N and N (1 + log2(L) / 2) rows, each with F features: the smaller part of a split
    p is at most H(p) / 2, and the entropies of the splits, weighted by their rows, add up to that of the
    leaves. gpuboost adds K class statistics for such a pair and grows one tree a round; LightGBM adds a
    gradient and a hessian in each of K trees.
    """

    def rows() -> Iterator[list[str]]:
        for threads in sorted({r["threads"] for r in records}):
            same = select(records, threads=threads)
            base = select(same, label="round of lightgbm")
            for library in ("lightgbm", "gpuboost"):
                mine = select(same, label=f"round of {library}")
                seconds = round_seconds(mine) if mine else {}
                if not seconds:
                    continue
                n, f, k = mine[0]["shape"]
                pairs, adds_a_pair = (n * f, k) if library == "gpuboost" else (n * f * k, 2)
                most = 1 + math.log2(mine[0]["leaves"]) / 2
                rate, limit = pairs / median(seconds.values()), threads * adds_per_second
                least = 1000 * pairs * adds_a_pair / limit
                yield [
                    f"{mine[0]['set']}, {n} x {f} x {k}", str(threads), library,
                    spread((1000 * s for s in seconds.values()), 1),
                    paired_ratios(seconds, round_seconds(base)) if base else "-",
                    f"{pairs / 1e6:.1f} - {pairs * most / 1e6:.1f}",
                    f"{rate / 1e9:.3f} - {rate * most / 1e9:.3f}",
                    f"{rate * adds_a_pair / 1e9:.2f} - {rate * adds_a_pair * most / 1e9:.2f}",
                    f"{limit / 1e9:.2f}",
                    f"{least:.1f} - {least * most:.1f}",
                ]  # fmt: skip

    return markdown(
        ["rows x features x classes", "threads", "library", "round, ms", "round / LightGBM",
         "(row, feature) pairs, 1e6", "pairs, 1e9/s", "class adds, 1e9/s", "limit of adds, 1e9/s",
         "round at that limit, ms"],
        rows(),
    )  # fmt: skip


def memory_table(records: list[Record]) -> str:
    """List the peak memory of gpuboost above its input, in the long fits, against 3 (codes + row state)."""
    mine = select(records, label="round of gpuboost")
    long = select(mine, rounds=max(values_of(mine, "rounds"), default=0))

    def rows() -> Iterator[list[str]]:
        for threads in sorted({r["threads"] for r in long}):
            same = select(long, threads=threads)
            n, f, k = same[0]["shape"]
            # Codes of a byte; state and scores in float64, statistics in int32 and signs in int8 for each row
            # and class; eight bytes more a row.
            bound = 3 * (n * f + n * k * (8 + 8 + 4 + 1) + n * 8)
            peak = median(values_of(same, "peak_bytes"))
            yield [str(threads), f"{peak / MIB:.1f}", f"{bound / MIB:.1f}", f"{peak / bound:.2f}"]

    return markdown(["threads", "peak above data, MiB", "bound, MiB", "peak / bound"], rows())
