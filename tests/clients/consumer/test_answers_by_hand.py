"""What the consumer does after each answer to a commit, to a question for offsets and to a fetch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer.committer import OffsetCommitter
from groupstorm.clients.consumer.errors import (
    CommitFailed,
    ConsumerError,
    ConsumerFailed,
    FetchRefused,
    NoOffsetForPartition,
    NotAssigned,
    OffsetOutOfRange,
    OffsetsRefused,
    RebalanceInProgress,
    RecordCorrupt,
)
from groupstorm.clients.consumer.fetch_buffer import FetchBuffer
from groupstorm.clients.consumer.fetcher import Fetcher, FetchSettings
from groupstorm.clients.consumer.log_offsets import LogOffsets, OffsetAndTimestamp
from groupstorm.clients.consumer.records import Decoding
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.offsets import OffsetReset
from groupstorm.clients.wire.positions import Position, Positions
from groupstorm.clients.wire.wake_event import ChangeNotifier
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetFetchResponse

PATIENCE_S = 5
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
CONFIG = ConsumerConfig("g", "c", ("orders",), retry_backoff_ms=100)
SENT = {P0: CommittedOffset(7)}


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the consumer makes, in seconds; none of them takes time."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", pause)
    return made


# -- commits and committed offsets ---------------------------------------------------------------


class Member:
    """A member whose coordinator gives these answers, one after the other."""

    def __init__(self, *answers: Any, **membership: Any) -> None:
        self.config = CONFIG
        self.closing = False
        state = {"is_joining": False, "failure": None, "may_commit": True, "generation": Generation()}
        self.membership = SimpleNamespace(**(state | membership))
        self.changes = ChangeNotifier()
        self.committer: Any = OffsetCommitter(self, self.changes, PATIENCE_S * 1_000)  # type: ignore[arg-type]
        self.commits: list[Any] = []
        self._answers: Iterator[Any] = iter(answers)

    async def commit(self, offsets: Mapping[str, Mapping[int, CommittedOffset]]) -> Any:
        self.commits.append(offsets)
        return next(self._answers)

    async def ask_coordinator(self, _request: Any) -> Any:
        return next(self._answers)


@pytest.mark.parametrize(
    "answer",
    [
        Disconnected(),
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.REQUEST_TIMED_OUT,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    ],
    ids=str,
)
async def test_a_commit_is_sent_again_after_the_back_off(answer: Any, pauses: list[float]) -> None:
    member = Member(answer, answer, Error.NONE)
    await member.committer.commit(SENT)
    assert member.commits == [{"orders": {0: CommittedOffset(7)}}] * 3
    assert pauses == [0.1, 0.1]


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (Error.REBALANCE_IN_PROGRESS, RebalanceInProgress),
        (Error.FENCED_INSTANCE_ID, ConsumerFailed),
        (Error.UNKNOWN_MEMBER_ID, CommitFailed),
        (Error.ILLEGAL_GENERATION, CommitFailed),
        (Error.OFFSET_METADATA_TOO_LARGE, CommitFailed),
    ],
)
async def test_a_refused_commit_raises_and_is_not_sent_again(
    answer: Error, raised: type[ConsumerError]
) -> None:
    member = Member(answer)
    with pytest.raises(raised, match=f"^{answer.name}$") as problem:
        await member.committer.commit(SENT)
    assert type(problem.value) is raised
    assert len(member.commits) == 1


@pytest.mark.parametrize(
    ("membership", "raised", "why"),
    [
        ({"failure": "FENCED_INSTANCE_ID"}, ConsumerFailed, "FENCED_INSTANCE_ID"),
        ({"failure": "FENCED_INSTANCE_ID", "is_joining": True}, ConsumerFailed, "FENCED_INSTANCE_ID"),
        ({"may_commit": False}, CommitFailed, "UNKNOWN_MEMBER_ID"),
    ],
)
async def test_a_member_that_must_not_commit_sends_nothing(
    membership: dict[str, Any], raised: type[ConsumerError], why: str
) -> None:
    member = Member(**membership)
    with pytest.raises(raised, match=f"^{why}$"):
        await member.committer.commit(SENT)
    assert member.commits == []


async def test_a_member_that_closes_does_not_wait_for_its_round() -> None:
    member = Member(is_joining=True)
    member.closing = True
    with pytest.raises(RebalanceInProgress, match=r"^REBALANCE_IN_PROGRESS$"):
        await member.committer.commit(SENT)
    assert member.commits == []


def answer(*partitions: tuple[int, int, Error], error: Error = Error.NONE) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error, tuple(("orders", number, CommittedOffset(offset), each) for number, offset, each in partitions)
    )


@pytest.mark.parametrize(
    "first",
    [
        Disconnected(),
        answer(error=Error.NOT_COORDINATOR),
        answer(error=Error.COORDINATOR_LOAD_IN_PROGRESS),
        answer((0, -1, Error.UNSTABLE_OFFSET_COMMIT), (1, 5, Error.NONE)),
        answer((0, 7, Error.NONE), (1, -1, Error.UNSTABLE_OFFSET_COMMIT)),
    ],
    ids=str,
)
async def test_committed_offsets_are_asked_for_again_after_the_back_off(
    first: Any, pauses: list[float]
) -> None:
    member = Member(first, answer((0, 7, Error.NONE), (1, -1, Error.NONE)))
    assert await member.committer.committed([P0, P1]) == {P0: CommittedOffset(7), P1: None}
    assert pauses == [0.1]


@pytest.mark.parametrize(
    "first",
    [
        Error.GROUP_AUTHORIZATION_FAILED,
        answer(error=Error.GROUP_AUTHORIZATION_FAILED),
        answer((0, 7, Error.NONE), (1, -1, Error.GROUP_AUTHORIZATION_FAILED)),
    ],
    ids=str,
)
async def test_refused_committed_offsets_raise(first: Any) -> None:
    with pytest.raises(OffsetsRefused, match=r"^GROUP_AUTHORIZATION_FAILED$") as problem:
        await Member(first).committer.committed([P0, P1])
    assert problem.value.error == "GROUP_AUTHORIZATION_FAILED"


# -- offsets of the log --------------------------------------------------------------------------


class Cluster:
    """Broker 1 leads both partitions. It gives these answers, one after the other, and then none."""

    def __init__(self, *answers: Any) -> None:
        self.leaders = {P0: 1, P1: 1}
        self.refreshed = 0
        self.asked: list[Any] = []
        self.all_answered = asyncio.Event()
        self.on_lost: Any = None
        self._answers = list(answers)

    def refresh_topics(self) -> None:
        self.refreshed += 1

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


# -- the errors themselves -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConsumerFailed("FENCED_INSTANCE_ID"), "FENCED_INSTANCE_ID"),
        (NoOffsetForPartition([P0, P1]), "orders-0, orders-1"),
        (OffsetOutOfRange(P0, 7), "orders-0: offset 7"),
        (FetchRefused(P0, "TOPIC_AUTHORIZATION_FAILED"), "orders-0: TOPIC_AUTHORIZATION_FAILED"),
        (RecordCorrupt(P0, 7, "wrong checksum"), "orders-0: offset 7: wrong checksum"),
        (NotAssigned(P0), "orders-0"),
    ],
)
def test_an_error_says_where_and_what(error: ConsumerError, text: str) -> None:
    assert str(error) == text
