"""Values over time, what is summed up in cells, and numbers as a page holds them."""

from __future__ import annotations

import zlib
from array import array
from base64 import b64decode
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.report.page.steps import SHARES, Step, Steps, cells, packed, packed_times

SPECIAL = -1


def unpacked(text: str) -> list[int]:
    return array("i", zlib.decompress(b64decode(text))).tolist()


def made(*changes: tuple[int, int]) -> Steps:
    steps = Steps()
    for time_us, value in changes:
        steps.set("p", time_us, value)
    return steps


def test_steps_follow_each_other() -> None:
    steps = made((10, 1), (20, 2), (20, 3), (30, 3), (40, 1))
    assert [*steps.of("p", 0, 50, -2)] == [Step(0, 10, -2), Step(10, 20, 1), Step(20, 40, 3), Step(40, 50, 1)]
    assert [*steps.of("p", 25, 35, -2)] == [Step(25, 35, 3)]
    assert steps.changes == 3


def test_the_time_of_a_value_is_exact() -> None:
    steps = made((10, 1), (20, SPECIAL), (27, 1), (45, SPECIAL))
    assert steps.lasted_us("p", SPECIAL, (0, 50), -2) == 12
    assert steps.lasted_us("p", SPECIAL, (22, 46), -2) == 6
    assert steps.lasted_us("p", -2, (0, 50), -2) == 10


def test_a_change_that_is_taken_back_at_once_is_none() -> None:
    assert [*made((10, 1), (20, 2), (20, 1)).of("p", 0, 30, 0)] == [Step(0, 10, 0), Step(10, 30, 1)]


def test_cells_hold_what_took_most_of_the_time_and_never_lose_a_gap() -> None:
    steps = made((0, 5), (100, SPECIAL), (101, 7), (170, 5), (300, SPECIAL))
    found = cells(steps, ["p"], (0, 400), 4, SPECIAL, -2)
    assert found.bucket_us == 100
    assert [*found.buckets] == [0, 1, 2, 3]
    assert [(value // SHARES, value % SHARES) for value in found.values] == [(5, 0), (7, 1), (5, 0), (-1, 15)]


CHANGES = st.lists(st.tuples(st.integers(0, 1_000), st.integers(-1, 3)), max_size=30).map(sorted)


@given(CHANGES, st.integers(1, 60))
def test_cells_have_the_time_of_the_special_value_within_a_part(
    changes: list[tuple[int, int]], count: int
) -> None:
    steps = made((0, 0), *changes)
    exact = sum(one.to_us - one.from_us for one in steps.of("p", 0, 1_200, 0) if one.value == SPECIAL)
    found = cells(steps, ["p"], (0, 1_200), count, SPECIAL, 0)
    ends = [*found.buckets[1:], -(-1_200 // found.bucket_us)]
    shares = 0.0
    for begin, end, value in zip(found.buckets, ends, found.values, strict=True):
        until_us = min(1_200, end * found.bucket_us)
        shares += (until_us - begin * found.bucket_us) * (value % SHARES) / (SHARES - 1)
    assert exact <= shares + 1e-6
    assert shares <= exact + 1_200 / (SHARES - 1) + 1e-6
    assert all(before < after for before, after in pairwise(found.buckets))


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_numbers_come_back(numbers: list[int]) -> None:
    assert unpacked(packed(numbers)) == numbers


def test_times_are_distances_within_each_list() -> None:
    assert unpacked(packed_times([2, 0, 3], [5, 9, 1, 1, 4])) == [5, 4, 1, 0, 3]


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(OverflowError):
        packed([2**31])
