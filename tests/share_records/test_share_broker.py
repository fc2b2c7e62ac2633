"""The surface of a share broker: requests by token, timers, and the repairs of Kafka's defects."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from groupstorm.coordinator.config import COMPATIBILITY, Compatibility
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.share_records.acknowledgement import AcknowledgementBatch
from groupstorm.share_records.broker import Ports, ShareBroker
from groupstorm.share_records.config import ShareBrokerConfig
from groupstorm.share_records.coordinator import ShareCoordinator
from groupstorm.share_records.messages import (
    AcknowledgeError,
    Response,
    ShareAcknowledge,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
)
from groupstorm.share_records.ports import SharePartitionKey, TopicPartition
from groupstorm.share_records.script.log import ScriptCluster
from groupstorm.share_records.script.persister import ScriptPersister
from groupstorm.share_records.timers import Timers
from groupstorm.turns import at_once

_FOO = TopicPartition("foo", 0)


class _World:
    """A broker with one log and a coordinator that answers at once."""

    def __init__(self, compatibility: Compatibility, **group: Any) -> None:
        self.timers = Timers()
        self.cluster = ScriptCluster({"foo": 1})
        self.log = self.cluster.logs[_FOO]
        coordinator = ShareCoordinator(500, self.cluster.has_partition)
        coordinator.initialize(SharePartitionKey("g", _FOO), 0, 0)
        persister = ScriptPersister(coordinator, self.timers, 0, lambda *_, **__: None)
        config = ShareBrokerConfig.from_mapping({COMPATIBILITY: compatibility})
        self.broker = ShareBroker(config, Ports(self.cluster, persister, persister), self.timers)
        self.broker.set_group_options("g", group)

    def produce(self, records: int, producer: int | None = None) -> None:
        self.log.append(records, 100, producer, self.timers.now_ms)
        self.broker.records_arrived(_FOO)

    def fetch(self, epoch: int, **fields: Any) -> list[tuple[Hashable, Response]]:
        """The answers that are there once all timers of this millisecond have fired."""
        at_once(self.broker.handle(ShareFetch("g", "a", epoch, {_FOO: ()}, **fields), f"fetch-{epoch}"))
        return self.settle()

    def acknowledge(self, epoch: int, first: int, last: int) -> Response:
        batch = AcknowledgementBatch(first, last, [1])
        at_once(self.broker.handle(ShareAcknowledge("g", "a", epoch, {_FOO: [batch]}), "ack"))
        ((token, response),) = self.settle()
        assert token == "ack"
        return response

    def settle(self) -> list[tuple[Hashable, Response]]:
        replies = self.broker.drain()
        while self.timers.fire_one():
            replies += self.broker.drain()
        return replies


def test_a_fetch_waits_under_its_token_until_records_arrive() -> None:
    world = _World(Compatibility.KAFKA_4_4_0)
    assert world.fetch(0, max_wait_ms=500) == []
    assert world.timers.next_deadline() == 500
    world.timers.now_ms = 200
    world.produce(3)
    ((token, response),) = world.settle()
    assert token == "fetch-0"
    assert isinstance(response, ShareFetchResponse)
    assert response.partitions[_FOO].acquired == [(0, 2, 1)]
    assert world.timers.next_deadline() == 30_200, "the end of the lock, not of the wait"


@pytest.mark.parametrize("turns", range(8))
def test_records_that_arrive_between_the_turns_of_a_fetch_go_to_whoever_waits(turns: int) -> None:
    """The fetch of a, which wants more bytes, has locked the partition at times."""
    world = _World(Compatibility.KAFKA_4_4_0)
    assert world.fetch(0, max_wait_ms=0)
    large = ShareFetch("g", "a", 1, {_FOO: ()}, max_wait_ms=500, min_bytes=1_000_000)
    work = world.broker.handle(large, "fetch-a")
    for _ in range(turns):
        next(work, None)
    at_once(world.broker.handle(ShareFetch("g", "b", 0, {_FOO: ()}, max_wait_ms=500), "fetch-b"))
    world.produce(3)
    for _ in work:
        continue
    assert [
        (token, response.partitions[_FOO].acquired)
        for token, response in world.settle()
        if isinstance(response, ShareFetchResponse)
    ] == [("fetch-b", [(0, 2, 1)])]
    assert not turns or world.timers.next_deadline() == 500, "a waits"


def _after_the_log_moved(compatibility: Compatibility) -> _World:
    """All records are done, and the next acknowledgement begins before the start."""
    world = _World(compatibility)
    world.produce(3)
    world.fetch(0)
    world.acknowledge(1, 0, 2)
    return world


@pytest.mark.parametrize(
    ("compatibility", "answer"),
    [
        (Compatibility.KAFKA_4_4_0, ShareAcknowledgeResponse(Error.UNKNOWN_SERVER_ERROR)),
        (
            Compatibility.REPAIRED_4_4_0,
            ShareAcknowledgeResponse(
                Error.NONE,
                30_000,
                {
                    _FOO: AcknowledgeError(
                        Error.INVALID_RECORD_STATE,
                        "Batch record not found. The request batch offsets are not found in the cache.",
                    )
                },
            ),
        ),
    ],
)
def test_an_acknowledgement_across_the_start_of_an_empty_cache(
    compatibility: Compatibility, answer: ShareAcknowledgeResponse
) -> None:
    assert _after_the_log_moved(compatibility).acknowledge(2, 1, 5) == answer


@pytest.mark.parametrize(
    ("compatibility", "error"),
    [
        (Compatibility.KAFKA_4_4_0, Error.UNKNOWN_SERVER_ERROR),
        (Compatibility.REPAIRED_4_4_0, Error.NONE),
    ],
)
def test_an_aborted_batch_that_begins_before_the_log(compatibility: Compatibility, error: Error) -> None:
    world = _World(compatibility, **{"share.isolation.level": "read_committed"})
    world.produce(6, producer=1)
    world.log.end_transaction(1, is_commit=False, now_ms=0)
    world.log.delete_records(3)
    world.fetch(0, max_wait_ms=0)  # finds out where the log starts
    ((_, response),) = world.fetch(1, max_wait_ms=0)
    assert isinstance(response, ShareFetchResponse)
    found = {one: part.error for one, part in response.partitions.items()}
    # the marker at offset 6 is acquired like a record
    acquired = [one for part in response.partitions.values() for one in part.acquired]
    assert (found, acquired) == ({_FOO: error}, [] if error else [(6, 6, 1)])


@pytest.mark.parametrize(
    ("own", "duration_ms"), [(None, 30_000), (1_000, 15_000), (20_000, 20_000), (99_000, 60_000)]
)
def test_a_groups_own_duration_is_moved_into_the_brokers_bounds(own: int | None, duration_ms: int) -> None:
    options = ShareBrokerConfig.from_mapping({}).of_group({"share.record.lock.duration.ms": own})
    assert options.record_lock_duration_ms == duration_ms


@pytest.mark.parametrize(
    ("value", "ms"),
    [("by_duration:PT10S", 10_000), ("by_duration:P1DT2H3M4.5S", 93_784_500), ("earliest", 0), ("latest", 0)],
)
def test_the_reset_strategy_has_a_duration(value: str, ms: int) -> None:
    assert ShareBrokerConfig.from_mapping({}).of_group({"share.auto.offset.reset": value}).reset_ms == ms


@pytest.mark.parametrize("value", ["by_duration:", "by_duration:PT", "never", "by_duration:P1X"])
def test_a_reset_strategy_that_kafka_does_not_know_is_refused(value: str) -> None:
    with pytest.raises(InputError, match=r"share\.auto\.offset\.reset"):
        ShareBrokerConfig.from_mapping({}).of_group({"share.auto.offset.reset": value})
