"""A consumer group counts along what its decisions need: at any time the counts are those of its members, and
every change can be taken back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.consumer.changes import write_records
from groupstorm.coordinator.consumer.group import (
    ConsumerGroup,
    ConsumerGroupState,
    ResolvedRegex,
    SubscribedTopics,
)
from groupstorm.coordinator.consumer.group import is_homogeneous as group_is_homogeneous
from groupstorm.coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMember,
    MemberState,
    owns_any,
    owns_only,
)
from groupstorm.coordinator.consumer.records import ConsumerEpochRecord, ConsumerMemberRecord
from groupstorm.coordinator.consumer.subscriptions import (
    METADATA_REFRESH_INTERVAL_MS,
    notice_topics,
    subscribed_topics,
    topics_of,
    topics_without,
)
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.records import AppendCause, Record, immediate
from groupstorm.coordinator.shard import Shard
from tests.coordinator.group_state import group_state

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
        assert group.partition_epochs == {
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
    shard = Shard(CoordinatorConfig(), str, immediate, False)
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
def test_the_topics_without_members_are_those_that_the_others_leave(
    changes: list[tuple[str, Any]], gone: set[str]
) -> None:
    group = ConsumerGroup("g")
    for one in changes:
        change(group, one)
    removed = [member for name, member in group.members.items() if name in gone]
    topics = topics_without(group, removed, ["r"])
    for member in removed:
        group.set_member(member.member_id, None)
    group.set_resolved("r", None)
    assert topics == counted(group)


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


def naming(**counts: int) -> ConsumerGroup:
    """A group in which so many members name each assignor."""
    group = ConsumerGroup("g")
    for name, count in counts.items():
        for number in range(count):
            group.set_member(f"{name}-{number}", ConsumerMember(f"{name}-{number}", assignor=name))
    return group


def test_one_member_counts_once_for_the_assignor_that_it_names() -> None:
    """Ties go to one of the two, whichever has more members before."""
    tie = naming(range=1, uniform=1).preferred_assignor()
    nothing = ConsumerMember("new")
    for most, least in (("range", "uniform"), ("uniform", "range")):
        more = naming(**{most: 3, least: 1})
        gone = more.members[f"{most}-0"]
        assert more.preferred_assignor(gone, nothing) == more.preferred_assignor(gone, None) == most
        one_more = naming(**{most: 2, least: 1})
        assert one_more.preferred_assignor(nothing, ConsumerMember("new", assignor=least)) == tie
        assert one_more.preferred_assignor(None, ConsumerMember("new", assignor=most)) == most


def test_an_assignor_that_nobody_names_any_more_is_none() -> None:
    group = naming(range=1)
    member = group.members["range-0"]
    assert group.preferred_assignor() == "range"
    assert group.preferred_assignor(member, ConsumerMember("range-0")) is None
    group.set_member("range-0", ConsumerMember("range-0"))
    assert group.preferred_assignor() is None


def test_whether_members_read_the_same_is_counted_again_whenever_it_may_have_changed() -> None:
    group = ConsumerGroup("g")
    group.set_resolved("r", ResolvedRegex(frozenset({"t"}), 1, 0))
    found = []

    def put(name: str, regex: str, epoch: int = 1) -> None:
        group.set_member(name, ConsumerMember(name, regex=regex, epoch=epoch))
        found.append(group.is_homogeneous)

    put("a", "r")
    put("b", "r")
    put("b", "s")
    put("b", "r")
    group.set_resolved("s", ResolvedRegex(frozenset({"t"}), 1, 0))
    put("b", "r", epoch=2)  # two expressions match t
    group.take_undo()
    group.set_resolved("s", None)
    put("b", "r", epoch=3)
    for back in reversed(group.take_undo()):
        back()
    found.append(group.is_homogeneous)
    put("b", "r", epoch=4)
    assert found == [True, True, False, True, False, True, False, False]


def test_what_is_taken_back_is_counted_again_if_expressions_were_resolved_before_it() -> None:
    group = ConsumerGroup("g")
    for regex in ("r", "s"):
        group.set_resolved(regex, ResolvedRegex(frozenset(), 1, 0))
    group.set_member("a", ConsumerMember("a", regex="r"))
    group.set_resolved("r", ResolvedRegex(frozenset({"t"}), 2, 0))
    group.set_resolved("s", ResolvedRegex(frozenset({"t"}), 2, 0))
    group.take_undo()
    group.set_member("a", ConsumerMember("a", regex="r", epoch=2))
    for back in reversed(group.take_undo()):
        back()
    group.set_member("a", ConsumerMember("a", regex="r", epoch=3))
    assert not group.is_homogeneous


def test_the_epochs_of_partitions_follow_their_member() -> None:
    group = ConsumerGroup("g")
    member = ConsumerMember("a", epoch=2, assigned={T: {0: 2}}, revoking={U: {0: 1}})
    group.set_member("a", member)
    group.set_member("a", replace(member, epoch=3))
    assert group.partition_epochs == {(T, 0): 3, (U, 0): 3}
    group.set_member("a", replace(member, epoch=3, assigned={T: {1: 3}}))
    assert group.partition_epochs == {(T, 1): 3, (U, 0): 3}
    group.set_member("a", replace(member, epoch=3, assigned={T: {1: 3}}, revoking={}))
    assert group.partition_epochs == {(T, 1): 3}
    group.take_undo()
    known = group.members["a"]
    group.set_member("a", replace(known, revoking={U: {1: 1}}))
    assert group.partition_epochs == {(T, 1): 3, (U, 1): 3}
    for back in reversed(group.take_undo()):
        back()
    assert group.partition_epochs == {(T, 1): 3}


def test_instance_ids_come_back_with_what_is_taken_back() -> None:
    group = ConsumerGroup("g")
    group.set_member("a", ConsumerMember("a", instance="i"))
    group.take_undo()
    group.set_member("a", None)
    group.set_member("b", ConsumerMember("b", instance="i"))
    group.set_member("c", ConsumerMember("c", instance="j"))
    assert group.static_members == {"i": "b", "j": "c"}
    for back in reversed(group.take_undo()):
        back()
    assert group.static_members == {"i": "a"}


def test_a_new_group() -> None:
    group = ConsumerGroup("g")
    assert (group.epoch, group.assignment_epoch, group.state) == (1, 1, "Empty")
    assert (group.metadata_hash, group.assignment_ms, group.committed) == (0, -1, False)
    assert group.is_homogeneous
    assert group.supports_classic("consumer", {"any"})
    assert not group.supports_classic("consumer", set())


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


@pytest.mark.parametrize(
    ("owned", "any_", "only"),
    [
        (None, True, False),  # silence counts as owning what has to be given up
        ((), False, True),
        (((T, (0,)),), True, True),
        (((T, (0, 1)),), True, False),
        (((T, (1,)),), False, False),
        (((U, (0,)),), False, False),
        (((U, (0,)), (T, (0,))), True, False),
    ],
)
def test_what_a_member_says_that_it_owns(owned: Any, any_: bool, only: bool) -> None:
    partitions = {T: {0: 1, 2: 1}}
    assert (owns_any(owned, partitions), owns_only(owned, partitions)) == (any_, only)


def test_the_epoch_of_a_partition_is_that_of_its_assignment() -> None:
    member = ConsumerMember("m", epoch=9, assigned={T: {0: 3}}, revoking={T: {1: 4}, U: {0: 5}})
    found = [member.assigned_at(topic, number) for topic, number in ((T, 0), (T, 1), (U, 0), (U, 1))]
    assert found == [3, 4, 5, None]


def test_records_that_do_not_fit_leave_the_group_as_it_was() -> None:
    shard = Shard(CoordinatorConfig(), str, immediate, False)
    group = ConsumerGroup("g")
    group.set_member("a", ConsumerMember("a", epoch=3, topics=frozenset({"t"})))
    group.take_undo()  # that is written already
    shard.groups.put("g", group)
    state = group_state(group)
    records: list[Record] = [ConsumerEpochRecord("g", 7, 1), ConsumerMemberRecord("g", "a", None)]
    with pytest.raises(CoordinatorFault, match="'a' is deleted before its assignments"):
        write_records(shard, "g", records, AppendCause.MEMBER_HEARTBEAT)
    assert shard.groups["g"] is group
    assert group_state(group) == state


def test_a_member_has_no_epoch_before_its_first_and_topics_are_looked_at_every_ten_minutes() -> None:
    """ConsumerGroupMember.Builder.previousMemberEpoch; GroupMetadataManager.METADATA_REFRESH_INTERVAL_MS."""
    assert ConsumerMember("a").previous_epoch == -1
    assert METADATA_REFRESH_INTERVAL_MS == 600_000
