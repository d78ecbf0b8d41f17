from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from gpuboost.datasets.unix_compress import decompress


def compress(data: bytes, widest: int = 16, clear_every: int | None = None) -> bytes:
    """Welch's method as in ``compress``: a full table is cleared after so many more codes."""
    out, group, width = bytearray([0x1F, 0x9D, 0x80 | widest]), [], 9
    numbers = {bytes([i]): i for i in range(256)}
    free, since = 257, 0
    known = b""

    def fill_up(n_codes: int) -> None:
        packed = sum(code << (i * width) for i, code in enumerate(group))
        out.extend(packed.to_bytes((n_codes * width + 7) // 8, "little"))
        group.clear()

    def put(code: int) -> None:
        group.append(code)
        if len(group) == 8:
            fill_up(8)

    for byte in data:
        longer = known + bytes([byte])
        if longer in numbers:
            known = longer
            continue
        put(numbers[known])
        known = bytes([byte])
        if free < 1 << widest:
            numbers[longer] = free
            free += 1
            if free > 1 << width and width < widest:
                fill_up(8 if group else 0)
                width += 1
            continue
        since += 1
        if since == clear_every:
            put(256)
            fill_up(8 if group else 0)
            numbers, free, since, width = {bytes([i]): i for i in range(256)}, 257, 0, 9
    if known:
        put(numbers[known])
    fill_up(len(group))
    return bytes(out)


def text(n: int, n_letters: int) -> bytes:
    return bytes(random.Random(n).choices(range(n_letters), k=n))


CASES = [
    (b"", 16, None),
    (b"a", 16, None),
    (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 16, None),  # a code that is used before its string is complete
    (text(256, 256), 16, None),
    (text(300, 256), 16, None),
    (text(3000, 4), 10, None),  # a table that stays full
    (text(30_000, 256), 16, None),  # widths from 9 to 14
    (text(20_000, 4), 10, 1),  # cleared as soon as it is full
    (text(20_000, 5), 11, 13),
    (text(20_000, 6), 12, 800),
]


@pytest.mark.parametrize(("data", "widest", "clear_every"), CASES)
def test_decompress(data: bytes, widest: int, clear_every: int | None) -> None:
    assert decompress(compress(data, widest, clear_every)) == data


@pytest.mark.skipif(shutil.which("gzip") is None, reason="there is no gzip")
@pytest.mark.parametrize(("data", "widest", "clear_every"), CASES)
def test_gzip_reads_what_the_tests_compress(data: bytes, widest: int, clear_every: int | None) -> None:
    packed = compress(data, widest, clear_every)
    assert subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout == data


def test_by_hand() -> None:
    """ "aaa" is the codes 97 and 257, in 9 bits each: 97 + 257 * 512 = 131681."""
    packed = bytes([0x1F, 0x9D, 0x90]) + (131681).to_bytes(3, "little")
    assert decompress(packed) == b"aaa"


@pytest.mark.parametrize("data", [b"", b"\x1f\x9d", b"\x1f\x8b\x90abc", b"\x1f\x9d\x89abc", b"\x1f\x9d\x91abc", b"<html>"])
def test_other_files(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a file that compress wrote"):
        decompress(data)


@pytest.mark.parametrize("codes", [[257], [97, 258], [97, 256, 257], [97, 256, 97, 300]])
def test_codes_without_a_string(codes: list[int]) -> None:
    group = codes[: codes.index(256) + 1] if 256 in codes else codes
    rest = codes[len(group) :]
    packed = sum(code << (9 * i) for i, code in enumerate(group)).to_bytes(9 if rest else 3, "little")
    packed += sum(code << (9 * i) for i, code in enumerate(rest)).to_bytes(3, "little")
    with pytest.raises(ValueError, match=f"code {codes[-1]} stands for no string yet"):
        decompress(bytes([0x1F, 0x9D, 0x90]) + packed)
