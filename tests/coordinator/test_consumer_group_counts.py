"""A consumer group counts along what its decisions need: at any time the counts are those of its members, and
every change can be taken back."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.consumer.group import (
    ConsumerGroup,
    ConsumerGroupState,
    ResolvedRegex,
)
from groupstorm.coordinator.consumer.group import is_homogeneous as group_is_homogeneous
from groupstorm.coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerEpochRecord,
    ConsumerMember,
    ConsumerRegexRecord,
)
from groupstorm.coordinator.consumer.subscriptions import (
    notice_topics,
    subscribed_topics,
    topics_of,
)
from groupstorm.coordinator.dispatch import WINGS
from groupstorm.coordinator.errors import CoordinatorFault
from groupstorm.coordinator.modern.member import MemberState
from groupstorm.coordinator.modern.subscribed import SubscribedTopics
from groupstorm.coordinator.records import immediate
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.topics import Topic, Topics
from tests.coordinator.consumer_world import group_state, held_partitions

T, U = UUID(int=1), UUID(int=2)
IDS = ("a", "b", "c", "d")
_topics = st.frozensets(st.sampled_from(("t", "u", "v")))
_regex = st.sampled_from(("", "", "r", "s"))


@st.composite
def members(draw: st.DrawFn, member_id: str) -> ConsumerMember:
    """A member that owns at most its own partition of each topic."""
    epoch, number = draw(st.integers(1, 3)), IDS.index(member_id)
    owns, gives_up = draw(st.booleans()), draw(st.booleans())
    is_classic = draw(st.booleans())
    protocols = tuple((name, b"") for name in draw(st.sampled_from((("x",), ("x", "y"), ("y",)))))
    return ConsumerMember(
        member_id,
        epoch=epoch,
        state=draw(st.sampled_from(MemberState)),
        instance=f"i-{member_id}" if number % 2 else None,
        topics=draw(_topics),
        regex=draw(_regex),
        assignor=draw(st.sampled_from((None, "uniform", "range"))),
        assigned={T: {number: epoch}} if owns else {},
        revoking={U: {number: epoch}} if gives_up else {},
        classic=ClassicMetadata(6_000, protocols) if is_classic else None,
    )


_changes = st.one_of(
    st.sampled_from(IDS).flatmap(lambda one: st.tuples(st.just(one), st.one_of(st.none(), members(one)))),
    st.tuples(
        st.sampled_from(("r", "s")),
        st.one_of(st.none(), _topics.map(lambda topics: ResolvedRegex(topics, 1, 0))),
    ),
)


def change(group: ConsumerGroup, what: tuple[str, Any]) -> None:
    name, value = what
    if name in IDS:
        group.set_member(name, value)
    else:
        group.set_resolved(name, value)


def counted(group: ConsumerGroup) -> SubscribedTopics:
    """Topic -> how many members name it, how many resolved expressions match it."""
    names = Counter(topic for member in group.members.values() for topic in member.topics)
    matches = Counter(topic for _, resolved in group.resolved.items() for topic in resolved.topics)
    return {topic: (names[topic], matches[topic]) for topic in names | matches}


def is_homogeneous(group: ConsumerGroup) -> bool:
    """Whether all members read the same topics: the same names, or one expression and no names."""
    ones = list(group.members.values())
    if not any(one.regex for one in ones):
        return len({one.topics for one in ones}) <= 1 and all(
            names for names, _ in counted(group).values() if ones
        )
    matches_once = all(matches == 1 for _, matches in counted(group).values())
    return len({one.regex for one in ones}) == 1 and not any(one.topics for one in ones) and matches_once


def most_named(group: ConsumerGroup) -> set[str | None]:
    named = Counter(one.assignor for one in group.members.values() if one.assignor is not None)
    return {name for name, count in named.items() if count == max(named.values())} or {None}


@given(st.lists(_changes, max_size=12))
def test_the_counts_are_those_of_the_members(changes: list[tuple[str, Any]]) -> None:
    group = ConsumerGroup("g")
    group.set_epoch(2, 7)
    group.set_assignment_epoch(2, 0)
    for one in changes:
        change(group, one)
        known = list(group.members.values())
        assert group.subscribed == counted(group)
        assert group.regexes == Counter(member.regex for member in known if member.regex)
        assert group.static_members == {
            member.instance: member.member_id for member in known if member.instance is not None
        }
        assert group.classic_members == sum(member.classic is not None for member in known)
        assert group.preferred_assignor() in most_named(group)
        assert held_partitions(group) == {
            (topic, number): member.epoch
            for member in known
            for partitions in (member.assigned, member.revoking)
            for topic, numbers in partitions.items()
            for number in numbers
        }
        at_target = [member for member in known if member.is_reconciled_to(2)]
        expected = (
            ConsumerGroupState.STABLE if len(at_target) == len(known) else ConsumerGroupState.RECONCILING
        )
        assert group.state is (expected if known else ConsumerGroupState.EMPTY)
        if one[0] in IDS and known:
            assert group.is_homogeneous == is_homogeneous(group)
        for name in ("x", "y"):
            spoken = [dict(member.classic.protocols) for member in known if member.classic is not None]
            if known:
                assert group.supports_classic("consumer", {name}) == all(name in each for each in spoken)
            assert not group.supports_classic("connect", {name})


@given(st.lists(_changes, max_size=6), st.lists(_changes, min_size=1, max_size=6))
def test_every_change_can_be_taken_back(before: list[tuple[str, Any]], after: list[tuple[str, Any]]) -> None:
    group = ConsumerGroup("g")
    for one in before:
        change(group, one)
    group.set_target("a", {T: (0,)})
    group.take_undo()
    state, homogeneous = group_state(group), group.is_homogeneous
    group.set_epoch(9, 1)
    group.set_assignment_epoch(9, 5)
    group.set_target("a", None)
    group.set_target("b", {T: (1,)})
    for one in after:
        change(group, one)
    for back in reversed(group.take_undo()):
        back()
    assert group_state(group) == state
    assert group.is_homogeneous == homogeneous
    assert group.undo == []
    group.set_member("d", ConsumerMember("d", epoch=4, topics=frozenset({"t"})))
    assert group.is_homogeneous == is_homogeneous(group)
    assert group.subscribed == counted(group)


@given(st.lists(_changes, max_size=8), members("a"))
def test_what_a_member_would_change_is_what_it_changes(
    changes: list[tuple[str, Any]], after: ConsumerMember
) -> None:
    """The topics and the assignor of a group are computed before the member's records are taken in."""
    group = ConsumerGroup("g")
    for one in changes:
        change(group, one)
    before = group.members.get("a")
    topics = subscribed_topics(group, before, after)
    assignor = group.preferred_assignor(before, after)
    shard = Shard(CoordinatorConfig(), str, immediate, False, WINGS)
    noticed = notice_topics(shard, group, True, before or ConsumerMember("a"), after, [])
    assert noticed.epoch == group.epoch + 1
    group.set_member("a", after)
    old = before.regex if before is not None else ""
    if old and old not in group.regexes:
        group.set_resolved(old, None)
    group.set_member("a", after)
    assert topics == counted(group)
    assert assignor in most_named(group)
    assert noticed.is_homogeneous == group.is_homogeneous


