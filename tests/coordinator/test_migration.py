"""Live groups that change their protocol (KIP-848): refusals, what is written, what goes on afterwards.

Kafka: GroupMetadataManager.convertToConsumerGroup, convertToClassicGroup.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from groupstorm.coordinator.consumer.member import (
    ConsumerCurrentRecord,
    ConsumerEpochRecord,
    ConsumerMemberRecord,
    ConsumerTargetEpochRecord,
    ConsumerTargetRecord,
)
from groupstorm.coordinator.errors import CoordinatorFault, Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    DescribeConsumerGroup,
    DescribeGroup,
    OffsetCommit,
    OffsetDelete,
)
from groupstorm.coordinator.records import GroupMetadataRecord, Record
from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group


def classic(*clients: str, **options: Any) -> Group:
    """A stable classic group of these members, which read t."""
    group = Group(**{"group.initial.rebalance.delay.ms": 0} | options)
    for client in clients:
        group.classic(client, "t")
    group.advance(0)
    for client in reversed(clients):
        group.sync(client, assignments="auto-consumer")
    return group


def mixed(**options: Any) -> Group:
    """n, a static member of the new protocol, and the classic c: two partitions each."""
    group = Group(**options)
    group.join("n", instance="i")
    group.classic("c", "t", version_of_subscription=1)
    group.settle()
    group.classic("c", "t", version_of_subscription=1)
    group.sync("c")
    return group


# upgrades


def test_groups_of_another_type_are_not_upgraded() -> None:
    group = Group(**{"group.initial.rebalance.delay.ms": 0})
    group.classic("x", "t", type="connect")
    group.advance(0)
    assert group.join("n").error_message == (
        "Cannot upgrade classic group g to consumer group because the group does not use the consumer"
        " embedded protocol."
    )


def test_an_upgrade_by_a_member_that_reads_nothing_changes_no_epoch() -> None:
    """The generation is everybody's epoch, and that of the targets, which are the assignments."""
    group = classic("x")
    group.classic("y", "t")
    group.classic("x", "t")
    for client in ("y", "x"):
        group.sync(client, assignments="auto-consumer")
    joined = group.join("n", topics=[])
    assert (joined.error, joined.member_epoch, joined.assignment) == (Error.NONE, 2, {})
    described = group.send(DescribeConsumerGroup("g"))
    assert (described.state, described.epoch, described.assignment_epoch) == ("Stable", 2, 2)
    assert group.of(events.TargetAssigned) == []
    assert [sorted(one.target) for one in described.members if one.is_classic] == [["t", "u"]] * 2
    assert group.heartbeat("x") is Error.NONE


@pytest.mark.parametrize(
    ("compatibility", "causes"), [("4.3.1", {"rebalance-timeout"}), ("4.3.1-repaired", set())]
)
def test_timers_of_the_classic_group_hit_no_later_one(compatibility: str, causes: set[str]) -> None:
    """Kafka 4.3.1 leaves them: at the end of a round that the upgrade ended, members of a stable group go."""
    options: dict[str, Any] = {"groupstorm.compatibility": compatibility}
    group = classic("x", **options)
    group.classic("y", "t", rebalance=20_000)
    group.join("n", instance="i")
    group.classic("z", "t", instance="i", version=5)
    known = group.classic_group
    assert known is not None
    assert known.state.value == "Stable"
    group.advance(20_000)
    assert {one.cause for one in group.of(events.MemberRemoved)} == causes


# downgrades


def test_a_downgraded_group_is_written_as_a_classic_one_alone() -> None:
    for ends in ("replaced", "left"):
        group = mixed()
        if ends == "replaced":
            group.classic("back", "t", instance="i", version=5)
        else:
            group.beat("n", epoch=-1, instance="i")
        [record] = group.driver.coordinator.snapshot()
        assert isinstance(record, GroupMetadataRecord)
        known = group.classic_group
        assert known is not None
        assert {one.member_id for one in record.roster} == set(known.members)
        assert group.send(DescribeGroup("g", 6)).error is Error.NONE, "reads see it"


def test_the_members_of_a_downgraded_group_read_what_they_read_before() -> None:
    group = mixed()
    group.classic("back", "t", instance="i", version=5)
    offsets = {topic: {0: CommittedOffset(1)} for topic in ("t", "u")}
    generation = group.driver.clients.get("back").generation
    group.send(OffsetCommit("g", group.id_of("back"), "i", generation, offsets, 9))
    answer = group.send(OffsetDelete("g", {"t": (0,), "u": (0,)}))
    assert answer.partitions == (("t", 0, Error.GROUP_SUBSCRIBED_TO_TOPIC), ("u", 0, Error.NONE))


