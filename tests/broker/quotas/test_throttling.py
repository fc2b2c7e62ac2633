"""Throttle times are Kafka's."""

from __future__ import annotations

import random

import pytest

from groupstorm.clients.brokers.contract import BrokerUnavailable
from tests.broker.quotas.throttling import GOLDEN, ask_kafka, draw_case, throttle_times


def test_throttle_times_are_those_of_kafka() -> None:
    expected = GOLDEN.read_text("utf-8").splitlines()
    assert [throttle_times(draw_case(random.Random(seed))) for seed in range(len(expected))] == expected
    assert len(expected) == 200


@pytest.mark.slow
def test_kafka_gives_the_same_throttle_times_in_other_cases() -> None:
    cases = [draw_case(random.Random(seed)) for seed in range(5_000, 6_000)]
    try:
        expected = ask_kafka(cases)
    except (BrokerUnavailable, StopIteration) as missing:
        pytest.skip(f"needs Java and Kafka's jars: {missing}")
    assert [throttle_times(case) for case in cases] == expected
