"""Who may commit and fetch the offsets of a consumer group (ConsumerGroup.validateOffsetCommit and below)."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetCommit, OffsetFetch, TxnOffsetCommit
from groupstorm.coordinator.offset_requests import validate_fetch
from tests.coordinator.consumer_world import Group

_NONE, _UNKNOWN = Error.NONE, Error.UNKNOWN_MEMBER_ID
_STALE, _GENERATION = Error.STALE_MEMBER_EPOCH, Error.ILLEGAL_GENERATION


def handed_over() -> Group:
    """n has kept t-0 and t-1 since epoch 2; m has t-2 and t-3 since epoch 3, which is everybody's epoch. c is
    a classic member that reads u, since epoch 4."""
    group = Group()
    group.join("n")
    group.join("m")
    group.settle()
    group.classic("c", "u")
    group.settle()
    group.sync("c")
    assert {member.epoch for member in group.group.members.values()} == {4}
    assert group.group.state == "Stable"
    return group


def partition(topic: str, number: int) -> dict[str, dict[int, CommittedOffset]]:
    return {topic: {number: CommittedOffset(7)}}


def commit(
    group: Group, member: str, epoch: int, topic: str = "t", number: int = 0, version: int = 9
) -> Error:
    member = group.id_of("c") if member == "c" else member
    answer = group.send(OffsetCommit("g", member, None, epoch, partition(topic, number), version))
    [(_, _, error)] = answer.partitions
    assert isinstance(error, Error)
    return error


def txn_commit(group: Group, member: str, epoch: int, number: int = 0, instance: str | None = None) -> Error:
    answer = group.send(TxnOffsetCommit("g", 7, member, instance, epoch, partition("t", number), 3))
    [(_, _, error)] = answer.partitions
    assert isinstance(error, Error)
    return error


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"member": "n", "epoch": 4}, _NONE),
        ({"member": "n", "epoch": 4, "topic": "u"}, _NONE),  # at its epoch for any partition
        ({"member": "n", "epoch": 5}, _STALE),
        ({"member": "n", "epoch": 3}, _NONE),  # t-0 was its own then
        ({"member": "n", "epoch": 2}, _NONE),
        ({"member": "n", "epoch": 1}, _STALE),
        ({"member": "n", "epoch": 3, "number": 2}, _STALE),  # another member's
        ({"member": "n", "epoch": 3, "topic": "none"}, _STALE),
        ({"member": "m", "epoch": 3, "number": 2}, _NONE),
        ({"member": "m", "epoch": 2, "number": 2}, _STALE),  # still n's then
        ({"member": "n", "epoch": -1}, _STALE),
        ({"member": "nobody", "epoch": 4}, _UNKNOWN),
        ({"member": "", "epoch": -1}, _UNKNOWN),
        ({"member": "n", "epoch": 4, "version": 8}, Error.UNSUPPORTED_VERSION),
        ({"member": "c", "epoch": 4, "version": 8}, _NONE),  # a classic member's generation is its epoch
        ({"member": "c", "epoch": 5}, _GENERATION),
        ({"member": "c", "epoch": 3, "topic": "u"}, _GENERATION),
    ],
)
def test_who_may_commit(asked: dict[str, Any], error: Error) -> None:
    assert commit(handed_over(), **asked) is error


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"member": "n", "epoch": 4}, _NONE),
        ({"member": "n", "epoch": 3, "number": 2}, _GENERATION),
        ({"member": "n", "epoch": 5}, _GENERATION),
        ({"member": "nobody", "epoch": 4}, _UNKNOWN),
        ({"member": "", "epoch": -1}, _NONE),  # a producer that names no member is believed
        ({"member": "", "epoch": -1, "instance": "i"}, _UNKNOWN),
        ({"member": "", "epoch": 0}, _UNKNOWN),
        ({"member": "nobody", "epoch": -1}, _UNKNOWN),
    ],
)
def test_who_may_commit_in_a_transaction(asked: dict[str, Any], error: Error) -> None:
    assert txn_commit(handed_over(), **asked) is error


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        (None, -1, _NONE),  # an administrator
        (None, 0, _UNKNOWN),
        (None, 4, _UNKNOWN),
        ("n", 4, _NONE),
        ("n", 3, _STALE),
        ("n", -1, _STALE),
        ("nobody", 4, _UNKNOWN),
        ("c", 3, _GENERATION),
        ("c", 4, _NONE),
    ],
)
def test_a_fetch_that_names_a_member_names_its_epoch(member: str | None, epoch: int, error: Error) -> None:
    group = handed_over()
    named = group.id_of("c") if member == "c" else member
    request = OffsetFetch("g", {"t": (0,)}, 9, member_id=named, member_epoch=epoch)
    assert validate_fetch(group.group, request) is error
    answer = group.send(request)
    assert answer.error is error
    assert len(answer.partitions) == (error is _NONE)