# loading and moving


def test_a_group_of_which_only_offsets_were_written_becomes_a_consumer_group() -> None:
    """The records of a log may begin with a commit from outside of the group."""
    before = Group()
    before.send(OffsetCommit("g", "", None, -1, {"t": {0: CommittedOffset(5)}}, 9))
    offsets = before.driver.coordinator.snapshot()
    before.join("a")
    consumer = [one for one in before.driver.coordinator.snapshot() if one not in offsets]
    after = Group()
    after.driver.coordinator.load([*offsets, *consumer], 0)
    assert after.group.members.keys() == ["a"]
    assert after.driver.coordinator.committed_offsets("g") == {"t-0": 5}


def test_records_of_a_consumer_group_do_not_fit_a_classic_one() -> None:
    record = classic("x").driver.coordinator.snapshot()
    later = Group()
    later.join("a")
    with pytest.raises(CoordinatorFault, match="group 'g' is not a consumer group"):
        Group().driver.coordinator.load([*record, *later.driver.coordinator.snapshot()], 0)


@pytest.mark.parametrize("tombstones", [("member",), ("current", "member"), ("target", "member")])
def test_a_member_is_not_deleted_before_its_assignments(tombstones: tuple[str, ...]) -> None:
    group = Group()
    group.join("a")
    records = group.driver.coordinator.snapshot()
    deleted: dict[str, Record] = {
        "current": ConsumerCurrentRecord("g", "a", None),
        "target": ConsumerTargetRecord("g", "a", None),
        "member": ConsumerMemberRecord("g", "a", None),
    }
    with pytest.raises(CoordinatorFault, match="member 'a' is deleted before its assignments"):
        Group().driver.coordinator.load([*records, *(deleted[name] for name in tombstones)], 0)
    after = Group()
    after.driver.coordinator.load([*records, *deleted.values()], 0)
    assert after.group.members.keys() == []


@pytest.mark.parametrize(
    ("tombstones", "why"),
    [
        (("current", "target", "member", "targets", "group"), None),
        (("targets",), "the targets of group 'g' are not deleted"),
        (("target", "targets", "group"), "group 'g' is deleted before its members and targets"),
        (("current", "target", "member", "group"), "group 'g' is deleted before its members and targets"),
        (
            ("current", "target", "member", "targets", "target again", "group"),
            "group 'g' is deleted before its members and targets",
        ),
    ],
)
def test_a_group_is_deleted_after_all_that_is_its_own(tombstones: tuple[str, ...], why: str | None) -> None:
    """As the records stand in a log that is not compacted yet."""
    group = Group()
    group.join("a")
    records = group.driver.coordinator.snapshot()
    named: dict[str, Record] = {
        "current": ConsumerCurrentRecord("g", "a", None),
        "target": ConsumerTargetRecord("g", "a", None),
        "member": ConsumerMemberRecord("g", "a", None),
        "targets": ConsumerTargetEpochRecord("g", None),
        "target again": next(one for one in records if isinstance(one, ConsumerTargetRecord)),
        "group": ConsumerEpochRecord("g", None),
    }
    after = Group().driver.coordinator
    if why is None:
        after.load([*records, *(named[name] for name in tombstones)], 0)
        assert (after.groups, after.snapshot()) == ([], [])
    else:
        with pytest.raises(CoordinatorFault, match=re.escape(why)):
            after.load([*records, *(named[name] for name in tombstones)], 0)


def test_a_coordinator_that_ends_forgets_the_group_and_one_that_begins_loads_it() -> None:
    group = Group()
    group.join("a")
    group.join("b")
    group.beat("a", owned=None)  # has to give partitions up
    effects = group.driver.coordinator.unload(0)
    assert [tuple(one) for one in effects.events] == [("g", "unloaded")]
    assert group.driver.coordinator.groups == []
    assert group.driver.coordinator.next_deadline() is None
    other = Group()
    loaded = other.driver.coordinator.load(group.driver.coordinator.snapshot(), 0)
    assert [tuple(one) for one in loaded.events] == [("g", "loaded")]
    assert set(other.group.members) == {"a", "b"}


def test_targets_without_an_interval_are_computed_whatever_the_clock_says() -> None:
    """A successor's clock may be behind the time at which the last targets were computed."""
    group = Group()
    group.advance(5_000)
    group.join("a")
    other = Group()
    other.driver.coordinator.load(group.driver.coordinator.snapshot(), 0)
    assert other.join("b").member_epoch == 3
