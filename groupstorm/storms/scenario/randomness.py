"""Randomness by counter: a draw depends on the seed, a stream's name and an index, never on earlier draws.

If one mode skips a draw (for a heartbeat that is only computed), no other draw changes. All arithmetic is on
integers: the same seed gives the same numbers in any process on any machine.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

# SplitMix64 is arithmetic of 64 bits. Intermediate values may exceed 64 bits: the low 64 bits of the result
# do not depend on the high ones. If the module is compiled, values are signed 64-bit integers. So the
# constants are signed, and a shift to the right masks the bits that it needs.
_GOLDEN: Final = -0x61C8_8646_80B5_83EB  # 2^64 / golden ratio
_FIRST: Final = -0x40A7_B892_E31B_1A47
_SECOND: Final = -0x6B2F_B644_ECCE_EE15

#: Draws lie in [0, DRAW_SPAN).
DRAW_BITS: Final = 32
DRAW_SPAN: Final = 1 << DRAW_BITS


class Stream:
    """The random numbers of one purpose: `at(k)` is the k-th, in any order and as often as wanted."""

    __slots__ = ("_base",)

    def __init__(self, seed: int, *name: str | int) -> None:
        text = "/".join(str(part) for part in (seed, *name))
        digest = blake2b(text.encode(), digest_size=8).digest()
        self._base: i64 = int.from_bytes(digest, "big", signed=True)

    def at(self, index: i64) -> int:
        """An integer in [0, DRAW_SPAN), from SplitMix64's finaliser; ``index`` has at most 63 bits."""
        z: i64 = self._base + index * _GOLDEN
        z = (z ^ (z >> 30 & 0x3_FFFF_FFFF)) * _FIRST
        z = (z ^ (z >> 27 & 0x1F_FFFF_FFFF)) * _SECOND
        return (z ^ (z >> 31 & 0x1_FFFF_FFFF)) >> 32 & 0xFFFF_FFFF

    def pair(self, index: i64) -> tuple[int, int]:
        """Two integers in [0, DRAW_SPAN) for the price of one; the first is `at(index)`."""
        z: i64 = self._base + index * _GOLDEN
        z = (z ^ (z >> 30 & 0x3_FFFF_FFFF)) * _FIRST
        z = (z ^ (z >> 27 & 0x1F_FFFF_FFFF)) * _SECOND
        z ^= z >> 31 & 0x1_FFFF_FFFF
        return z >> 32 & 0xFFFF_FFFF, z & 0xFFFF_FFFF
