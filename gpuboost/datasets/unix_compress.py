"""Reading files that the Unix program ``compress`` wrote (``.Z``), for which the standard library has no reader."""

from __future__ import annotations

import numpy as np

MAGIC = b"\x1f\x9d"
CLEAR = 256


def decompress(data: bytes) -> bytes:
    """Return what ``compress`` was given.

    The codes of Welch's method are 9 to 16 bits wide: as wide as the number of strings known so far requires. Where
    the width changes, the codes before that are filled up to a multiple of 8 codes.

    Parameters
    ----------
    data : bytes
        A whole ``.Z`` file.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If these are not the contents of such a file.

    References
    ----------
    Welch (1984), A technique for high-performance data compression, Computer 17(6), 8-19.
    """
    # compress itself goes wrong when it is told to use no more than 9 bits
    if data[:2] != MAGIC or len(data) < 3 or not 10 <= data[2] & 31 <= 16:
        raise ValueError("not a file that compress wrote")
    widest, can_clear = data[2] & 31, bool(data[2] & 128)
    alphabet = [bytes([i]) for i in range(256)] + [b""] * can_clear  # the code 256 is no string then
    strings, width, previous, decoded, position = alphabet.copy(), 9, b"", [], 3
    while position < len(data):
        block = data[position : position + (1 << width - 3) * width]
        used, next_width = len(block), width
        for i, code in enumerate(_codes(block, width)):
            if can_clear and code == CLEAR:
                strings, previous, next_width = alphabet.copy(), b"", 9
            elif code < len(strings) or (code == len(strings) and previous):
                string = strings[code] if code < len(strings) else previous + previous[:1]
                decoded.append(string)
                if previous and len(strings) < 1 << widest:
                    strings.append(previous + string[:1])
                    if len(strings) == 1 << width and width < widest:
                        next_width = width + 1
                previous = string
            else:
                raise ValueError(f"code {code} stands for no string yet")
            if next_width != width or not previous:
                used = (i // 8 + 1) * width
                break
        position, width = position + used, next_width
    return b"".join(decoded)


def _codes(data: bytes, width: int) -> list[int]:
    """Return the whole codes of so many bits, lowest bit first."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    codes: list[int] = (bits[: len(bits) // width * width].reshape(-1, width) @ (1 << np.arange(width))).tolist()
    return codes
