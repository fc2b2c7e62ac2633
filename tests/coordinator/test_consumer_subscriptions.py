"""Subscriptions of consumer groups: when topics and regular expressions are looked at again, and what changes
then (GroupMetadataManager.maybeUpdateRegularExpressions, updateSubscriptionMetadata)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.consumer.group import ConsumerGroup, ResolvedRegex
from groupstorm.coordinator.consumer.member import (
    ConsumerEpochRecord,
    ConsumerMember,
    ConsumerRegexRecord,
    ConsumerTargetRecord,
)
from groupstorm.coordinator.consumer.subscriptions import take_resolved
from groupstorm.coordinator.dispatch import WINGS
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.records import immediate
from groupstorm.coordinator.script.clients import topic_uuid
from groupstorm.coordinator.shard import Shard
from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group


def matching(group: Group) -> dict[str, list[str]]:
    """Regular expression -> the topics that it matched when it was resolved last."""
    return {regex: sorted(one.topics) for regex, one in group.group.resolved.items()}


def alive(group: Group, duration_ms: int, members: Sequence[str] = ("a",)) -> None:
    """Time passes, with a heartbeat every 20 s that subscribes to nothing new."""
    for _ in range(duration_ms // 20_000):
        group.advance(20_000)
        for member in members:
            group.beat(member)
    group.advance(duration_ms % 20_000)


def create(group: Group, *topics: str) -> None:
    group.driver.change_topics(dict.fromkeys(topics, 2), ())


# regular expressions


@pytest.mark.parametrize(("waits_ms", "is_resolved"), [(10_000, False), (10_001, True)])
def test_expressions_are_resolved_again_after_more_than_ten_seconds(waits_ms: int, is_resolved: bool) -> None:
    group = Group()
    group.join("a", topics=[], regex="t|v")
    create(group, "v")
    group.advance(waits_ms)
    group.beat("a")
    assert matching(group) == {"t|v": ["t", "v"] if is_resolved else ["t"]}


@pytest.mark.parametrize(("waits_ms", "is_resolved"), [(600_000, False), (600_001, True)])
def test_without_new_topics_they_are_resolved_again_after_the_refresh_interval(
    waits_ms: int, is_resolved: bool
) -> None:
    """group.consumer.regex.refresh.interval.ms"""
    group = Group()
    group.join("a", topics=[], regex="t")
    alive(group, waits_ms)
    group.beat("a")
    [(_, resolved)] = group.group.resolved.items()
    assert resolved.resolved_at_ms == (waits_ms if is_resolved else 0)


def test_another_expression_of_the_only_member_takes_the_place_of_the_old_one() -> None:
    group = Group()
    group.join("a", topics=[], regex="t")
    alive(group, 20_000)
    epoch = group.group.epoch
    group.beat("a", regex="u")
    assert matching(group) == {"u": ["u"]}
    assert group.group.epoch == epoch + 1, "when it is resolved, not when it comes"
    assert group.beat("a").assignment == {topic_uuid("u"): (0, 1)}


def test_an_expression_that_is_known_and_not_resolved_yet_counts_when_it_is() -> None:
    group = Group()
    group.join("a", topics=[], regex="t")
    group.join("b", topics=[], regex="u")
    epoch = group.group.epoch
    group.join("c", topics=[], regex="u")
    assert group.group.epoch == epoch
    group.advance(10_001)
    group.beat("a")
    assert group.group.epoch == epoch + 1


def test_an_expression_that_is_dropped_counts_at_once() -> None:
    group = Group()
    group.join("a", topics=["u"], regex="t")
    epoch = group.group.epoch
    assert group.beat("a", regex="").member_epoch == epoch + 1
    assert matching(group) == {}


def test_when_the_last_subscriber_of_one_goes_the_others_are_resolved_again() -> None:
    group = Group()
    group.join("a", topics=[], regex="t")
    group.advance(10_001)
    for member in ("b", "c"):
        group.join(member, topics=[], regex="u")
    alive(group, 20_000, "abc")

    def resolved_at() -> list[int]:
        return [one.resolved_at_ms for _, one in group.group.resolved.items()]

    assert resolved_at() == [10_001, 10_001]
    group.beat("b", regex="")
    assert resolved_at() == [10_001, 10_001], "c still reads it"
    group.beat("c", regex="")
    assert resolved_at() == [30_001]


def test_topics_that_were_matched_are_noticed_once() -> None:
    """Each group looks at its topics again every ten minutes."""
    group = Group()
    group.join("a", topics=[], regex="t|v")
    create(group, "v")
    alive(group, 20_000)
    epoch = group.group.epoch
    assert matching(group) == {"t|v": ["t", "v"]}
    alive(group, 620_000)
    assert group.group.epoch == epoch


def test_what_nobody_subscribes_to_any_more_is_not_written_when_it_is_resolved() -> None:
    shard = Shard(CoordinatorConfig(), str, immediate, False, WINGS)
    group = ConsumerGroup("g")
    assert take_resolved(shard, group, {"t": ResolvedRegex(frozenset({"t"}), 1, 0)}) == []
    group.set_member("a", ConsumerMember("a", regex="t"))
    written = take_resolved(shard, group, {"t": ResolvedRegex(frozenset({"t"}), 1, 5)})
    assert written == [ConsumerRegexRecord("g", "t", ("t",), 1, 5), ConsumerEpochRecord("g", 2, 0)]


# topics


def test_what_a_failed_write_took_back_is_noticed_again() -> None:
    group = Group()
    group.join("a")
    epoch = group.group.epoch
    group.driver.change_topics({"t": 5}, ())
    group.driver.append_error = Error.NOT_ENOUGH_REPLICAS
    assert group.beat("a").error is Error.COORDINATOR_NOT_AVAILABLE
    group.driver.append_error = None
    group.advance(1_000)
    assert group.beat("a").member_epoch == epoch + 1


# targets


def test_only_targets_that_change_are_written_anew() -> None:
    group = Group()
    group.join("a")
    group.join("b", topics=["u"])
    group.settle()
    written = len(group.driver.appended)
    group.join("c", topics=["u"])
    [(records, _), *_] = group.driver.appended[written:]
    changed = {one.member_id for one in records if isinstance(one, ConsumerTargetRecord)}
    assert changed == {"b", "c"}


def assignor_and_targets(members: dict[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Return the assignor that ConsumerGroupDescribe names, and each member's number of partitions of t and
    u."""
    group = Group()
    for name, fields in members.items():
        group.join(name, **fields)
    targets = {
        name: [len(target.get(topic_uuid(topic), ())) for topic in ("t", "u")]
        for name, target in group.group.targets.items()
    }
    return group.group.preferred_assignor() or "uniform", targets


