"""Group APIs: the rules of the API layer, beyond the coordinator's."""

from __future__ import annotations

import uuid
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import commit
from tests.broker.driver import Driver


def test_an_unknown_partition_is_refused_before_the_coordinator_is_asked(driver: Driver) -> None:
    # the coordinator would refuse the generation
    fields: dict[str, Any] = {"generation_id_or_member_epoch": 5, "member_id": "m"}
    assert commit(driver, 8, 0, **fields) == [(0, Error.ILLEGAL_GENERATION)]
    assert commit(driver, 8, 9, **fields) == [(9, Error.UNKNOWN_TOPIC_OR_PARTITION)]


def test_offset_fetch_10_answers_unknown_topic_ids(driver: Driver) -> None:
    unknown = uuid.UUID(int=5)
    topic = {"topic_id": unknown, "partition_indexes": (4,)}
    group = {"group_id": "g", "topics": (topic,)}
    (answered,) = driver.ask(wire.OFFSET_FETCH, 10, groups=(group,)).groups[0].topics
    assert answered.topic_id == unknown
    assert [(one.partition_index, one.error_code) for one in answered.partitions] == [
        (4, Error.UNKNOWN_TOPIC_ID)
    ]
