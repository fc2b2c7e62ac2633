"""Consumer groups: offsets are committed and fetched with member epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.consumer_openings import case, given, group_of_one, group_of_two, still, unchanged
from tests.conformance.raw.consumer_requests import LEAVE, beat, commit_as, enter, fetch_as
from tests.conformance.raw.openings import each
from tests.conformance.raw.requests import commit_from_outside, delete_groups, delete_offsets, fetch_offsets
from tests.conformance.raw.steps import OK, ask


def _fetched(offset: int) -> Mapping[str, Any]:
    return {"groups": [{"error_code": "NONE", "topics": [{"partitions": [{"committed_offset": offset}]}]}]}


def _not_fetched(code: Error) -> Mapping[str, Any]:
    return {"groups": [{"error_code": code.name}]}


CASES = (
    case(
        "epoch-commit-and-fetch",
        "a commit at the member's epoch; a fetch that names the member names its epoch",
        group_of_one(),
        ask("a", commit_as(7), each(Error.NONE)),
        ask("a", fetch_as(), _fetched(7)),
        ask("a", fetch_as(epoch=1), _not_fetched(Error.STALE_MEMBER_EPOCH)),
        ask("a", fetch_as(epoch=3), _not_fetched(Error.STALE_MEMBER_EPOCH)),
        ask("a", fetch_as(member="nobody", epoch=2), _not_fetched(Error.UNKNOWN_MEMBER_ID)),
        ask("admin", fetch_offsets(0), _fetched(7)),
    ),
    case(
        "epoch-stale-commit",
        "STALE_MEMBER_EPOCH from a later or an older epoch for partitions that the member did not have then",
        group_of_two(),
        ask("a", commit_as(7, epoch=4), each(Error.STALE_MEMBER_EPOCH)),
        ask("a", commit_as(7, epoch=1), each(Error.STALE_MEMBER_EPOCH)),
        ask("a", commit_as(7, epoch=-1), each(Error.STALE_MEMBER_EPOCH)),
        ask("b", commit_as(7, epoch=2, partition=2), each(Error.STALE_MEMBER_EPOCH)),
        ask("x", commit_as(7, epoch=3), each(Error.UNKNOWN_MEMBER_ID)),
        ask("admin", commit_from_outside(), each(Error.UNKNOWN_MEMBER_ID)),
        ask("admin", fetch_offsets(0), _fetched(-1)),
        still("a", "b"),
    ),
    case(
        "epoch-old-commit-of-kept-partitions",
        "an older epoch passes for partitions that the member has had since then (KIP-1251)",
        group_of_two(),
        ask("a", commit_as(8, epoch=2, partition=0), each(Error.NONE)),
        ask("a", commit_as(8, epoch=2, partition=2), each(Error.STALE_MEMBER_EPOCH)),
        ask("admin", fetch_offsets(0), _fetched(8)),
    ),
    case(
        "epoch-commit-while-giving-up",
        "a member that has to give partitions up still commits them at its old epoch",
        group_of_one(),
        ask("b", enter(), given(3)),
        ask("a", beat(), given(2, 0, 1)),
        ask("a", commit_as(9, partition=2), each(Error.NONE)),
        ask("a", commit_as(9, partition=0), each(Error.NONE)),
    ),
    case(
        "epoch-of-a-member-that-left",
        "its commits are refused; once the group is empty anybody commits",
        group_of_two(),
        ask("b", beat(epoch=LEAVE), {}),
        ask("b", commit_as(7, epoch=3, partition=2), each(Error.UNKNOWN_MEMBER_ID)),
        ask("a", beat(epoch=LEAVE), {}),
        ask("admin", commit_from_outside(6), each(Error.NONE)),
        ask("admin", fetch_offsets(0), _fetched(6)),
    ),
    *(
        case(
            f"epoch-commit-v{version}",
            "OffsetCommit below version 9 has no epochs: UNSUPPORTED_VERSION",
            group_of_one(),
            ask("a", commit_as(7, version=version), {}),
            ask("a", beat(), unchanged(2)),
        )
        for version in (7, 8, 9, 10)
    ),
    *(
        case(
            f"epoch-fetch-v{version}",
            "OffsetFetch from version 9 on names the member",
            group_of_one(),
            ask("a", commit_as(7), each(Error.NONE)),
            ask("a", fetch_as(version=version), {}),
        )
        for version in (8, 9, 10)
    ),
    case(
        "offsets-of-subscribed-topics-stay",
        "OffsetDelete refuses a subscribed topic; DeleteGroups refuses a group with members",
        group_of_one(),
        ask("a", commit_as(7), each(Error.NONE)),
        ask("admin", delete_offsets(0), each(Error.GROUP_SUBSCRIBED_TO_TOPIC)),
        ask("admin", delete_groups(), {"results": [{"error_code": "NON_EMPTY_GROUP"}]}),
        ask("a", beat(topics=("nobody-makes-it",)), OK),
        ask("admin", delete_offsets(0), each(Error.NONE)),
        ask("admin", fetch_offsets(0), _fetched(-1)),
        ask("a", beat(epoch=LEAVE), {}),
        ask("admin", delete_groups(), {"results": [{"error_code": "NONE"}]}),
        ask("admin", delete_groups(), {"results": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
    ),
)
