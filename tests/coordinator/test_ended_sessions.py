"""Commands that end the session of a member of a consumer group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.script.driver import Driver
from groupstorm.coordinator.script.names import Names
from groupstorm.coordinator.simulated import ObservedTimers, SimulatedGroupCoordinator
from groupstorm.coordinator.timers import MEMBER_SESSION
from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group


def in_group() -> Group:
    group = Group()
    group.join("a")
    group.join("b")
    group.settle()
    return group


def test_the_session_of_a_member_of_a_consumer_group_ends_on_command() -> None:
    group = in_group()
    effects = group.driver.coordinator.expire_session("g", "a", group.driver.now_ms)
    removed = [event for event in effects.events if isinstance(event, events.MemberRemoved)]
    assert [(event.member_id, event.cause) for event in removed] == [("a", "session-expired")]
    assert list(group.group.members) == ["b"]
    assert effects.records, "the removal is written"


def test_the_session_of_nobody_in_a_consumer_group_ends_with_nothing() -> None:
    group = in_group()
    before = group.driver.coordinator.next_deadline()
    effects = group.driver.coordinator.expire_session("g", "c", group.driver.now_ms)
    assert effects.events == []
    assert group.driver.coordinator.next_deadline() == before
    assert sorted(group.group.members) == ["a", "b"]


@pytest.mark.parametrize(("fails", "left"), [(False, ()), (True, (("a", "client-a"),))])
def test_a_member_whose_leaving_cannot_be_written_has_no_session(fails: bool, left: tuple[Any, ...]) -> None:
    group = Group()
    group.driver = Driver(
        CoordinatorConfig(), names=Names("test"), topics={"t": 4}, coordinator=SimulatedGroupCoordinator
    )
    coordinator = group.driver.coordinator
    assert isinstance(coordinator, SimulatedGroupCoordinator)
    assert coordinator.members_without_session("g") == ()
    for member in ("a", "b"):
        group.join(member, client_id=f"client-{member}")
    assert coordinator.members_without_session("g") == ()
    group.driver.append_error = Error.NOT_ENOUGH_REPLICAS if fails else None
    group.beat("a", epoch=-1)
    assert coordinator.members_without_session("g") == left


@pytest.mark.parametrize(("now_ms", "until_ms"), [(50_000, 75_000), (80_000, 80_000)])
def test_a_session_lasts_from_the_last_computed_heartbeat_but_does_not_end_in_the_past(
    now_ms: int, until_ms: int
) -> None:
    group = Group()
    group.driver = Driver(
        CoordinatorConfig(), names=Names("test"), topics={"t": 4}, coordinator=SimulatedGroupCoordinator
    )
    coordinator = group.driver.coordinator
    assert isinstance(coordinator, SimulatedGroupCoordinator)
    group.join("a")
    coordinator.session_since("g", "a", 30_000_999, now_ms)
    assert coordinator.next_deadline() == until_ms
    coordinator.session_since("g", "nobody", 30_000_999, now_ms)
    coordinator.session_since("no group", "a", 30_000_999, now_ms)
    assert coordinator.next_deadline() == until_ms


def test_sessions_that_end_at_one_millisecond_end_in_the_order_of_the_last_contacts() -> None:
    """Requests of "b" and "d" arrive within a millisecond; heartbeats of "c" and "a", which arrived before
    and between, are computed afterwards."""
    clock = SimpleNamespace(now_us=0)

    def make(*given: Any, **options: Any) -> SimulatedGroupCoordinator:
        return SimulatedGroupCoordinator(*given, **options, now_us=lambda: clock.now_us)

    group = Group()
    group.driver = Driver(CoordinatorConfig(), names=Names("test"), topics={"t": 4}, coordinator=make)
    coordinator = group.driver.coordinator
    assert isinstance(coordinator, SimulatedGroupCoordinator)
    for clock.now_us, member in ((0, "a"), (0, "c"), (300, "b"), (700, "d")):
        group.join(member)
    coordinator.session_since("g", "c", 500, 40_000)
    coordinator.session_since("g", "a", 100, 40_000)
    ended = coordinator.fire(45_000).events
    assert [event.member_id for event in ended if isinstance(event, events.MemberRemoved)] == [*"abcd"]


def _ended(timers: ObservedTimers, now_ms: int = 1_000) -> str:
    """The members whose sessions end by then, in their order."""
    names = ""
    while (timer := timers.pop_due(now_ms)) is not None:
        names += timer.key[2]
    return names


def _timers(**contacts_us: int) -> ObservedTimers:
    """Sessions that end at 1,000 ms, by the last contact of each member."""
    clock = SimpleNamespace(now_us=0)
    timers = ObservedTimers(lambda _: None, lambda: clock.now_us)
    for name, clock.now_us in contacts_us.items():
        timers.set(MEMBER_SESSION, "g", name, 1_000)
    return timers


def test_a_session_stands_behind_those_of_earlier_and_equal_contacts() -> None:
    for contact_us, order in ((0, "xabc"), (1, "axbc"), (2, "abxc"), (3, "abcx"), (9, "abcx")):
        timers = _timers(a=1, b=2, c=3)
        timers.set_member_session_since("g", "x", 1_000, contact_us)
        assert _ended(timers) == order


def test_a_session_stands_behind_those_that_have_ended_at_its_millisecond() -> None:
    timers = _timers(a=1, b=2, c=3)
    assert [timer.key[2] for timer in (timers.pop_due(1_000), timers.pop_due(1_000)) if timer] == ["a", "b"]
    timers.set_member_session_since("g", "x", 1_000, 0)
    assert _ended(timers) == "xc"


def test_sessions_that_have_ended_at_another_millisecond_do_not_matter() -> None:
    timers = _timers(a=1, b=2)
    for name, contact_us in (("y", 8), ("x", 7), ("z", 6)):
        timers.set_member_session_since("g", name, 2_000, contact_us)
    assert timers.pop_due(1_000) is not None
    timers.set_member_session_since("g", "w", 2_000, 5)
    assert (_ended(timers), _ended(timers, 2_000)) == ("b", "wzxy")


def test_a_request_is_contact_at_the_time_of_the_coordinator_if_the_driver_has_no_other() -> None:
    """In microseconds: a heartbeat half a millisecond later ends its session behind it."""
    group = Group()
    group.driver = Driver(
        CoordinatorConfig(), names=Names("test"), topics={"t": 4}, coordinator=SimulatedGroupCoordinator
    )
    coordinator = group.driver.coordinator
    assert isinstance(coordinator, SimulatedGroupCoordinator)
    group.driver.now_ms = 1_000
    for member in ("b", "a"):
        group.join(member)
    coordinator.session_since("g", "b", 1_000_500, 2_000)
    ended = coordinator.fire(46_000).events
    assert [event.member_id for event in ended if isinstance(event, events.MemberRemoved)] == ["a", "b"]
