"""Group APIs: the rules of the API layer, beyond the coordinator's."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import commit, join, offset_fetch, versions
from tests.broker.driver import Driver
from tests.broker.wire import structure

INT32_MIN = -(2**31)


def join_alone(driver: Driver, group: str = "g") -> str:
    """A member of version 3, which needs no second request."""
    connection = join(driver, 3, group)
    driver.advance(0)
    member_id: str = driver.answers[connection].member_id
    return member_id


@pytest.mark.parametrize("version", versions(wire.JOIN_GROUP))
def test_join_group_in_each_version(driver: Driver, version: int) -> None:
    connection = join(driver, version)
    driver.advance(0)
    answer = driver.answers[connection]
    if version >= 4:
        assert answer.error_code == Error.MEMBER_ID_REQUIRED
        assert answer.protocol_name == (None if version >= 7 else "")
        connection = join(driver, version, member_id=answer.member_id)
        driver.advance(0)
        answer = driver.answers[connection]
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (Error.NONE, 1, "range")
    assert answer.leader == answer.member_id
    assert answer.member_id.startswith("raw-")
    assert [one.member_id for one in answer.members] == [answer.member_id]


def test_version_0_has_no_rebalance_timeout_and_the_session_timeout_stands_for_it(
    driver: Driver,
) -> None:
    first = join(driver, 0)
    driver.advance(0)
    second = join(driver, 0)
    driver.advance(9_000)
    # the first member is alive, its session goes on until 19 s, but it does not rejoin
    alive = {"group_id": "g", "generation_id": 1, "member_id": driver.answers[first].member_id}
    assert driver.ask(wire.HEARTBEAT, 0, **alive).error_code == Error.REBALANCE_IN_PROGRESS
    driver.advance(999)
    assert second not in driver.answers
    driver.advance(1)
    assert len(driver.answers[second].members) == 1


def test_sync_group_5_must_name_its_protocol(driver: Driver) -> None:
    for fields in ({"protocol_type": "consumer"}, {"protocol_name": "range"}, {}):
        named = {"protocol_type": None, "protocol_name": None, **fields}
        answer = driver.ask(wire.SYNC_GROUP, 5, group_id="g", member_id="m", generation_id=1, **named)
        assert answer.error_code == Error.INCONSISTENT_GROUP_PROTOCOL


def test_leave_group_before_version_3_has_its_members_error_at_the_top(driver: Driver) -> None:
    member_id = join_alone(driver)
    assert (
        driver.ask(wire.LEAVE_GROUP, 2, group_id="g", member_id="nobody").error_code
        == Error.UNKNOWN_MEMBER_ID
    )
    who = structure(wire.LEAVE_GROUP, 3, "MemberIdentity", member_id="nobody")
    answer = driver.ask(wire.LEAVE_GROUP, 3, group_id="g", members=(who,))
    assert (answer.error_code, answer.members[0].error_code) == (Error.NONE, Error.UNKNOWN_MEMBER_ID)
    assert driver.ask(wire.LEAVE_GROUP, 2, group_id="g", member_id=member_id).error_code == Error.NONE


def test_describe_and_list_groups(driver: Driver) -> None:
    join_alone(driver)
    known, unknown = driver.ask(wire.DESCRIBE_GROUPS, 5, groups=("g", "none")).groups
    assert (known.group_id, known.group_state, known.members[0].client_id) == (
        "g",
        "CompletingRebalance",
        "raw",
    )
    assert known.members[0].client_host == "/127.0.0.1"
    assert known.authorized_operations == INT32_MIN
    assert (unknown.error_code, unknown.group_state) == (Error.NONE, "Dead")
    missing = driver.ask(wire.DESCRIBE_GROUPS, 6, groups=("none",)).groups[0]
    assert (missing.error_code, bool(missing.error_message)) == (Error.GROUP_ID_NOT_FOUND, True)
    asked = driver.ask(wire.DESCRIBE_GROUPS, 3, groups=("g",), include_authorized_operations=True)
    assert asked.groups[0].authorized_operations > 0
    assert [one.group_id for one in driver.ask(wire.LIST_GROUPS, 0).groups] == ["g"]
    assert driver.ask(wire.LIST_GROUPS, 4, states_filter=("Stable",)).groups == ()
    assert driver.ask(wire.DESCRIBE_GROUPS, 0, groups=()).groups == ()


@pytest.mark.parametrize("version", versions(wire.OFFSET_COMMIT))
def test_offsets_committed_from_outside_are_fetched_in_every_version(driver: Driver, version: int) -> None:
    assert commit(driver, version, 0, 2) == [(0, Error.NONE), (2, Error.NONE)]
    for fetch_version in versions(wire.OFFSET_FETCH):
        assert offset_fetch(driver, fetch_version, 0, 1, 2) == [(0, 10, 0), (1, -1, 0), (2, 12, 0)]
        if fetch_version >= 2:
            assert sorted(offset_fetch(driver, fetch_version, everything=True)) == [(0, 10, 0), (2, 12, 0)]


def test_commits_of_unknown_partitions_are_refused_and_the_others_go_on(driver: Driver) -> None:
    assert commit(driver, 8, 0, 9) == [(0, Error.NONE), (9, Error.UNKNOWN_TOPIC_OR_PARTITION)]
    assert commit(driver, 8, name="other") == [(0, Error.UNKNOWN_TOPIC_OR_PARTITION)]
    assert commit(driver, 10, topic_id=uuid.UUID(int=5)) == [(0, Error.UNKNOWN_TOPIC_ID)]


def test_an_unknown_partition_is_refused_before_the_coordinator_is_asked(driver: Driver) -> None:
    # the coordinator would refuse the generation
    fields: dict[str, Any] = {"generation_id_or_member_epoch": 5, "member_id": "m"}
    assert commit(driver, 8, 0, **fields) == [(0, Error.ILLEGAL_GENERATION)]
    assert commit(driver, 8, 9, **fields) == [(9, Error.UNKNOWN_TOPIC_OR_PARTITION)]


def test_offset_fetch_10_answers_unknown_topic_ids(driver: Driver) -> None:
    unknown = uuid.UUID(int=5)
    topic = structure(
        wire.OFFSET_FETCH, 10, "OffsetFetchRequestTopics", topic_id=unknown, partition_indexes=(4,)
    )
    group = structure(wire.OFFSET_FETCH, 10, "OffsetFetchRequestGroup", group_id="g", topics=(topic,))
    (answered,) = driver.ask(wire.OFFSET_FETCH, 10, groups=(group,)).groups[0].topics
    assert answered.topic_id == unknown
    assert [(one.partition_index, one.error_code) for one in answered.partitions] == [
        (4, Error.UNKNOWN_TOPIC_ID)
    ]


def test_several_groups_are_fetched_at_once(driver: Driver) -> None:
    commit(driver, 8)
    groups = tuple(
        structure(wire.OFFSET_FETCH, 8, "OffsetFetchRequestGroup", group_id=name, topics=None)
        for name in ("g", "none")
    )
    answer = driver.ask(wire.OFFSET_FETCH, 8, groups=groups)
    assert [(one.group_id, len(one.topics)) for one in answer.groups] == [("g", 1), ("none", 0)]