def test_the_assignor_that_most_members_name_assigns() -> None:
    """Range gives the first member more of each topic, uniform the same number in all."""
    both = {"topics": ["t", "u"]}
    members: dict[str, dict[str, Any]] = {name: dict(both) for name in "abcd"}
    assert assignor_and_targets(members)[0] == "uniform"
    members["d"]["assignor"] = "range"
    assert assignor_and_targets(members) == (
        "range",
        {"a": [1, 1], "b": [1, 1], "c": [1, 0], "d": [1, 0]},
    )
    members["a"]["assignor"] = members["b"]["assignor"] = "uniform"
    named, targets = assignor_and_targets(members)
    assert named == "uniform"
    assert sorted(sum(each) for each in targets.values()) == [1, 1, 2, 2]


def test_events_say_each_change_once() -> None:
    group = Group()
    group.join("a", instance="i")
    group.beat("a", topics=["t", "u"], instance="i")
    group.beat("a", regex="u", instance="i")
    group.beat("a", topics=["t"], regex="", instance="i")
    group.beat("a", instance="i")
    assert [one.generation for one in group.of(events.MemberUpdated)] == [3, 3, 5]
    group.beat("a", epoch=-2, instance="i")
    group.join("b", instance="i")
    assert [(one.member_id, one.previous_member_id) for one in group.of(events.MemberReplaced)] == [
        ("b", "a")
    ]
    assert [(one.member_id, one.cause) for one in group.of(events.MemberAdded)] == [("a", "static-member")]
    assert group.of(events.MemberRemoved) == []
    assert [one.generation for one in group.of(events.GroupEpochBumped)] == [2, 3, 4, 5]
