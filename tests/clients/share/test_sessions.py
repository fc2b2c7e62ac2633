"""Share sessions without a broker: epochs, partitions, acknowledgements and errors, over two leaders."""

from __future__ import annotations

from uuid import UUID

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.share.records import (
    GAP,
    Acknowledgements,
    AcknowledgeType,
    AckRange,
    SharePartition,
    joined,
)
from groupstorm.clients.share.sessions import ShareAnswer, ShareRequest, ShareSessions
from groupstorm.coordinator.errors import Error

TOPIC = UUID(int=1)
P0, P1, P2 = (SharePartition(TOPIC, number) for number in range(3))
ACCEPT, RENEW = AcknowledgeType.ACCEPT, AcknowledgeType.RENEW


class Member:
    """Sessions whose time the test sets; leaders answer without error unless it says otherwise."""

    def __init__(self, strict: bool = False) -> None:
        self.sessions = ShareSessions(retry_backoff_ms=100, strict=strict)
        self.now_ms = 0

    def reads(self, *by_leader: set[SharePartition]) -> None:
        self.sessions.read({node: frozenset(those) for node, those in enumerate(by_leader, 1) if those})

    def sends(self) -> list[ShareRequest]:
        return self.sessions.requests(self.now_ms)

    def sends_one(self) -> ShareRequest:
        (request,) = self.sends()
        return request

    def asks(self) -> ShareRequest:
        """One request with the application waiting for records, answered."""
        self.sessions.wants_records = True
        request = self.sends_one()
        self.answered(request)
        return request

    def answered(
        self, request: ShareRequest, error: Error = Error.NONE, settled: bool = True, **acknowledged: Error
    ) -> None:
        by_partition = {SharePartition(TOPIC, int(name[1:])): one for name, one in acknowledged.items()}
        self.sessions.answered(request, ShareAnswer(error, by_partition, settled), self.now_ms)

    def acknowledges(
        self, partition: SharePartition, *ranges: AckRange, node: int = 1, deadline_ms: int = 1_000
    ) -> Acknowledgements:
        name = TopicPartition("orders", partition.partition)
        one = Acknowledgements(node, partition, name, ranges, deadline_ms)
        self.sessions.acknowledge([one])
        return one


def reading(partitions: set[SharePartition]) -> Member:
    """A member whose session with the leader of these partitions is open."""
    member = Member()
    member.reads(partitions)
    member.asks()
    return member


def test_a_session_opens_and_its_later_requests_name_what_has_changed() -> None:
    member = Member()
    member.reads({P0, P1})
    assert member.sends() == [], "the application does not ask"
    assert member.asks() == ShareRequest(1, 0, True, (P0, P1))
    assert member.asks() == ShareRequest(1, 1, True)
    member.reads({P1, P2})
    assert member.asks() == ShareRequest(1, 2, True, (P2,), (P0,))
    assert member.asks() == ShareRequest(1, 3, True)


def test_a_strict_member_asks_one_leader_after_the_other() -> None:
    member = Member(strict=True)
    member.reads({P0}, {P1}, {P2})
    assert [member.asks().node_id for _ in range(5)] == [1, 2, 3, 1, 2]


def test_acknowledgements_ride_on_a_fetch_and_go_alone_without_one() -> None:
    member = reading({P0})
    riding = member.acknowledges(P0, AckRange(0, 4, ACCEPT))
    assert member.asks() == ShareRequest(1, 1, True, acknowledgements=(riding,))
    assert member.sessions.done() == [riding]
    assert riding.error is Error.NONE
    member.sessions.wants_records = False
    alone = member.acknowledges(P0, AckRange(5, 5, ACCEPT))
    assert member.sends_one() == ShareRequest(1, 2, False, acknowledgements=(alone,))


def test_a_renewal_never_rides_on_a_fetch() -> None:
    """A broker refuses such a fetch unless it fetches nothing."""
    member = reading({P0})
    renewal = member.acknowledges(P0, AckRange(0, 0, RENEW))
    request = member.asks()
    assert (request.fetches, request.renews, request.acknowledgements) == (False, True, (renewal,))
    assert member.asks().fetches


def test_a_partition_that_goes_stays_until_its_acknowledgements_are_told() -> None:
    member = reading({P0, P1})
    member.reads({P1})
    told = member.acknowledges(P0, AckRange(0, 0, ACCEPT))
    assert member.asks() == ShareRequest(1, 1, True, acknowledgements=(told,))
    assert member.asks() == ShareRequest(1, 2, True, forgotten=(P0,))


