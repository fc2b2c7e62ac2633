"""Randomness by counter: a draw depends on the seed, a stream's name and an index, never on earlier draws.

So a draw that one mode skips (a heartbeat that is only computed) changes no other, and the same seed
gives the same numbers in any process on any machine: integers only.
"""

from __future__ import annotations

from hashlib import blake2b

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64's increment: 2^64 / golden ratio

#: Draws lie in [0, DRAW_SPAN).
DRAW_BITS = 32
DRAW_SPAN = 1 << DRAW_BITS


class Stream:
    """The numbers of one purpose: `at(k)` is the k-th, in any order, as often as wanted."""

    __slots__ = ("_base",)

    def __init__(self, seed: int, *name: str | int) -> None:
        text = "/".join(str(part) for part in (seed, *name))
        self._base = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")

    def at(self, index: int) -> int:
        """An integer in [0, DRAW_SPAN), from SplitMix64's finaliser."""
        z = (self._base + index * _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return (z ^ (z >> 31)) >> DRAW_BITS

    def pair(self, index: int) -> tuple[int, int]:
        """Two integers in [0, DRAW_SPAN) for the price of one; the first is `at(index)`."""
        z = (self._base + index * _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        z ^= z >> 31
        return z >> DRAW_BITS, z & (DRAW_SPAN - 1)
