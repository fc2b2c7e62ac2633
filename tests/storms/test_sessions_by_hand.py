"""What the coordinator learns about sessions whose heartbeats are computed, and which series counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.simulated import IN_TOUCH
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.periodic_requests import SessionArbiter
from groupstorm.storms.world.periodic_requests.schedule import HEARTBEAT, RequestSchedule
from groupstorm.trace.events import coordinator as events

SESSION_MS = 10_000


class Requests:
    """Those of one member. ``contact_ms`` is when one arrived last."""

    def __init__(self, contact_ms: int | None, silent: bool = True, alive: bool = True) -> None:
        self.session_timeout_ms = SESSION_MS
        self.contact_ms = contact_ms
        self.silent = silent
        self.alive = alive
        self.made_real: list[bool] = []
        self.failing = 0
        self.epochs = 0

    def last_contact_ms(self, deadline_ms: int) -> int | None:
        return self.contact_ms

    def silent_since_us(self) -> int | None:
        return self.contact_ms * 1000 if self.silent and self.contact_ms is not None else None

    def make_next_real(self, generation_over: bool) -> None:
        self.made_real.append(generation_over)

    def epoch_changes(self) -> None:
        self.epochs += 1

    def write_holds_responses(self) -> None:
        self.failing += 1


def arbiter(**members: Requests) -> SessionArbiter:
    """Each runs in the process of its name."""
    found = SessionArbiter({name: SimpleNamespace(periodic_requests=each) for name, each in members.items()})
    found.by_member_id.update(members)
    return found


def test_a_member_that_never_sent_anything_has_no_contact() -> None:
    assert arbiter().last_contact_ms("g", "a", 10_000) is None


def test_a_contact_that_moves_the_deadline_is_told() -> None:
    assert arbiter(a=Requests(1)).last_contact_ms("g", "a", 10_000) == 1
    assert arbiter(a=Requests(0)).last_contact_ms("g", "a", 10_000) is None
    assert arbiter(a=Requests(IN_TOUCH)).last_contact_ms("g", "a", 10_000) == IN_TOUCH


def test_of_sessions_that_end_at_one_millisecond_the_one_that_fell_silent_first_ends_first() -> None:
    """b fell silent in the same millisecond as a, but earlier. a is asked about first, and again later."""
    a, b = Requests(5_000), Requests(5_000)
    a.silent_since_us, b.silent_since_us = lambda: 5_000_900, lambda: 5_000_100  # type: ignore[method-assign]
    both = arbiter(a=a, b=b)
    assert both.last_contact_ms("g", "a", 15_000) == 5_000
    assert both.last_contact_ms("g", "b", 15_000) is None
    assert both.last_contact_ms("g", "a", 15_000) is None


def test_three_of_one_millisecond_end_in_their_order() -> None:
    members = {name: Requests(5_000) for name in "abc"}
    for number, name in enumerate("cba"):
        members[name].silent_since_us = lambda us=5_000_100 + number: us  # type: ignore[method-assign, misc]
    three = arbiter(**members)
    waiting = ["a", "b", "c"]
    ended: list[str] = []
    while waiting and len(ended) < 3:
        name = waiting.pop(0)
        if three.last_contact_ms("g", name, 15_000) is None:
            ended.append(name)
        else:
            waiting.append(name)
    assert ended == ["c", "b", "a"]


def test_a_member_whose_session_has_no_timer_is_not_waited_for() -> None:
    """b's JoinGroup is parked: the coordinator never asks about b."""
    a, b = Requests(5_000), Requests(5_000)
    a.silent_since_us, b.silent_since_us = lambda: 5_000_900, lambda: 5_000_100  # type: ignore[method-assign]
    both = arbiter(a=a, b=b)
    assert both.last_contact_ms("g", "a", 15_000) == 5_000
    assert both.last_contact_ms("g", "a", 15_000) is None


def test_sessions_of_another_millisecond_and_members_in_touch_are_not_waited_for() -> None:
    a, earlier, later = Requests(5_000), Requests(4_999), Requests(5_001)
    in_touch = Requests(5_000, silent=False)
    several = arbiter(earlier=earlier, later=later, in_touch=in_touch, a=a)
    assert several.last_contact_ms("g", "a", 15_000) is None


def test_the_next_millisecond_has_an_order_of_its_own() -> None:
    """At 15,000 ms b goes before a. At 16,000 ms it is the other way round."""
    a, b = Requests(5_000), Requests(5_000)
    a.silent_since_us, b.silent_since_us = lambda: 5_000_900, lambda: 5_000_100  # type: ignore[method-assign]
    both = arbiter(a=a, b=b)
    assert both.last_contact_ms("g", "a", 15_000) == 5_000
    a.contact_ms = b.contact_ms = 6_000
    a.silent_since_us, b.silent_since_us = lambda: 6_000_100, lambda: 6_000_900  # type: ignore[method-assign]
    assert both.last_contact_ms("g", "b", 16_000) == 6_000
    assert both.last_contact_ms("g", "a", 16_000) is None
    assert both.last_contact_ms("g", "b", 16_000) is None


def state(to: str) -> events.GroupStateChanged:
    return events.GroupStateChanged("g", "Stable", to, 1, "", None, None, None, 2)


