"""`groupstorm.append.latency.ms`: requests are answered when their records are written, not before."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from tests.broker import wire
from tests.broker.asking import consumer_join
from tests.broker.driver import Driver
from tests.broker.wire import CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT

LATENCY_MS = 40


@pytest.fixture
def driver() -> Driver:
    options = {
        "groupstorm.append.latency.ms": str(LATENCY_MS),
        "group.consumer.assignment.interval.ms": "0",
        "group.initial.rebalance.delay.ms": "0",
    }
    return Driver(options, {"t": 2})


def _send_join(driver: Driver, member: str) -> int:
    return driver.send(CONSUMER_GROUP_HEARTBEAT, 1, **consumer_join("g", member, "t"))


def _described(driver: Driver) -> Any:
    return driver.ask(CONSUMER_GROUP_DESCRIBE, 1, group_ids=("g",)).groups[0]


def _committed(driver: Driver) -> int:
    asked = {"name": "t", "partition_indexes": (0,)}
    answer = driver.ask(wire.OFFSET_FETCH, 7, group_id="g", topics=(asked,), require_stable=False)
    (topic,) = answer.topics
    offset: int = topic.partitions[0].committed_offset
    return offset


def test_a_consumer_group_is_there_when_its_first_records_are_written(driver: Driver) -> None:
    joined = _send_join(driver, "a")
    driver.advance(LATENCY_MS - 1)
    assert joined not in driver.answers
    assert _described(driver).error_code == Error.GROUP_ID_NOT_FOUND
    driver.advance(1)
    assert driver.answers[joined].member_epoch == 2
    assert _described(driver).group_epoch == 2


def test_a_latency_that_is_none() -> None:
    with pytest.raises(InputError, match=r"groupstorm.append.latency.ms=-1: expected an integer from 0 to"):
        Driver({"groupstorm.append.latency.ms": "-1"}, {})
