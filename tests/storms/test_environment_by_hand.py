"""What the parts of a run are told by what stands between them: protocols, topics, offsets, changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import (
    ConsumerGroupHeartbeat,
    JoinGroup,
    JoinGroupResponse,
    Response,
    SyncGroup,
)
from groupstorm.coordinator.records import GroupMetadataRecord
from groupstorm.storms.world.broker import GROUP, topic_id
from groupstorm.storms.world.environment import Environment, is_mixed, uses_consumer_protocol
from groupstorm.storms.world.time_loop import TimeLoop
from groupstorm.storms.world.topics import Topics
from tests.storms.storms_in_memory import FIXED, START, MemorySink, scenario

FAILOVER = {"at_ms": 60_000, "do": "coordinator-failover", "for_ms": 1_000}
AT_ONCE: dict[str, Any] = {"group.initial.rebalance.delay.ms": 0}
CONSUMER = {"group.protocol": "consumer"}
MIXED = {"member_settings": [{"members": [1], "settings": CONSUMER}]}
#: A round trip takes as long as the heartbeat interval.
FAR_AWAY = {"net_latency_ms": 2_500, "group.consumer.heartbeat.interval.ms": 5_000}


def environment(*steps: dict[str, Any], exact: bool | None = None, **settings: Any) -> Environment:
    """Of a run of two members; ``exact`` None: it is not said."""
    what = scenario([*(steps or (START,))], **FIXED | {"members": 2, "partitions": 2} | settings)
    resolved = what.resolve(None, 1, {})
    return (
        Environment(resolved, MemorySink()) if exact is None else Environment(resolved, MemorySink(), exact)
    )


def noting_member(notes: list[bool]) -> Any:
    """A process that notes when its next request is made real."""

    def make_next_real(generation_over: bool) -> None:
        notes.append(generation_over)

    return SimpleNamespace(name="a", periodic_requests=SimpleNamespace(make_next_real=make_next_real))


@pytest.mark.parametrize(
    ("settings", "uses_consumer", "mixed"),
    [({}, False, False), (CONSUMER, True, False), (MIXED, True, True)],
)
def test_protocols_are_those_of_all_members(
    settings: dict[str, Any], uses_consumer: bool, mixed: bool
) -> None:
    found = environment(**settings)
    assert uses_consumer_protocol(found.settings) is uses_consumer
    assert found.has_consumer_protocol is uses_consumer
    assert is_mixed(found.settings) is mixed


@pytest.mark.parametrize(
    ("exact", "settings", "sends"),
    [
        (None, {}, False),
        (False, CONSUMER, False),
        (True, {}, True),
        (False, MIXED, True),
        (False, CONSUMER | FAR_AWAY, True),
        (False, FAR_AWAY, False),
    ],
)
def test_heartbeats_are_sent_one_by_one_for_each_of_three_reasons(
    exact: bool | None, settings: dict[str, Any], sends: bool
) -> None:
    """The run shall be exact, members of both protocols meet, or a heartbeat may wait for an answer."""
    found = environment(exact=exact, **settings)
    assert found.exact is bool(exact)
    assert found.sends_heartbeats is sends


# --- topics


@pytest.mark.parametrize(("settings", "assigned"), [(CONSUMER, True), ({}, False)])
def test_a_coordinator_that_assigns_partitions_knows_the_topics_from_the_start(
    settings: dict[str, Any], assigned: bool
) -> None:
    found = environment(**settings)
    answers: list[Any] = []
    joins = ConsumerGroupHeartbeat(
        GROUP, "m-1", 0, rebalance_timeout_ms=20_000, topics=("topic-0",), owned=(), client_id="m"
    )
    found.broker.handle(joins, answers.append)
    TimeLoop(found.clock, found.broker, found.trace).run_until(1_000_000)
    [answer] = answers
    assert answer.error is NO_ERROR
    assert answer.assignment == ({topic_id("topic-0"): (0, 1)} if assigned else {})


@pytest.mark.parametrize(("settings", "tells"), [(CONSUMER, True), ({}, False)])
def test_changed_topics_are_told_to_a_coordinator_that_assigns_and_the_next_heartbeats_are_sent(
    settings: dict[str, Any], tells: bool
) -> None:
    found, told, notes = environment(**settings), list[Any](), list[bool]()
    broker: Any = SimpleNamespace(topics_changed=lambda *what: told.append(what))
    found.broker = broker
    found.members.add(noting_member(notes))
    found.topics_changed({"b": 3}, ["a"])
    assert told == ([({"b": 3}, ["a"])] if tells else [])
    assert len(notes) == (1 if tells else 0)


def test_all_topics_are_followed_if_nothing_else_is_said() -> None:
    topics = Topics({"a": 1})
    topics.grow("b", 1, 0)
    assert topics.partitions == (TopicPartition("a", 0), TopicPartition("b", 0))


def test_offsets_of_deleted_topics_are_refused_and_the_others_count() -> None:
    found = environment(topics=2)
    kept, gone = TopicPartition("topic-0", 1), TopicPartition("topic-1", 0)
    assert found.commit({kept: 5, gone: 7}) is NO_ERROR
    assert found.records.committed == {kept: 5, gone: 7}
    found.topics.delete("topic-1", 0)
    found.records.forget([gone])
    assert found.commit({kept: 8, gone: 9}) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert found.records.committed == {kept: 8}


# --- the coordinator


def join(found: Environment) -> str:
    """One member joins: its id."""
    answers: list[Response] = []
    loop = TimeLoop(found.clock, found.broker, found.trace)

    def ask(member_id: str) -> JoinGroupResponse:
        protocols = (("range", b"x"),)
        asks = JoinGroup(GROUP, member_id, None, 10_000, 20_000, "consumer", protocols, 9, "m")
        found.broker.handle(asks, answers.append)
        loop.run_until(found.clock.now_us)
        answer = answers.pop()
        assert isinstance(answer, JoinGroupResponse)
        return answer

    joined = ask(ask("").member_id)
    sync = SyncGroup(GROUP, joined.member_id, None, joined.generation, "consumer", "range", (), 5)
    found.broker.handle(sync, answers.append)
    loop.run_until(1_000_000)
    return joined.member_id


@pytest.mark.parametrize("fails_over", [False, True])
def test_the_coordinator_keeps_what_it_wrote_for_a_successor_if_there_will_be_one(fails_over: bool) -> None:
    found = environment(START, *([FAILOVER] if fails_over else []), **AT_ONCE)
    member_id = join(found)
    records = found.broker.coordinator.snapshot()
    rosters = [record.roster for record in records if isinstance(record, GroupMetadataRecord)]
    assert [[each.member_id for each in roster] for roster in rosters] == (
        [[member_id]] if fails_over else []
    )


def test_changes_of_the_group_are_told_to_what_counts_rounds_and_to_the_sessions() -> None:
    """One member joins at 7 ms, and its group goes through all states of a round."""
    found = environment(**AT_ONCE)
    rounds: list[tuple[str, int]] = []
    sessions: list[str] = []
    fakes: Any = (
        SimpleNamespace(group_changed=lambda event, at_us: rounds.append((event.state, at_us))),
        SimpleNamespace(group_changed=lambda event: sessions.append(event.state)),
    )
    found.rounds, found.sessions = fakes
    found.clock.advance_to(7_000)
    join(found)
    states = ["PreparingRebalance", "CompletingRebalance", "Stable"]
    assert rounds == [(state, 7_000) for state in states]
    assert sessions == states