@given(st.lists(_changes, max_size=8), st.sets(st.sampled_from(IDS)))
def test_a_bump_without_members_is_for_the_topics_of_the_others(
    changes: list[tuple[str, Any]], gone: set[str]
) -> None:
    topics = Topics()
    topics.update({name: Topic(uuid5(T, name), 1) for name in ("t", "u", "v")}, ())
    group = ConsumerGroup("g")
    for one in changes:
        change(group, one)
    removed = [member for name, member in group.members.items() if name in gone]
    *forgotten, bump = group.bump_without(removed, topics)
    for member in removed:
        group.set_member(member.member_id, None)
    regexes = {record.regex for record in forgotten if isinstance(record, ConsumerRegexRecord)}
    assert regexes == {member.regex for member in removed} - {"", *group.regexes}
    for regex in regexes:
        group.set_resolved(regex, None)
    assert bump == ConsumerEpochRecord("g", group.epoch + 1, topics.hash_of(counted(group)))


def test_a_partition_is_not_given_to_two_members_at_one_epoch() -> None:
    """KAFKA-16147: a later epoch takes it over, an equal or older one is a fault."""
    group = ConsumerGroup("g")
    group.set_member("a", ConsumerMember("a", epoch=3, assigned={T: {0: 3}}))
    state = group_state(group)
    for epoch in (2, 3):
        with pytest.raises(
            CoordinatorFault, match=f"{T}-0 cannot have epoch {epoch}: it is still owned at 3"
        ):
            group.set_member("b", ConsumerMember("b", epoch=epoch, assigned={T: {0: epoch}}))
    assert group_state(group) == state
    group.set_member("b", ConsumerMember("b", epoch=4, revoking={T: {0: 2}}))
    assert group.partition_epoch(T, 0) == 4
    group.set_member("a", None)
    assert group.partition_epoch(T, 0) == 4, "the older owner takes nothing along"
    group.set_member("b", None)
    assert group.partition_epoch(T, 0) == -1


@pytest.mark.parametrize(
    ("regexes", "topics", "members", "expected"),
    [
        ({}, {"t": (2, 0), "u": (2, 0)}, 2, True),
        ({}, {"t": (2, 0), "u": (1, 0)}, 2, False),
        ({"r": 2}, {"t": (0, 1), "u": (0, 1)}, 2, True),
        ({"r": 2}, {}, 2, True),  # it matches nothing
        ({"r": 2}, {"t": (0, 1), "u": (1, 1)}, 2, False),  # one of them names a topic as well
        ({"r": 2}, {"t": (0, 2)}, 2, False),  # another expression is still resolved
        ({"r": 1}, {"t": (0, 1)}, 2, False),
        ({"r": 1, "s": 1}, {"t": (0, 1)}, 2, False),
    ],
)
def test_whether_all_members_read_the_same_topics(
    regexes: dict[str, int], topics: SubscribedTopics, members: int, expected: bool
) -> None:
    """ConsumerGroup.subscriptionType"""
    assert group_is_homogeneous(regexes, topics, members) is expected


def test_topics_of_a_member_come_in_the_order_of_kafkas_sets() -> None:
    """UnionSet: first the larger set, then what the other one has besides."""
    group = ConsumerGroup("g")
    group.set_resolved("r", ResolvedRegex(frozenset({"a", "b"}), 1, 0, ("b", "a")))
    group.set_resolved("none", ResolvedRegex(frozenset(), 1, 0))

    def topics(named: tuple[str, ...], regex: str) -> tuple[str, ...]:
        member = ConsumerMember("m", topics=frozenset(named), topics_in_order=named, regex=regex)
        return topics_of(group, member)

    assert topics(("d", "c"), "") == topics(("d", "c"), "unknown") == topics(("d", "c"), "none") == ("d", "c")
    assert topics((), "r") == ("b", "a")
    assert topics(("d",), "r") == ("b", "a", "d")
    assert topics(("a", "d"), "r") == ("b", "a", "d"), "of equal ones the expression's"
    assert topics(("d", "a", "c"), "r") == ("d", "a", "c", "b")
