"""Throttle times are Kafka's."""

from __future__ import annotations

import random

import pytest

from tests.broker.quotas.throttling import GOLDEN, ask_kafka, draw_case, throttle_times
from tests.needs import needed


def test_throttle_times_are_those_of_kafka() -> None:
    expected = GOLDEN.read_text("utf-8").splitlines()
    assert [throttle_times(draw_case(random.Random(seed))) for seed in range(len(expected))] == expected
    assert len(expected) == 200


@pytest.mark.slow
def test_kafka_gives_the_same_throttle_times_in_other_cases() -> None:
    cases = [draw_case(random.Random(seed)) for seed in range(5_000, 6_000)]
    with needed():
        expected = ask_kafka(cases)
    assert [throttle_times(case) for case in cases] == expected
