"""The broker of the virtual world by itself: its ids, one response at a time, writes, failures and timers."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.consumer.group import ConsumerGroupState
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeavingMember,
    Response,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.broker import GROUP, SeededMemberIds, VirtualBroker, broker_options, topic_id
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.time_loop import TimeLoop
from groupstorm.storms.world.trace_buffer import FLUSH_AT, TraceBuffer
from groupstorm.trace.rows import TraceEntry
from groupstorm.trace.schema import Source

MS, SECOND = 1_000, 1_000_000


def test_ids_stay_the_same_from_version_to_version() -> None:
    """Traces of the same seed do, too. Kafka draws both as random UUIDs (version 4)."""
    ids, others = SeededMemberIds(1), SeededMemberIds(2)
    assert [ids("member-0"), ids("member-1"), others("member-0")] == [
        "member-0-8d5c816f-1ebe-40ba-a867-1b92db010ecb",
        "member-1-a1f2157d-f753-4300-a176-e4ca4d7ae13f",
        "member-0-439e35b8-4064-436d-a400-e6a5e5b8d216",
    ]
    assert topic_id("topic-0") == UUID("517dbb1d-24ac-4a44-a521-ea4a0bd81030")
    assert topic_id("topic-0").version == 4


def test_limits_of_members_of_consumer_groups_are_those_of_the_setting() -> None:
    """group.consumer.min. and group.consumer.max. leave no other value."""
    options = broker_options(
        Settings(("", {"group.consumer.session.timeout.ms": 9_000, "group.max.size": 7}))
    )
    assert {
        value for name, value in options.items() if name.endswith("session.timeout.ms") and "consumer" in name
    } == {"9000"}
    assert options["group.max.size"] == "7"
    assert options["group.consumer.migration.policy"]


class Sink:
    """Where the trace goes; ``sizes``: how many rows at a time."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.sizes: list[int] = []

    def add(self, time_us: int, source: Source, event: Any) -> None:
        raise AssertionError("rows come several at a time")

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        before = len(self.rows)
        self.rows += entries
        self.sizes.append(len(self.rows) - before)

    def close(self) -> None:
        pass


