"""A consumer whose broker refuses its commits, fetches and questions for offsets, or hangs up.

After some errors Kafka's client asks again; all others are raised by name. The emulator answers the next
requests of an API with an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

import groupstorm
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer import (
    CommitFailed,
    CommittedOffset,
    ConsumerFailed,
    CooperativeConsumer,
    RebalanceInProgress,
)
from groupstorm.clients.consumer.errors import (
    ConsumerError,
    FetchRefused,
    NoOffsetForPartition,
    NotAssigned,
    OffsetOutOfRange,
    OffsetsRefused,
    RecordCorrupt,
)
from groupstorm.testing import ArmedFault, EmulatedBroker
from tests.clients.consumer.applications import GROUP, QUICK

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)

#: The next leader is asked (OffsetFetcherUtils).
MOVED = [
    "NOT_LEADER_OR_FOLLOWER",
    "LEADER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "OFFSET_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
]


@pytest.fixture
def broker() -> Iterator[EmulatedBroker]:
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    options = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}
    with groupstorm.broker({"orders": 2}, options) as running:
        running.produce("orders", "a", "b", "c", partition=0)
        yield running


@pytest.fixture
async def consumer(broker: EmulatedBroker) -> AsyncIterator[CooperativeConsumer]:
    """It owns both partitions, has read all records, and commits when it is told to."""
    options = {**QUICK, "enable_auto_commit": False}
    opened = CooperativeConsumer(
        "orders", bootstrap_servers=broker.bootstrap_servers, group_id=GROUP, **options
    )
    async with opened:
        assert [(await opened.getone()).offset for _ in range(3)] == [0, 1, 2]
        yield opened
    broker.clear_faults()


def refuse(broker: EmulatedBroker, api: str, error: str | None) -> ArmedFault:
    """The next two requests are answered with the error; None: the broker hangs up."""
    return broker.disconnect(api, count=2) if error is None else broker.fail(api, error, count=2)


@pytest.mark.parametrize(
    "error",
    [
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_OR_PARTITION",
        None,
    ],
)
async def test_a_commit_is_sent_again(
    broker: EmulatedBroker, consumer: CooperativeConsumer, error: str | None
) -> None:
    fault = refuse(broker, "OffsetCommit", error)
    await consumer.commit({P1: 7})
    assert fault.hits == 2
    assert await consumer.committed(P1) == {P1: CommittedOffset(7)}


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        ("REBALANCE_IN_PROGRESS", RebalanceInProgress),
        ("FENCED_INSTANCE_ID", ConsumerFailed),
        ("UNKNOWN_MEMBER_ID", CommitFailed),
        ("ILLEGAL_GENERATION", CommitFailed),
        ("OFFSET_METADATA_TOO_LARGE", CommitFailed),
    ],
)
async def test_a_refused_commit_raises_and_is_not_sent_again(
    broker: EmulatedBroker, consumer: CooperativeConsumer, error: str, raised: type[ConsumerError]
) -> None:
    fault = broker.fail("OffsetCommit", error, count=2)
    with pytest.raises(raised, match=f"^{error}$"):
        await consumer.commit({P1: 7})
    assert fault.hits == 1


@pytest.mark.parametrize(
    "error", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "UNSTABLE_OFFSET_COMMIT", None]
)
async def test_committed_offsets_are_asked_for_again(
    broker: EmulatedBroker, consumer: CooperativeConsumer, error: str | None
) -> None:
    await consumer.commit({P0: 2})
    fault = refuse(broker, "OffsetFetch", error)
    assert await consumer.committed(P0) == {P0: CommittedOffset(2)}
    assert fault.hits == 2


async def test_refused_committed_offsets_raise(broker: EmulatedBroker, consumer: CooperativeConsumer) -> None:
    broker.fail("OffsetFetch", "GROUP_AUTHORIZATION_FAILED")
    with pytest.raises(OffsetsRefused, match=r"^GROUP_AUTHORIZATION_FAILED$"):
        await consumer.committed(P0)


@pytest.mark.parametrize("error", [*MOVED, None])
async def test_the_ends_of_a_log_are_asked_for_again(
    broker: EmulatedBroker, consumer: CooperativeConsumer, error: str | None
) -> None:
    fault = refuse(broker, "ListOffsets", error)
    await consumer.seek_to_end(P0)
    assert (await consumer.position(P0), fault.hits) == (3, 2)


async def test_refused_ends_of_a_log_raise(broker: EmulatedBroker, consumer: CooperativeConsumer) -> None:
    broker.fail("ListOffsets", "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(FetchRefused, match=r"^orders-\d: TOPIC_AUTHORIZATION_FAILED$"):
        await consumer.seek_to_end(P0)


@pytest.mark.parametrize("error", [*MOVED, "UNKNOWN_SERVER_ERROR", None])
async def test_a_fetch_is_sent_again_and_the_application_sees_every_record_once(
    broker: EmulatedBroker, consumer: CooperativeConsumer, error: str | None
) -> None:
    consumer.seek(P0, 0)
    fault = refuse(broker, "Fetch", error)
    await fault.used_up()
    consumer.seek(P0, 0)
    assert [(await consumer.getone()).offset for _ in range(3)] == [0, 1, 2]


async def test_a_refused_fetch_is_raised_by_the_next_poll_and_reading_goes_on(
    broker: EmulatedBroker, consumer: CooperativeConsumer
) -> None:
    fault = broker.fail("Fetch", "TOPIC_AUTHORIZATION_FAILED")
    await fault.used_up()
    with pytest.raises(FetchRefused, match=r"^orders-\d: TOPIC_AUTHORIZATION_FAILED$"):
        await consumer.getmany(timeout_ms=5_000)
    consumer.seek(P0, 2)
    assert (await consumer.getone()).offset == 2


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConsumerFailed("FENCED_INSTANCE_ID"), "FENCED_INSTANCE_ID"),
        (NoOffsetForPartition([P0, P1]), "orders-0, orders-1"),
        (OffsetOutOfRange(P0, 7), "orders-0: offset 7"),
        (RecordCorrupt(P0, 7, "wrong checksum"), "orders-0: offset 7: wrong checksum"),
        (NotAssigned(P0), "orders-0"),
    ],
)
def test_an_error_says_where_and_why(error: ConsumerError, text: str) -> None:
    assert str(error) == text