def test_a_round_makes_the_next_requests_real_and_its_end_those_of_the_old_generation() -> None:
    a = Requests(0)
    found = arbiter(a=a)
    for to in ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty"):
        found.group_changed(state(to))
    assert a.made_real == [False, True]


def test_the_next_request_of_a_member_that_is_gone_is_real_if_its_process_runs() -> None:
    a, b, c = Requests(0), Requests(0, alive=False), Requests(0)
    found = arbiter(a=a, b=b, c=c)
    for member in "ab":
        found.group_changed(events.MemberRemoved("g", member, member, None, 1, "left"))
    found.group_changed(events.MemberReplaced("g", "c", "new", "c", "c", 1))
    found.group_changed(events.MemberRemoved("g", "x", "nobody", None, 1, "left"))
    assert [each.made_real for each in (a, b, c)] == [[True], [], [True]]
    assert found.by_member_id == {}


def test_all_processes_are_told_of_a_write_that_fails() -> None:
    a, b = Requests(0), Requests(0)
    arbiter(a=a, b=b).write_holds_responses()
    assert (a.failing, b.failing) == (1, 1)


# --- one series: sent at 4 s, 7 s, 10 s and so on; each takes 10 ms, and none can take more than 20 ms


def series() -> RequestSchedule:
    connection = SimpleNamespace(epoch=0, periodic_latency_us=lambda sent_us: 10_000)
    anything: Any = None
    way = cast(VirtualConnection, connection)
    return RequestSchedule(HEARTBEAT, 1_000_000, 3_000_000, anything, way, 20_000)


def test_when_requests_leave_and_arrive() -> None:
    found = series()
    assert [found.sent_us(k) for k in (1, 2)] == [4_000_000, 7_000_000]
    assert [found.arrival_us(k) for k in (1, 2)] == [4_010_000, 7_010_000]
    assert [found.arrives_after(1, at) for at in (4_000_000, 4_009_999, 4_010_000)] == [True, True, False]
    assert [found.last_sent(at) for at in (0, 4_000_000, 4_000_001, 7_000_001)] == [0, 0, 1, 2]
    assert [found.last_arrived(at) for at in (4_009_999, 4_010_000, 7_010_000)] == [0, 1, 2]
    assert [found.first_arriving(at) for at in (0, 4_010_000, 4_010_001)] == [1, 1, 2]
    assert [found.next_sent_us(at) for at in (0, 4_000_000, 4_000_001)] == [4_000_000, 4_000_000, 7_000_000]
    assert found.most_apart_us() == 3_020_000


def test_computed_requests_are_those_with_something_to_say_that_are_not_real() -> None:
    """Two had nothing to say: that the second of them was real takes nothing from those behind it."""
    found = series()
    found.empty, found.real = 2, (2, 3, 5, 6)
    assert [found.computed(last) for last in (1, 2, 3, 4, 5, 6)] == [0, 0, 0, 1, 1, 1]


def test_nothing_leaves_when_the_series_has_ended_and_nothing_arrives_when_the_connection_is_lost() -> None:
    found = series()
    found.end_us = 7_000_000
    assert [found.is_sent(k) for k in (1, 2)] == [True, False]
    assert (found.last_sent(60_000_000), found.last_arrived(60_000_000)) == (1, 1)
    found.end_us = 7_000_001
    assert found.is_sent(2)
    found.cut_us = 7_009_999
    assert found.last_arrived(60_000_000) == 1
    found.cut_us = 7_010_000
    assert found.last_arrived(60_000_000) == 2


def test_which_requests_were_contact_with_the_coordinator() -> None:
    """The first two had nothing to say; the coordinator has refused the fifth one."""
    found = series()
    found.empty, found.refused = 2, 5
    assert [found.accepted(k) for k in range(8)] == [0, 0, 0, 3, 4, 4, 4, 4]
    found.refused = 3
    assert found.accepted(6) == 0
    found.empty, found.refused = 0, 1
    assert found.accepted(6) == 0


def test_computed_requests_are_those_that_had_something_to_say_and_were_not_real() -> None:
    found = series()
    found.empty, found.real = 2, (1, 4, 9)
    assert [found.computed(k) for k in (1, 2, 3, 4, 6)] == [0, 0, 1, 1, 3]
    found.forget(4)
    assert list(found.real) == [1, 9]
    assert found.computed(6) == 4


def test_only_the_member_that_was_brought_to_another_epoch_is_told() -> None:
    a, b = Requests(1), Requests(1)
    told = events.MemberReconciled("g", "a", "a", 5, "STABLE", (), ())
    arbiter(a=a, b=b).group_changed(told)
    assert (a.epochs, b.epochs) == (1, 0)
    arbiter(b=b).group_changed(told)


def test_a_request_carries_what_the_member_was_when_it_left() -> None:
    """Another epoch comes at 7 s, when the second request leaves, and a third one at 10.000001 s."""
    found = series()
    first, second, third = (Generation(epoch, "m") for epoch in (1, 2, 3))
    found.generation = first
    found.carry(second, 7_000_000)
    assert [found.generation_of(k) for k in (1, 2, 3)] == [first, second, second]
    found.carry(third, 10_000_001)
    assert [found.generation_of(k) for k in (3, 4)] == [second, third]
    found.carry(first, 10_015_000)
    assert [found.generation_of(k) for k in (3, 4)] == [second, first]
