"""Numbers in as few characters as a browser can unpack without a library: int32, deflate, base64."""

from __future__ import annotations

import sys
import zlib
from array import array
from base64 import b64encode
from collections.abc import Iterable


def packed(numbers: Iterable[int]) -> str:
    """Whole numbers from -2**31 on and below 2**31, little-endian. Raises OverflowError for others."""
    found = array("i", numbers)
    if sys.byteorder == "big":
        found.byteswap()
    return b64encode(zlib.compress(found.tobytes(), 9)).decode("ascii")


def packed_times(counts: Iterable[int], times: Iterable[int]) -> str:
    """Times of several lists, one after the other: each as its distance from the one before it."""
    found, rest = [], iter(times)
    for count in counts:
        before = 0
        for _ in range(count):
            now = next(rest)
            found.append(now - before)
            before = now
    return packed(found)
