"""Faults on a running broker, as clients meet them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import groupstorm
from groupstorm.clients.brokers import read_kind
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.testing import Broker, EmulatedBroker, FaultTimeout
from groupstorm.testing.real import RealBroker
from tests.broker import wire
from tests.broker.wire import RawClient
from tests.testing.members import AT_ONCE, GROUP, RawMember, address


@pytest.fixture
def broker() -> Iterator[EmulatedBroker]:
    with groupstorm.broker({"orders": 2}, AT_ONCE) as running:
        yield running


@pytest.fixture(params=["emulator", "proxy"])
def any_broker(request: pytest.FixtureRequest, broker: EmulatedBroker) -> Iterator[Broker]:
    """The emulator, and a proxy in front of it: it is used as any cluster at an address."""
    if request.param == "emulator":
        yield broker
        return
    with RealBroker(read_kind(broker.bootstrap_servers), allow_writes=True, faults=True) as proxied:
        yield proxied


def test_an_error_instead_of_an_answer_and_then_answers_again(any_broker: Broker) -> None:
    with RawMember(any_broker) as member:
        member.join_alone([0, 1])
        fault = any_broker.fail("Heartbeat", "COORDINATOR_LOAD_IN_PROGRESS", count=2, group=GROUP)
        answers = [member.heartbeat() for _ in range(3)]
        assert answers == [Error.COORDINATOR_LOAD_IN_PROGRESS] * 2 + [Error.NONE]
        fault.wait_used_up(timeout_s=0)
        assert fault.hits == 2


def test_a_failed_request_is_not_carried_out(any_broker: Broker, broker: EmulatedBroker) -> None:
    with RawMember(any_broker) as member:
        any_broker.fail("JoinGroup", "NOT_COORDINATOR")
        member.send_join()
        assert member.joined().error_code == Error.NOT_COORDINATOR
    assert (any_broker.group(GROUP).state, broker.events) == ("Dead", ())


def test_a_fault_of_one_client_does_not_affect_others(any_broker: Broker) -> None:
    with RawMember(any_broker, "one") as one, RawMember(any_broker, "other") as other:
        any_broker.fail("Heartbeat", "UNKNOWN_MEMBER_ID", client_id="one")
        assert other.heartbeat("nobody") == Error.UNKNOWN_MEMBER_ID  # what is true of it
        any_broker.fail("Heartbeat", "GROUP_AUTHORIZATION_FAILED", client_id="other")
        assert one.heartbeat("nobody") == Error.UNKNOWN_MEMBER_ID
        assert other.heartbeat("nobody") == Error.GROUP_AUTHORIZATION_FAILED


def test_a_slow_broker_stays_slow_until_the_block_ends(any_broker: Broker) -> None:
    with RawMember(any_broker) as member:
        with any_broker.slow(30, "Heartbeat", client_id="raw") as fault:
            began = time.monotonic()
            for _ in range(3):
                member.heartbeat()
            slow_s = time.monotonic() - began
        assert slow_s >= 0.09
        member.heartbeat()
        assert fault.hits == 3


async def test_a_slow_broker_in_an_async_test(any_broker: Broker) -> None:
    async with any_broker.slow(1) as fault:
        with RawMember(any_broker) as member:
            member.heartbeat()
    assert fault.hits == 1
    any_broker.slow(1)
    any_broker.clear_faults()
    with pytest.raises(FaultTimeout, match=r"on every API, 1 taken.*did not come"):
        await fault.used_up(timeout_s=0)


def test_a_delayed_request_is_served_later_and_others_meanwhile(any_broker: Broker) -> None:
    with RawMember(any_broker, "slow") as slow, RawMember(any_broker, "quick") as quick:
        fault = any_broker.delay("Heartbeat", 600_000, client_id="slow")
        slow.send_heartbeat()
        fault.wait_used_up()
        assert quick.heartbeat() == Error.UNKNOWN_MEMBER_ID
    with RawMember(any_broker, "slow") as slow:
        any_broker.delay("Heartbeat", 200, client_id="slow")
        began = time.monotonic()
        assert slow.heartbeat() == Error.UNKNOWN_MEMBER_ID
        assert time.monotonic() - began >= 0.2


def test_a_client_that_goes_during_a_delay_is_no_problem(any_broker: Broker) -> None:
    with RawMember(any_broker) as member:
        fault = any_broker.delay("Heartbeat", 50)
        member.send_heartbeat()
        fault.wait_used_up()
        any_broker.drop_connections()
    late = any_broker.delay("Heartbeat", 100)
    with RawMember(any_broker) as member:  # its answer comes behind the moment at which the other's was due
        assert member.heartbeat() == Error.UNKNOWN_MEMBER_ID
    assert late.hits == 1


def test_disconnect_closes_at_the_request(any_broker: Broker) -> None:
    any_broker.disconnect("Heartbeat")
    with RawMember(any_broker) as member:
        member.send_heartbeat()
        assert member.is_closed_by_server()
    with RawMember(any_broker) as member:
        assert member.heartbeat() == Error.UNKNOWN_MEMBER_ID


def test_cleared_faults_do_nothing(any_broker: Broker) -> None:
    fault = any_broker.fail("Heartbeat", "NOT_COORDINATOR", count=5)
    any_broker.clear_faults()
    with RawMember(any_broker) as member:
        assert member.heartbeat() == Error.UNKNOWN_MEMBER_ID
    assert fault.hits == 0


async def test_waiting_for_a_fault_says_what_did_not_come(any_broker: Broker) -> None:
    fault = any_broker.fail("Heartbeat", "NOT_COORDINATOR", count=5)
    with RawMember(any_broker) as member:
        member.heartbeat()
    sentence = r"0.01 s: <Fault .*NOT_COORDINATOR.* on Heartbeat, 1 of 5 taken>: the requests did not come"
    with pytest.raises(FaultTimeout, match=sentence):
        await fault.used_up(timeout_s=0.01)
    with pytest.raises(FaultTimeout, match=sentence):
        fault.wait_used_up(timeout_s=0.01)


def test_connections_are_dropped_by_client_and_all(any_broker: Broker) -> None:
    with RawMember(any_broker, "one") as one, RawMember(any_broker, "other") as other:
        one.heartbeat()
        other.heartbeat()
        assert any_broker.drop_connections("one") == 1
        assert one.is_closed_by_server()
        assert any_broker.drop_connections("one") == 0, "it has none any more"
        assert other.heartbeat() == Error.UNKNOWN_MEMBER_ID
        assert any_broker.drop_connections() == 1
        assert other.is_closed_by_server()


def test_a_member_expires_as_if_its_session_had_ended(broker: EmulatedBroker) -> None:
    with RawMember(broker) as member:
        member.join_alone([0, 1])
        broker.expire_member(GROUP, member.member_id)
        group = broker.group(GROUP)
        assert (group.state, group.members) == ("Empty", ())
        assert member.heartbeat() == Error.UNKNOWN_MEMBER_ID
    (removed,) = [row for row in broker.trace if row["event"] == "member_removed"]
    assert (removed["cause"], removed["member_id"]) == ("session-expired", member.member_id)


def test_an_expiring_member_is_named_by_a_unique_id_and_is_not_parked(broker: EmulatedBroker) -> None:
    with RawMember(broker, "one") as one, RawMember(broker, "one") as other:
        one.join_alone([0, 1])
        with pytest.raises(InputError, match=r"^member: 'two' is not in group readers: in it is one-"):
            broker.expire_member(GROUP, "two")
        other.send_join()
        broker.group(GROUP).wait_reaches("PreparingRebalance")
        one.send_join()
        one.joined()
        other.joined()
        one.sync({one.member_id: [0], other.member_id: [1]})
        with pytest.raises(InputError, match=r"^member: 'one' are several, name one by its member id: one-"):
            broker.expire_member(GROUP, "one")
        one.send_join()
        broker.group(GROUP).wait_reaches("PreparingRebalance")
        with pytest.raises(InputError, match=rf"^member: '{one.member_id}' is parked in JoinGroup"):
            broker.expire_member(GROUP, one.member_id)
        broker.expire_member(GROUP, other.member_id)
        assert one.joined().error_code == Error.NONE, "the round closes: the last one missing is gone"
    with pytest.raises(InputError, match=r"^group: 'none': there is no such group; there are: readers$"):
        broker.expire_member("none", "one")


def test_a_new_member_that_is_parked_expires_as_by_the_five_minute_rule(broker: EmulatedBroker) -> None:
    with RawMember(broker, "one") as one, RawMember(broker, "new") as new:
        one.join_alone([0, 1])
        new.send_join()
        broker.group(GROUP).wait_reaches("PreparingRebalance")
        broker.expire_member(GROUP, "new")
        assert new.joined().error_code == Error.UNKNOWN_MEMBER_ID
    assert [row["cause"] for row in broker.trace if row["event"] == "member_removed"] == [
        "new-member-timeout"
    ]


def test_the_coordinator_moves(broker: EmulatedBroker) -> None:
    with RawMember(broker) as member, RawMember(broker) as other:
        member.join_alone([0, 1])
        other.send_join()
        broker.group(GROUP).wait_reaches("PreparingRebalance")
        broker.move_coordinator(GROUP)
        assert other.joined().error_code == Error.NOT_COORDINATOR
    with pytest.raises(InputError, match=r"^broker: 2: expected one of 1"):
        broker.move_coordinator(GROUP, 2)


def test_a_paused_broker_answers_nothing_until_it_goes_on(any_broker: Broker) -> None:
    with RawMember(any_broker) as member:
        member.join_alone([0, 1])
        any_broker.pause()
        member.send_heartbeat()
        with RawMember(any_broker) as late:  # is accepted, and not answered either
            late.send_heartbeat()
            assert late.is_silent()
            any_broker.resume()
            assert late.answer(wire.HEARTBEAT, 3).error_code == Error.UNKNOWN_MEMBER_ID
        assert member.answer(wire.HEARTBEAT, 3).error_code == Error.NONE


def test_responses_of_a_pause_are_sent_after_it(broker: EmulatedBroker) -> None:
    """A parked JoinGroup whose round closes while the broker is paused."""
    with RawMember(broker) as member, RawMember(broker) as other:
        member.join_alone([0, 1])
        other.send_join()
        broker.group(GROUP).wait_reaches("PreparingRebalance")
        broker.pause(1)
        broker.expire_member(GROUP, member.member_id)
        assert other.is_silent()
        broker.resume(1)
        assert other.joined().error_code == Error.NONE


def test_one_of_several_brokers_is_paused() -> None:
    with (
        groupstorm.broker(brokers=2) as broker,
        RawClient(address(broker, 0)) as first,
        RawClient(address(broker, 1)) as second,
    ):
        broker.pause(2)
        assert first.ask(wire.API_VERSIONS, 0).error_code == Error.NONE
        second.send(wire.framed(wire.request(wire.API_VERSIONS, 0)))
        assert second.is_silent()
        with pytest.raises(InputError, match=r"^broker: 3: expected one of 1, 2"):
            broker.pause(3)


def test_a_paused_broker_can_be_stopped() -> None:
    with groupstorm.broker(settings=AT_ONCE) as broker, RawMember(broker) as member:
        broker.pause()
        member.send_heartbeat()
