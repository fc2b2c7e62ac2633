from __future__ import annotations

import subprocess
import sys
from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.storms.scenario.randomness import DRAW_BITS, DRAW_SPAN, Stream


def split_mix_64(state: int) -> int:
    """SplitMix64's finaliser as Steele, Lea and Flood (2014) give it, cut down to 64 bits at every step."""
    mask = 2**64 - 1
    z = state & mask
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return z ^ (z >> 31)


@given(st.integers(0, 2**63 - 1), st.integers(-(2**62), 2**62))
def test_draws_are_those_of_split_mix_64(seed: int, index: int) -> None:
    base = int.from_bytes(blake2b(f"{seed}/net".encode(), digest_size=8).digest(), "big")
    mixed = split_mix_64(base + index * 0x9E3779B97F4A7C15)
    assert Stream(seed, "net").pair(index) == (mixed >> 32, mixed & 0xFFFF_FFFF)


def test_streams_differ_by_seed_and_by_name() -> None:
    streams = [Stream(1, "a"), Stream(2, "a"), Stream(1, "b"), Stream(1, "a", 1)]
    assert len({tuple(stream.at(k) for k in range(4)) for stream in streams}) == len(streams)


def test_draws_are_the_same_in_another_process() -> None:
    code = (
        "from groupstorm.storms.scenario.randomness import Stream\n"
        "print([Stream(7, 'x').at(k) for k in range(3)])"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == str([Stream(7, "x").at(k) for k in range(3)])


def test_a_pair_begins_with_the_single_draw() -> None:
    stream = Stream(3, "pair")
    for k in (-2, 0, 7):
        first, second = stream.pair(k)
        assert first == stream.at(k)
        assert 0 <= second < DRAW_SPAN
        assert second != first


def test_draws_are_spread_evenly() -> None:
    stream = Stream(3, "even")
    tenths = [0] * 10
    for k in range(10_000):
        tenths[stream.at(k) * 10 >> DRAW_BITS] += 1
    assert all(850 < count < 1150 for count in tenths)
