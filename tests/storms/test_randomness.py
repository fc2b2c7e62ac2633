from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.storms.randomness import DRAW_BITS, DRAW_SPAN, Stream


@given(st.integers(0, 2**63 - 1), st.integers(-(2**70), 2**70))
def test_a_draw_is_a_function_of_seed_name_and_index(seed: int, index: int) -> None:
    draw = Stream(seed, "net", "member-1", 1).at(index)
    assert 0 <= draw < DRAW_SPAN
    assert draw == Stream(seed, "net", "member-1", 1).at(index)


def test_streams_differ_by_seed_and_by_name() -> None:
    streams = [Stream(1, "a"), Stream(2, "a"), Stream(1, "b"), Stream(1, "a", 1)]
    assert len({tuple(stream.at(k) for k in range(4)) for stream in streams}) == len(streams)


def test_draws_are_the_same_in_another_process() -> None:
    code = "from groupstorm.storms.randomness import Stream; print([Stream(7, 'x').at(k) for k in range(3)])"
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
