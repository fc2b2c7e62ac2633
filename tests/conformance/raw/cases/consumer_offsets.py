"""Consumer groups: offsets are committed and fetched with member epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.consumer_openings import case, group_of_one, unchanged
from tests.conformance.raw.consumer_requests import LEAVE, beat, commit_as, fetch_as
from tests.conformance.raw.openings import each
from tests.conformance.raw.requests import delete_groups, delete_offsets, fetch_offsets
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
