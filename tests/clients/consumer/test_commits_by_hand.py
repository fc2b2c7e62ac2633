"""What the consumer does after each answer to a commit and to a question for committed offsets."""

from __future__ import annotations

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
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.wake_event import ChangeNotifier
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetFetchResponse

PATIENCE_S = 5  # in real seconds: no answer takes that long
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
CONFIG = ConsumerConfig("g", "c", ("orders",), retry_backoff_ms=100)
SENT = {P0: CommittedOffset(7)}

pytestmark = pytest.mark.usefixtures("pauses")


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
