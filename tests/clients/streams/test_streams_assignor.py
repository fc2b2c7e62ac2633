"""A thread's side of the Streams protocol: subscriptions, versions, follow-up rebalances."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest

from groupstorm.assignors.leader import perform_assignment
from groupstorm.assignors.streams.leader import Application, Rebalance
from groupstorm.assignors.streams.model import Config
from groupstorm.assignors.userdata import Subscription, decode_assignment, encode_subscription
from groupstorm.assignors.userdata.streams import (
    NO_REBALANCE_MS,
    AssignmentInfo,
    AssignorError,
    TaskId,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
)
from groupstorm.clients.streams.assignor import FollowUp, StreamsPartitionAssignor
from tests.clients.streams.streams_host import TOPOLOGY

PROCESS = UUID(int=7)


class StreamsThread:
    """An assignor and its decisions."""

    def __init__(self, version: int = 11, sums: Mapping[TaskId, int] | None = None) -> None:
        self.placed: list[Rebalance] = []
        self.versions: list[tuple[int, str]] = []
        ends = {task.id: 1_000_000 for task in TOPOLOGY.tasks if task.stateful}
        application = Application(TOPOLOGY.tasks, "ha", Config(), PROCESS, ends, latest_version=version)
        self.assignor = StreamsPartitionAssignor(
            PROCESS,
            version,
            {"zone": "r1"},
            lambda: sums or {},
            lambda: application,
            lambda: 5_000,
            self.placed.append,
            lambda used, cause: self.versions.append((used, cause)),
        )


def assignment_bytes(**fields: object) -> bytes:
    base = AssignmentInfo(11, 11)
    return encode_assignment_info(base._replace(**fields))  # type: ignore[arg-type]  # fields by name


def test_no_subscription_is_like_the_one_before() -> None:
    """KAFKA-10455: the coordinator compares bytes; the number is a signed byte and begins anew."""
    thread = StreamsThread(sums={TaskId("", 0, 1): 42})
    read = [decode_subscription_info(thread.assignor.user_data((), 1) or b"") for _ in range(258)]
    assert [info.unique_field for info in read[126:130]] == [126, 127, -128, -127]
    assert read[256].unique_field == 0
    assert (read[0].process, read[0].offset_sums, read[0].client_tags) == (
        PROCESS, {TaskId("", 0, 1): 42}, {"zone": "r1"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"next_rebalance_ms": 600_000}, FollowUp("probing", 600_000)),
        ({"next_rebalance_ms": 0}, FollowUp("tasks-change-owner", 0)),
        ({"version": 12, "error_code": AssignorError.IMBALANCED_ASSIGNMENT}, FollowUp("watching", None)),
        (
            {"version": 12, "error_code": AssignorError.IMBALANCED_ASSIGNMENT, "next_rebalance_ms": 0},
            FollowUp("tasks-change-owner", 0),
        ),
    ],
)
def test_assignments_ask_for_further_rebalances(fields: dict[str, int], expected: FollowUp | None) -> None:
    info, found = StreamsThread().assignor.on_assignment(assignment_bytes(**fields))
    assert found == expected
    assert info.next_rebalance_ms == fields.get("next_rebalance_ms", NO_REBALANCE_MS)


def test_version_probing_goes_down_and_at_the_end_of_the_upgrade_up_again() -> None:
    """maybeUpdateSubscriptionVersion."""
    thread = StreamsThread()
    _, found = thread.assignor.on_assignment(assignment_bytes(version=10, commonly_supported_version=10))
    assert found == FollowUp("version-probing", 0)
    assert decode_subscription_info(thread.assignor.user_data((), 1) or b"").version == 10
    assert (
        thread.assignor.on_assignment(assignment_bytes(version=10, commonly_supported_version=10))[1] is None
    )
    _, found = thread.assignor.on_assignment(assignment_bytes(version=10, commonly_supported_version=11))
    assert found == FollowUp("version-probing", 0)
    assert decode_subscription_info(thread.assignor.user_data((), 1) or b"").version == 11
    assert thread.versions == [(10, "downgrade"), (11, "upgrade")]


def test_before_version_3_there_is_no_probing() -> None:
    assert StreamsThread().assignor.on_assignment(encode_assignment_info(AssignmentInfo(2)))[1] is None


def test_a_leader_gives_every_member_its_own_bytes() -> None:
    leader, other = StreamsThread(), StreamsThread()
    members = [
        (name, None, encode_subscription(Subscription(("in",), thread.assignor.user_data((), 1)), 3))
        for name, thread in (("a", leader), ("b", other))
    ]
    plan = perform_assignment(leader.assignor, {"in": 6}, members)
    read = {name: decode_assignment(data) for name, data in plan.items()}
    assert sorted(part for own in read.values() for part in own.partitions) == sorted(
        part for parts in TOPOLOGY.inputs for part in parts
    )
    for own in read.values():
        info = decode_assignment_info(own.user_data or b"")
        assert TOPOLOGY.numbers(info.active) == set(TOPOLOGY.reading(own.partitions))
    assert leader.placed[0].stable
    assert leader.placed[0].processes == {"a": PROCESS, "b": PROCESS}


def test_an_older_leader_reads_no_more_of_a_newer_subscription_than_its_version() -> None:
    old, new = StreamsThread(version=10), StreamsThread(version=11)
    members = [
        (name, None, encode_subscription(Subscription(("in",), thread.assignor.user_data((), 1)), 3))
        for name, thread in (("old", old), ("new", new))
    ]
    plan = perform_assignment(old.assignor, {"in": 6}, members)
    infos = {
        name: decode_assignment_info(decode_assignment(data).user_data or b"") for name, data in plan.items()
    }
    assert {info.version for info in infos.values()} == {10}
    assert new.assignor.on_assignment(decode_assignment(plan["new"]).user_data)[1] == FollowUp(
        "version-probing", 0
    )
    assert not old.placed[0].stable
