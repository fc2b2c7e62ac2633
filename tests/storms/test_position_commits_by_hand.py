"""The commit for which a member waits, and what its answer changes: fakes that note what they are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetCommit, OffsetCommitResponse
from groupstorm.storms.world.position_commits import PositionCommits

POSITIONS = {TopicPartition("t", 0): 5, TopicPartition("t", 1): 6, TopicPartition("u", 0): 7}
CONFIG = ConsumerConfig("g", "m", ("t", "u"), group_instance_id="i", request_timeout_ms=4_000)
UNKNOWN = Error.UNKNOWN_TOPIC_OR_PARTITION


class Process:
    """A process, and its environment, which knows of deleted topics if that is its error. ``then``: how the
    commit ended for the one that waits."""

    def __init__(self, environment_says: Error = NO_ERROR) -> None:
        self.said: list[str] = []
        self.sent: list[tuple[Any, int, Any]] = []
        self.then: list[Any] = []
        self.config, self.work = CONFIG, None
        self.connection: Any = SimpleNamespace(send=lambda *what: self.sent.append(what))
        self.periodic_requests: Any = SimpleNamespace(
            commits_superseded=lambda: self.said.append("supersedes background commits")
        )
        self.membership: Any = SimpleNamespace(
            commit_answered=lambda error, sent: self.said.append(f"member: {error.name} to {sent.id}")
        )

        def commit(positions: Any) -> Error:
            self.said.append(f"counts: {sorted(positions.values())}")
            return environment_says

        environment: Any = SimpleNamespace(commit=commit)
        process: Any = self
        PositionCommits(environment, process).send(POSITIONS, Generation(9, "m-1"), self.then.append)

    def answer(self, response: Any) -> None:
        [(_, _, on_result)] = self.sent
        on_result(response)


def answered(*errors: Error) -> OffsetCommitResponse:
    names = [("t", 0), ("t", 1), ("u", 0)]
    return OffsetCommitResponse(tuple((*names[at], error) for at, error in enumerate(errors)))


def test_positions_are_committed_by_topic_in_the_generation_that_is_given() -> None:
    [(request, timeout_ms, _)] = Process().sent
    offsets = {
        "t": {0: CommittedOffset(5), 1: CommittedOffset(6)},
        "u": {0: CommittedOffset(7)},
    }
    assert request == OffsetCommit("g", "m-1", "i", 9, offsets, 9, "m")
    assert timeout_ms == 4_000


def test_a_commit_that_is_accepted_counts_and_takes_the_place_of_background_commits() -> None:
    process = Process()
    assert (process.said, process.then) == ([], [])
    process.answer(answered(NO_ERROR, NO_ERROR, NO_ERROR))
    assert process.said == [
        "counts: [5, 6, 7]",
        "supersedes background commits",
        f"member: {NO_ERROR.name} to 9",
    ]
    assert process.then == [NO_ERROR]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_commit_that_is_refused_does_not_count(at: int) -> None:
    process = Process()
    errors = [NO_ERROR] * 3
    errors[at] = Error.ILLEGAL_GENERATION
    process.answer(answered(*errors))
    assert process.said == ["member: ILLEGAL_GENERATION to 9"]
    assert process.then == [Error.ILLEGAL_GENERATION]


def test_background_commits_still_count_behind_a_commit_for_deleted_topics() -> None:
    process = Process(environment_says=UNKNOWN)
    process.answer(answered(NO_ERROR, NO_ERROR, NO_ERROR))
    assert process.said == ["counts: [5, 6, 7]", "member: UNKNOWN_TOPIC_OR_PARTITION to 9"]
    assert process.then == [UNKNOWN]


def test_a_commit_whose_connection_is_lost_tells_the_member_nothing() -> None:
    process = Process()
    process.answer(Disconnected())
    assert process.said == []
    assert process.then == [Disconnected()]