class World:
    """A broker without members; ``said``: the events after which heartbeats may be answered differently;
    ``by_timers``: whether the broker said that a timer was the reason."""

    def __init__(self, fails_over: bool = False, **settings: Any) -> None:
        self.clock = Clock()
        self.sink = Sink()
        self.trace = TraceBuffer(self.clock, self.sink)
        self.said: list[str] = []
        self.by_timers: list[bool] = []
        self.failing = 0
        given = {"group.initial.rebalance.delay.ms": 0, "coordinator_service_us": 100, "append_latency_ms": 5}
        self.broker = VirtualBroker(
            Settings(("", given | settings)),
            1,
            self.clock,
            self.trace,
            None,
            self._changed,
            self._fails,
            fails_over,
        )
        self.loop = TimeLoop(self.clock, self.broker, self.trace)
        self.answers: list[tuple[int, Any]] = []

    def _changed(self, event: Any) -> None:
        self.said.append(type(event).__name__)
        self.by_timers.append(self.broker.fires_timers)

    def _fails(self) -> None:
        self.failing += 1

    def _receive(self, response: Response) -> None:
        self.answers.append((self.clock.now_us // MS, response))

    def join(self, member_id: str = "") -> None:
        protocols = (("range", b"x"),)
        self.broker.handle(
            JoinGroup(GROUP, member_id, None, 10_000, 20_000, "consumer", protocols, 9, "m"), self._receive
        )

    def to(self, ms: float) -> World:
        self.loop.run_until(round(ms * MS))
        return self

    def joined(self) -> Generation:
        """One member, in generation 1 from 1 ms on: the leader assigns nothing, and that is written."""
        self.to(1)
        self.join()
        _, refused = self.answers.pop()
        assert isinstance(refused, JoinGroupResponse)
        self.join(refused.member_id)
        self.to(1)
        _, joined = self.answers.pop()
        assert isinstance(joined, JoinGroupResponse)
        sync = SyncGroup(GROUP, joined.member_id, None, joined.generation, "consumer", "range", (), 5)
        self.broker.handle(sync, self._receive)
        return Generation(joined.generation, joined.member_id)


def test_a_write_holds_its_responses_back() -> None:
    world = World()
    member = world.joined()
    found = []
    for at_ms in (1, 5.999, 6):
        world.to(at_ms)
        found.append((world.broker.is_writing, world.broker.is_failing, len(world.answers)))
    assert found == [(True, False, 0), (True, False, 0), (False, False, 1)]
    assert world.broker.is_current(member)


@pytest.mark.parametrize(("until_ms", "takes_ms"), [(1, 5), (1.001, 40)])
def test_writes_that_begin_before_an_instant_are_slow(until_ms: float, takes_ms: int) -> None:
    world = World()
    world.broker.slow_appends(round(until_ms * MS), 40)
    world.joined()
    assert [at_ms for at_ms, _ in world.to(100).answers] == [1 + takes_ms]


@pytest.mark.parametrize(("append_ms", "told"), [(999, False), (1_000, True)])
def test_members_are_told_of_a_write_that_holds_their_responses_for_a_second(
    append_ms: int, told: bool
) -> None:
    world = World()
    world.broker.slow_appends(100 * MS, append_ms)
    world.joined()
    assert (world.failing > 0, world.broker.is_failing) == (told, False)


@pytest.mark.parametrize(("until_ms", "fails"), [(1, False), (1.001, True)])
def test_writes_that_begin_before_an_instant_fail(until_ms: float, fails: bool) -> None:
    world = World()
    world.broker.fail_appends(round(until_ms * MS))
    world.broker.fail_appends(0)  # which ends nothing
    world.joined()
    assert (world.broker.is_writing, world.broker.is_failing, world.failing > 0) == (True, fails, fails)
    [(_, answer)] = world.to(100).answers
    assert isinstance(answer, SyncGroupResponse)
    assert bool(answer.error) is fails


def test_what_arrives_behind_the_first_write_under_way_is_not_answered() -> None:
    """Writes of 40 ms begin at 1 ms and 20 ms; later ones take 5 ms."""
    world = World()
    world.broker.slow_appends(25 * MS, 40)
    member = world.joined()
    sync = SyncGroup(GROUP, member.member_id, None, member.id, "consumer", "range", (), 5)
    world.to(20).broker.handle(sync, world._receive)
    found = [world.to(at_ms).broker.answered_until_us / MS for at_ms in (20, 40.999, 41, 59, 60)]
    assert found == [1, 1, 20, 20, 60]
    world.join()
    assert world.broker.answered_until_us == 60 * MS


def test_one_response_leaves_at_a_time() -> None:
    world = World()
    assert world.broker.response_leaves_us() == 100
    assert world.broker.response_leaves_us() == 200
    world.to(0.15)
    assert world.broker.response_leaves_us() == 300
    world.to(0.3)
    assert world.broker.response_leaves_us() == 400
    world.to(7)
    assert world.broker.response_leaves_us() == 7_100


def test_requests_are_counted_with_their_errors() -> None:
    world = World()
    world.joined()
    world.broker.count(("Heartbeat", None), 0)
    assert world.to(100).broker.requests == {
        ("JoinGroup", "MEMBER_ID_REQUIRED"): 1,
        ("JoinGroup", None): 1,
        ("SyncGroup", None): 1,
    }
    world.broker.count(("Heartbeat", None), 3)
    world.broker.count(("Heartbeat", None), 2)
    assert world.broker.requests["Heartbeat", None] == 5


def test_heartbeats_of_the_present_generation_are_answered_without_an_error() -> None:
    config: Any = type(
        "Config", (), {"group_instance_id": None, "profile": type("P", (), {"heartbeat_version": 4})}
    )
    world = World()
    member = world.joined()
    assert not world.broker.is_current(Generation(member.id + 1, member.member_id))
    assert not world.broker.is_current(Generation(member.id, "another"))
    assert world.broker.is_current(member)
    world.to(10)
    assert world.broker.heartbeat(config, member) is Error.NONE
    assert world.broker.requests["Heartbeat", None] == 1
    world.join()
    world.join(world.answers[-1][1].member_id)
    assert not world.broker.is_current(member), "another member has joined"


def test_a_coordinator_that_is_away_has_no_timers_and_begins_sessions_anew() -> None:
    """The member's session would end at 10,001 ms. The next coordinator is there at 15 s."""
    world = World(fails_over=True)
    member = world.joined()
    world.to(5_000)
    world.broker.fail_over(15_000 * MS)
    world.broker.fail_over(12_000 * MS)  # a shorter absence within a longer one
    assert world.broker.due_us() == 15_000 * MS
    world.to(14_999)
    assert world.broker.is_current(member)
    world.to(24_999)
    assert world.broker.is_current(member)
    world.to(25_000)
    assert not world.broker.is_current(member), "10 s after the next coordinator began"
    assert world.broker.due_us() is None or world.broker.due_us() != 15_000 * MS


def test_a_session_ends_at_its_millisecond() -> None:
    """Written at 6 ms, the answer to SyncGroup begins it."""
    world = World()
    member = world.joined()
    due_us = world.to(10).broker.due_us()
    assert due_us is not None
    assert due_us % MS == 0
    assert world.to(due_us / MS - 0.001).broker.is_current(member)
    assert not world.to(due_us / MS).broker.is_current(member)
    assert world.said.count("MemberRemoved") == 1
    assert "MemberAdded" not in world.said


def test_the_broker_says_whether_a_timer_changes_the_group() -> None:
    """A member leaves, or its session ends: the group becomes empty."""
    for leaves in (True, False):
        world = World()
        assert not world.broker.fires_timers
        member = world.joined()
        world.to(10)
        world.by_timers.clear()
        if leaves:
            world.broker.handle(LeaveGroup(GROUP, (LeavingMember(member.member_id),), 5), world._receive)
        else:
            world.to(60_000)
        assert world.by_timers == [not leaves] * 3
        assert world.said[-1] == "GroupStateChanged"
        assert not world.broker.fires_timers


def test_rows_go_to_the_sink_in_their_order_when_there_are_enough_of_them() -> None:
    world = World()
    for _ in range(FLUSH_AT):
        world.join()  # without an id: each makes a pending member
    assert FLUSH_AT <= world.sink.sizes[0] < FLUSH_AT + 3
    world.to(1)
    assert [at_us for at_us, _, _ in world.sink.rows] == sorted(at_us for at_us, _, _ in world.sink.rows)
    assert world.trace.pending == []
    assert {source for _, source, _ in world.sink.rows} == {Source.COORDINATOR}


def test_the_session_of_a_member_out_of_touch_counts_from_the_millisecond_of_its_last_contact() -> None:
    world = World()
    asked = list[tuple[Any, ...]]()
    coordinator: Any = SimpleNamespace(out_of_touch=lambda *what: asked.append(what))
    world.broker.coordinator = coordinator
    world.clock.now_us = 9_000_999
    world.broker.out_of_touch("m-1", 7_000_999)
    assert asked == [(GROUP, "m-1", 7_000, 9_000)]


@pytest.mark.parametrize(
    ("now_ms", "member_id", "epoch", "classic", "is_quiet"),
    [
        (99, "m-1", 7, None, True),
        (100, "m-1", 7, None, False),
        (99, "m-1", 6, None, False),
        (99, "m-2", 7, None, False),
        (99, "m-1", 7, "classic", False),
    ],
)
def test_a_consumer_group_is_quiet_until_it_looks_at_its_topics_again(
    now_ms: int, member_id: str, epoch: int, classic: str | None, is_quiet: bool
) -> None:
    """It does so at 100 ms. Its only member is in epoch 7."""
    world = World()
    member = SimpleNamespace(epoch=7, classic=classic)
    group = SimpleNamespace(state=ConsumerGroupState.STABLE, members={"m-1": member}, refresh_ms=100)
    coordinator: Any = SimpleNamespace(consumer_group=lambda name: group, last_write=lambda name: None)
    world.broker.coordinator = coordinator
    world.clock.now_us = now_ms * MS
    assert world.broker.is_quiet(member_id, epoch) is is_quiet
