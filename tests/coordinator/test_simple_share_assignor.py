"""The simple assignor of share groups (KIP-932), by hand, and the coordinator that asks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import pytest

from groupstorm.assignors.contract import AssignmentRefused, MapOrder
from groupstorm.assignors.server import MemberSpec, ServerGroup, TopicDescription, assign_simple
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.topics import Topic
from groupstorm.turns import at_once
from tests.coordinator.share_group import BAR, FOO, Share


def _dealt(
    topics: Mapping[str, int], members: Mapping[str, MemberSpec], assignable: Mapping[UUID, Iterable[int]]
) -> dict[str, Any]:
    ids = {"foo": FOO, "bar": BAR}
    known = {name: TopicDescription(ids[name], count) for name, count in topics.items()}
    group = ServerGroup(known, list(members), list(members.values()), MapOrder.JAVA_HASH)
    sets = {topic: frozenset(numbers) for topic, numbers in assignable.items()}
    return dict(zip(members, at_once(assign_simple(group, sets)), strict=True))


def test_each_topic_is_dealt_by_itself_to_those_who_name_it() -> None:
    """By hand: foo has two members for two partitions, bar one for one."""
    members = {"a": MemberSpec(["foo"], {}), "b": MemberSpec(["foo", "bar"], {})}
    dealt = _dealt({"foo": 2, "bar": 1}, members, {FOO: [0, 1], BAR: [0]})
    assert dealt == {"a": {FOO: [0]}, "b": {FOO: [1], BAR: [0]}}


def test_a_member_keeps_what_it_has_and_a_topic_without_partitions_stays_in_its_target() -> None:
    """By hand: each of two members shall have one of two partitions. a gives up the first of its Java set:
    the hashes are 31 x 1 + 0 and 31 x 1 + 1, which 16 buckets take in the order 1, 0."""
    members = {"a": MemberSpec(["foo"], {FOO: [0, 1]}), "b": MemberSpec(["foo"], {})}
    assert _dealt({"foo": 2}, members, {FOO: [0, 1]}) == {"a": {FOO: [0]}, "b": {FOO: [1]}}
    assert _dealt({"foo": 2}, members, {}) == {"a": {FOO: []}, "b": {}}


def test_a_target_of_nobodys_topics_is_emptied() -> None:
    members = {"a": MemberSpec([], {FOO: [0]}), "b": MemberSpec([], {})}
    assert _dealt({"foo": 1}, members, {FOO: [0]}) == {"a": {}, "b": {}}
    members = {"a": MemberSpec(["gone"], {FOO: [0]}), "b": MemberSpec(["lost"], {})}
    assert _dealt({"foo": 1}, members, {FOO: [0]}) == {"a": {}, "b": {}}


def test_partitions_that_are_no_longer_assignable_may_leave_nobody_with_room() -> None:
    """Kafka's own defect: foo-1 and foo-2 have no state any more, but count for a and b, which have all that
    they shall have, one partition. foo-1 shall have three members: c is the second, and there is no third."""
    members = {
        "a": MemberSpec(["foo"], {FOO: [1]}),
        "b": MemberSpec(["foo"], {FOO: [2]}),
        "c": MemberSpec(["foo"], {}),
    }
    with pytest.raises(AssignmentRefused, match="NoSuchElementException"):
        _dealt({"foo": 3}, members, {FOO: [0]})


def test_no_partition_is_handed_to_one_member_alone_while_another_has_none() -> None:
    """Three members share three partitions twice: ceil(3 / 3) each; a fourth makes every partition shared."""
    share = Share()
    for name in ("a", "b", "c"):
        share.beat(name, 0, "foo", "bar")
    share.beat("a", 0, "foo", "bar")
    held = {name: sum(map(len, share.group.target(name).values())) for name in ("a", "b", "c")}
    assert held == {"a": 1, "b": 1, "c": 1}
    share.beat("d", 0, "foo", "bar")
    held = {name: sum(map(len, share.group.target(name).values())) for name in ("a", "b", "c", "d")}
    assert sorted(held.values()) == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("kafka", "is_left"), [(Compatibility.KAFKA_4_4_0, True), (Compatibility.REPAIRED_4_4_0, False)]
)
def test_a_join_that_breaks_the_assignor_leaves_a_member_behind_in_kafka_alone(
    kafka: Compatibility, is_left: bool
) -> None:
    """A topic that is made anew under its old id, as only scripts do, is in targets but not assignable."""
    share = Share(kafka)
    for name in ("a", "b", "a", "b"):
        share.beat(name, 0, "foo", "bar")
    share.persister.error = None
    share.coordinator.update_topics({}, ["foo"], share.now_ms)
    share.coordinator.update_topics({"foo": Topic(FOO, 2)}, (), share.now_ms)
    assert share.beat("c", 0, "foo", "bar").error is Error.UNKNOWN_SERVER_ERROR
    assert ("c" in share.group.members) is is_left
