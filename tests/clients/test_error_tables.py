"""How a membership handles errors and lost connections (Kafka's AbstractCoordinator)."""

from __future__ import annotations

import pytest

from groupstorm.clients.member_session import Generation, MemberState
from groupstorm.clients.operations import (
    Backoff,
    CallbackKind,
    Disconnected,
    FindCoordinator,
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    SyncGroupResponse,
)
from groupstorm.trace.events import member as events
from tests.clients.scripted_consumer import JOINED, T0, ScriptedConsumer, synced


@pytest.mark.parametrize("error", [Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION])
def test_heartbeat_error_that_resets_the_generation_loses_all_partitions(error: Error) -> None:
    consumer = ScriptedConsumer()
    consumer.join(T0)
    consumer.membership.heartbeat_answered(error, consumer.membership.generation)
    assert consumer.membership.state is MemberState.UNJOINED
    assert consumer.answer() == RunCallback(CallbackKind.LOST, (T0,), error.name)
    consumer.answer()
    keeps_its_id = error is Error.ILLEGAL_GENERATION
    assert consumer.request.member_id == ("c-1" if keeps_its_id else "")


def test_heartbeat_of_an_older_generation_changes_nothing() -> None:
    consumer = ScriptedConsumer()
    consumer.join(T0)
    consumer.membership.heartbeat_answered(
        Error.UNKNOWN_MEMBER_ID, Generation(0, "c-0", "cooperative-sticky")
    )
    assert consumer.membership.state is MemberState.STABLE
    assert not consumer.membership.rejoin_needed


def test_fenced_heartbeat_is_fatal() -> None:
    consumer = ScriptedConsumer(group_instance_id="i")
    consumer.join(T0)
    consumer.membership.heartbeat_answered(Error.FENCED_INSTANCE_ID, consumer.membership.generation)
    assert consumer.answer() == StopProcessing((T0,))
    assert consumer.answer() == RunCallback(CallbackKind.LOST, (T0,), "FENCED_INSTANCE_ID")
    assert consumer.answer() is None, "a static member does not leave"
    assert isinstance(consumer.emitted[-1], events.MemberFailed)


def test_fenced_commit_is_fatal_and_not_sent_again() -> None:
    consumer = ScriptedConsumer(group_instance_id="i")
    consumer.join(T0)
    consumer.membership.commit_answered(Error.FENCED_INSTANCE_ID, consumer.membership.generation)
    assert consumer.answer() == StopProcessing((T0,))
    assert consumer.answer() == RunCallback(CallbackKind.REVOKED, (T0,), "close")
    assert consumer.answer() is None
    assert consumer.emitted[-1] == events.MemberFailed("g", "c", "c-1", "FENCED_INSTANCE_ID")


@pytest.mark.parametrize(
    "error", [Error.GROUP_MAX_SIZE_REACHED, Error.INCONSISTENT_GROUP_PROTOCOL, Error.INVALID_SESSION_TIMEOUT,
              Error.FENCED_INSTANCE_ID, Error.GROUP_AUTHORIZATION_FAILED],
)  # fmt: skip
def test_fatal_errors_of_a_join_end_the_consumer(error: Error) -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    assert consumer.answer(JoinGroupResponse(error)) is None
    assert consumer.emitted[-1] == events.MemberFailed("g", "c", "", error.name)


@pytest.mark.parametrize(
    "response",
    [JoinGroupResponse(Error.GROUP_MAX_SIZE_REACHED), JOINED._replace(protocol_type="connect")],
    ids=["error", "other protocol type"],
)
def test_application_closes_the_consumer_after_a_fatal_error(response: JoinGroupResponse) -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    consumer.answer(JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id="c-1"))
    consumer.answer(response)
    assert isinstance(consumer.request, LeaveGroup)
    assert consumer.answer() is None
    assert isinstance(consumer.emitted[-1], events.MemberFailed)


@pytest.mark.parametrize("error", [Error.ILLEGAL_GENERATION, Error.REQUEST_TIMED_OUT])
def test_join_errors_that_kafkas_client_does_not_expect_are_fatal(error: Error) -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    assert consumer.answer(JoinGroupResponse(error)) is None
    assert consumer.emitted[-1] == events.MemberFailed("g", "c", "", "UNKNOWN_SERVER_ERROR")


def test_join_does_not_count_after_a_heartbeat_reset_the_generation() -> None:
    consumer = ScriptedConsumer()
    consumer.join(T0)
    sent = consumer.membership.generation
    consumer.membership.request_rejoin("metadata-changed")
    while not isinstance(consumer.operation, Send):
        consumer.answer(Error.NONE)
    consumer.membership.heartbeat_answered(Error.ILLEGAL_GENERATION, sent)
    assert isinstance(consumer.answer(JOINED), Backoff)
    assert consumer.answer() == RunCallback(CallbackKind.LOST, (T0,), "ILLEGAL_GENERATION")


def test_join_is_repeated_after_the_backoff_while_the_coordinator_loads() -> None:
    consumer = ScriptedConsumer(retry_backoff_ms=70)
    consumer.answer()
    assert consumer.answer(JoinGroupResponse(Error.COORDINATOR_LOAD_IN_PROGRESS)) == Backoff(70)
    consumer.answer()
    assert isinstance(consumer.request, JoinGroup)


@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE])
def test_moved_coordinator_is_looked_up_again(error: Error) -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    assert consumer.answer(JoinGroupResponse(error)) == Backoff(100)
    assert consumer.answer() == FindCoordinator()


def test_join_is_repeated_after_a_lost_connection() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    assert consumer.answer(Disconnected()) == Backoff(100)
    assert consumer.answer() == FindCoordinator()
    consumer.answer()
    assert isinstance(consumer.request, JoinGroup)


def test_sync_answered_with_a_new_rebalance_joins_again_at_once() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    consumer.answer(JOINED)
    consumer.answer(SyncGroupResponse(Error.REBALANCE_IN_PROGRESS))
    assert isinstance(consumer.request, JoinGroup)
    assert consumer.request.member_id == "c-1"


def test_sync_does_not_count_after_a_heartbeat_reset_the_generation() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    consumer.answer(JOINED)
    consumer.membership.heartbeat_answered(Error.UNKNOWN_MEMBER_ID, consumer.membership.generation)
    consumer.answer(synced(T0))
    assert isinstance(consumer.request, JoinGroup)
    assert consumer.request.member_id == ""
    assert consumer.membership.owned == ()


def test_loading_error_of_a_sync_is_fatal_as_in_kafka() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    consumer.answer(JOINED)
    consumer.answer(SyncGroupResponse(Error.COORDINATOR_LOAD_IN_PROGRESS))
    assert isinstance(consumer.request, LeaveGroup)
    assert consumer.answer() is None
    assert isinstance(consumer.emitted[-1], events.MemberFailed)


def test_plan_without_this_member_is_fatal() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    consumer.answer(JOINED)
    consumer.answer(SyncGroupResponse(Error.NONE, "consumer", "cooperative-sticky", b""))
    assert isinstance(consumer.request, LeaveGroup)
    assert consumer.answer() is None
    assert consumer.membership.failure == "IllegalStateException"