@pytest.mark.parametrize(
    "error",
    [Error.SHARE_SESSION_NOT_FOUND, Error.INVALID_SHARE_SESSION_EPOCH, Error.SHARE_SESSION_LIMIT_REACHED],
)
def test_a_session_that_the_broker_does_not_know_is_opened_anew_after_the_backoff(error: Error) -> None:
    member = reading({P0})
    told = member.acknowledges(P0, AckRange(0, 0, ACCEPT))
    member.sessions.wants_records = True
    member.answered(member.sends_one(), error)
    assert (member.sessions.done(), told.error) == ([told], error)
    late = member.acknowledges(P0, AckRange(1, 1, ACCEPT))
    assert member.sends() == []
    assert (member.sessions.done(), late.error) == ([late], Error.INVALID_SHARE_SESSION_EPOCH)
    assert member.sessions.next_ms(member.now_ms) == 100
    member.now_ms = 100
    assert member.sends_one() == ShareRequest(1, 0, True, (P0,))


def test_another_error_of_the_whole_request_leaves_the_session() -> None:
    member = reading({P0})
    member.sessions.wants_records = True
    member.answered(member.sends_one(), Error.UNKNOWN_SERVER_ERROR)
    member.now_ms = 100
    assert member.sends_one().epoch == 2


def test_a_broken_connection_ends_the_session_and_what_was_under_way() -> None:
    member = reading({P0})
    told = member.acknowledges(P0, AckRange(0, 0, ACCEPT))
    request = member.sends_one()
    member.sessions.answered(request, Disconnected(), member.now_ms)
    assert (member.sessions.done(), told.error) == ([told], Error.NETWORK_EXCEPTION)
    member.now_ms = 100
    assert member.asks().epoch == 0
    member.sessions.lost(1)
    assert member.asks() == ShareRequest(1, 0, True, (P0,)), "it broke while nothing was under way"


@pytest.mark.parametrize("error", [Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS])
def test_errors_that_pass_are_repeated_until_the_deadline(error: Error) -> None:
    member = reading({P0, P1})
    member.sessions.wants_records = False
    first = member.acknowledges(P0, AckRange(0, 0, ACCEPT), deadline_ms=150)
    other = member.acknowledges(P1, AckRange(0, 0, ACCEPT))
    member.answered(member.sends_one(), p0=error)
    assert member.sessions.done() == [other]
    assert member.sends() == []
    member.now_ms = 100
    member.answered(member.sends_one(), p0=error)
    assert member.sessions.done() == []
    member.now_ms = 200
    member.answered(member.sends_one(), p0=error)
    assert (member.sessions.done(), first.error) == ([first], error)


def test_a_member_closes_each_session_with_its_last_acknowledgements() -> None:
    member = Member()
    member.reads({P0}, {P1}, {P2})
    member.sessions.wants_records = True
    first, second, third = member.sends()
    member.answered(first)
    member.sessions.closing = True
    told = member.acknowledges(P0, AckRange(0, 3, ACCEPT))
    last = member.sends_one()
    assert last == ShareRequest(1, -1, False, acknowledgements=(told,))
    member.answered(second)
    (closes,) = member.sends()
    member.sessions.answered(third, Disconnected(), 0)
    assert (closes.node_id, closes.epoch, member.sends()) == (2, -1, [])
    member.answered(last, p0=Error.COORDINATOR_NOT_AVAILABLE)
    assert (member.sessions.done(), told.error) == ([told], Error.COORDINATOR_NOT_AVAILABLE)
    assert not member.sessions.is_closed
    member.answered(closes)
    assert member.sessions.is_closed


def test_ranges_are_told_in_order_and_neighbours_together() -> None:
    release = AcknowledgeType.RELEASE
    given = [AckRange(7, 7, ACCEPT), AckRange(0, 2, ACCEPT), AckRange(3, 3, ACCEPT), AckRange(4, 4, release)]
    assert joined([*given, AckRange(5, 6, GAP)]) == (
        AckRange(0, 3, ACCEPT),
        AckRange(4, 4, release),
        AckRange(5, 6, GAP),
        AckRange(7, 7, ACCEPT),
    )
    member = Member()
    both = tuple(member.acknowledges(P0, one) for one in (given[0], given[1]))
    request = ShareRequest(1, 1, False, acknowledgements=both)
    assert request.acknowledged == {P0: (given[1], given[0])}
