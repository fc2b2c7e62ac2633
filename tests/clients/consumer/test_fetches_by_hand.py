"""What the consumer does after each answer to a fetch and to a question for the ends of a log."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer.errors import (
    ConsumerError,
    FetchRefused,
)
from groupstorm.clients.consumer.fetch_buffer import FetchBuffer
from groupstorm.clients.consumer.fetcher import Fetcher, FetchSettings
from groupstorm.clients.consumer.log_offsets import LogOffsets, OffsetAndTimestamp
from groupstorm.clients.consumer.records import Decoding
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.offsets import OffsetReset
from groupstorm.clients.wire.positions import Position, Positions
from groupstorm.coordinator.errors import Error

PATIENCE_S = 5  # in real seconds: no answer takes that long
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
CONFIG = ConsumerConfig("g", "c", ("orders",), retry_backoff_ms=100)

pytestmark = pytest.mark.usefixtures("pauses")

# -- offsets of the log --------------------------------------------------------------------------


class Cluster:
    """Broker 1 leads both partitions. It gives these answers, one after the other, and then none."""

    def __init__(self, *answers: Any) -> None:
        self.leaders = {P0: 1, P1: 1}
        self.refreshed = 0
        self.asked: list[Any] = []
        self.all_answered = asyncio.Event()
        self.looked_for_leader = asyncio.Event()
        self.connected = 0
        self.on_lost: Any = None
        self._answers = list(answers)

    def refresh_topics(self) -> None:
        self.refreshed += 1
        self.looked_for_leader.set()

    def leader(self, partition: TopicPartition) -> Any:
        node_id = self.leaders.get(partition)
        return None if node_id is None else SimpleNamespace(node_id=node_id, epoch=3)

    async def ask_node(self, node_id: int, _api: Any, _build: Any, _timeout_ms: int) -> Any:
        self.asked.append(node_id)
        assert self._answers, "there is nothing more to ask for"
        return await self._next()

    # as the connection of the fetcher

    def endpoint(self, node_id: int) -> Any:
        return node_id

    async def connect(self, _endpoint: Any) -> Any:
        self.connected += 1
        return self

    async def ask(self, _api: Any, _version: int, _build: Any, _timeout_ms: int) -> Any:
        return await self._next()

    def abort(self) -> None:
        self.on_lost = None

    async def _next(self) -> Any:
        if not self._answers:
            self.all_answered.set()
            await asyncio.Event().wait()
        found = self._answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def ends(*partitions: tuple[int, Error, int]) -> Any:
    listed = [
        SimpleNamespace(partition_index=number, error_code=int(error), offset=offset, timestamp=1_000)
        for number, error, offset in partitions
    ]
    return SimpleNamespace(topics=[SimpleNamespace(name="orders", partitions=listed)])


def log_offsets(cluster: Any) -> LogOffsets:
    return LogOffsets(CONFIG, cluster, False, cluster.refresh_topics)


_MOVED = [
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.LEADER_NOT_AVAILABLE,
    Error.REPLICA_NOT_AVAILABLE,
    Error.FENCED_LEADER_EPOCH,
    Error.UNKNOWN_LEADER_EPOCH,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.OFFSET_NOT_AVAILABLE,
    Error.KAFKA_STORAGE_ERROR,
]


@pytest.mark.parametrize("error", _MOVED)
async def test_the_next_leader_is_asked_for_what_is_missing(error: Error, pauses: list[float]) -> None:
    cluster = Cluster(ends((0, Error.NONE, 4), (1, error, -1)), ends((1, Error.NONE, 9)))
    found = await log_offsets(cluster).find({P0: -1, P1: -1})
    assert found == {P0: OffsetAndTimestamp(4, 1_000), P1: OffsetAndTimestamp(9, 1_000)}
    assert (cluster.refreshed, pauses) == (1, [0.1])


async def test_the_pause_doubles_with_every_attempt_that_fails(pauses: list[float]) -> None:
    cluster = Cluster(ConnectionLost("gone"), ConnectionLost("gone"), ends((0, Error.NONE, 4)))
    assert await log_offsets(cluster).find({P0: -2}) == {P0: OffsetAndTimestamp(4, 1_000)}
    assert (cluster.asked, cluster.refreshed, pauses) == ([1, 1, 1], 2, [0.1, 0.2])


async def test_a_leader_that_refuses_is_not_asked_again() -> None:
    cluster = Cluster(ends((0, Error.TOPIC_AUTHORIZATION_FAILED, -1)))
    with pytest.raises(FetchRefused, match=r"^orders-0: TOPIC_AUTHORIZATION_FAILED$"):
        await log_offsets(cluster).find({P0: -1})
    assert cluster.asked == [1]


# -- fetches -------------------------------------------------------------------------------------


class Fetches:
    """A fetcher of orders-0 from offset 5 on; the log begins at offset 2."""

    def __init__(self, *answers: Any, reset: OffsetReset | None = OffsetReset.EARLIEST) -> None:
        self.positions = Positions()
        self.positions.own([P0])
        self.positions.move_to(P0, Position(5))
        self.buffer = FetchBuffer(self.positions, lambda: None)
        self.problems: list[ConsumerError] = []
        self.reset_to: OffsetAndTimestamp | ConsumerError = OffsetAndTimestamp(2, -1)
        self.sought: list[Any] = []
        self.cluster = Cluster(*answers)
        none: Any = None
        self.fetcher = Fetcher(
            CONFIG,
            FetchSettings(Decoding(none, ValueError), reset, 1, 2, 3, 4),
            self.cluster,  # type: ignore[arg-type]
            self.buffer,
            self,  # type: ignore[arg-type]
            self.cluster.refresh_topics,
            lambda: None,
            self.problems.append,
        )

    async def find(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        """As `LogOffsets`."""
        self.sought.append(dict(asked))
        if isinstance(self.reset_to, ConsumerError):
            raise self.reset_to
        return {P0: self.reset_to}

    async def run(self) -> None:
        """Until all answers are used up."""
        running = asyncio.create_task(self.fetcher.run())
        async with asyncio.timeout(PATIENCE_S):
            await self.cluster.all_answered.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    @property
    def said(self) -> list[str]:
        return [f"{type(problem).__name__}: {problem}" for problem in self.problems]


def fetched(error: Error, whole: Error = Error.NONE) -> Any:
    data = SimpleNamespace(partition_index=0, error_code=int(error), records=b"", aborted_transactions=None)
    topic = SimpleNamespace(topic="orders", partitions=[data])
    return SimpleNamespace(error_code=int(whole), responses=[topic])


async def test_a_fetch_without_records_is_followed_by_the_next_at_once(pauses: list[float]) -> None:
    fetches = Fetches(fetched(Error.NONE), fetched(Error.NONE))
    await fetches.run()
    assert (fetches.problems, fetches.cluster.refreshed, pauses) == ([], 0, [])


@pytest.mark.parametrize("error", [*_MOVED, Error.UNKNOWN_SERVER_ERROR])
async def test_a_fetch_from_a_broker_that_does_not_lead_any_more_is_no_problem(
    error: Error, pauses: list[float]
) -> None:
    fetches = Fetches(fetched(error))
    await fetches.run()
    assert (fetches.problems, fetches.cluster.refreshed, pauses) == ([], 1, [0.1])


@pytest.mark.parametrize("answer", [ConnectionLost("gone"), fetched(Error.NONE, whole=Error.NOT_COORDINATOR)])
async def test_a_fetch_that_fails_as_a_whole_is_sent_again_after_the_back_off(
    answer: Any, pauses: list[float]
) -> None:
    fetches = Fetches(answer)
    await fetches.run()
    assert (fetches.problems, fetches.cluster.refreshed, pauses) == ([], 1, [0.1])


async def test_a_partition_is_fetched_as_soon_as_it_has_a_leader() -> None:
    fetches = Fetches()
    fetches.cluster.leaders = {}
    running = asyncio.create_task(fetches.run())
    async with asyncio.timeout(PATIENCE_S):
        await fetches.cluster.looked_for_leader.wait()
    assert fetches.cluster.connected == 0
    fetches.cluster.leaders = {P0: 1}
    fetches.fetcher.wake()
    await running
    assert (fetches.cluster.connected, fetches.cluster.refreshed) == (1, 1)


@pytest.mark.parametrize(("is_lost", "connections"), [(True, 2), (False, 1)])
async def test_a_broker_is_connected_to_again_only_after_its_connection_is_lost(
    is_lost: bool, connections: int
) -> None:
    fetches = Fetches(fetched(Error.NONE), fetched(Error.NONE))
    cluster = fetches.cluster
    take = fetches.fetcher._take

    async def loses_and_takes(answer: Any, plan: Any) -> bool:
        cluster.on_lost(cluster if is_lost and cluster.connected == 1 else object())
        return await take(answer, plan)

    fetches.fetcher._take = loses_and_takes  # type: ignore[method-assign]
    await fetches.run()
    assert cluster.connected == connections


async def test_a_refused_fetch_is_for_the_next_poll_to_raise(pauses: list[float]) -> None:
    fetches = Fetches(fetched(Error.TOPIC_AUTHORIZATION_FAILED))
    await fetches.run()
    assert fetches.said == ["FetchRefused: orders-0: TOPIC_AUTHORIZATION_FAILED"]
    assert (fetches.cluster.refreshed, pauses) == (1, [0.1])


async def test_a_position_outside_of_the_log_is_reset_and_fetched_at_once(pauses: list[float]) -> None:
    fetches = Fetches(fetched(Error.OFFSET_OUT_OF_RANGE))
    await fetches.run()
    assert fetches.sought == [{P0: int(OffsetReset.EARLIEST)}]
    assert fetches.buffer.position(P0) == Position(2)
    assert (fetches.problems, pauses) == ([], [])


async def test_a_position_that_has_changed_meanwhile_is_not_reset(pauses: list[float]) -> None:
    fetches = Fetches()
    out_of_range = fetched(Error.OFFSET_OUT_OF_RANGE)
    assert await fetches.fetcher._take(out_of_range, {P0: Position(4)})
    fetches.positions.own([])
    assert await fetches.fetcher._take(out_of_range, {P0: Position(5)})
    assert (fetches.sought, fetches.problems, pauses) == ([], [], [])


async def test_without_auto_offset_reset_the_application_hears_of_it(pauses: list[float]) -> None:
    fetches = Fetches(fetched(Error.OFFSET_OUT_OF_RANGE), reset=None)
    await fetches.run()
    assert fetches.said == ["OffsetOutOfRange: orders-0: offset 5"]
    assert (fetches.sought, fetches.buffer.position(P0), pauses) == ([], Position(5), [0.1])


async def test_a_reset_that_is_refused_is_for_the_next_poll_to_raise(pauses: list[float]) -> None:
    fetches = Fetches(fetched(Error.OFFSET_OUT_OF_RANGE))
    fetches.reset_to = FetchRefused(P0, "TOPIC_AUTHORIZATION_FAILED")
    await fetches.run()
    assert fetches.problems == [fetches.reset_to]
    assert (fetches.buffer.position(P0), pauses) == (Position(5), [0.1])
