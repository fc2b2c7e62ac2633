"""OffsetCommit, OffsetFetch and OffsetDelete: by the group's state, by version, for members and others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.openings import each, group_of_one
from tests.conformance.raw.requests import (
    commit,
    commit_from_outside,
    delete_offsets,
    describe,
    fetch_offsets,
    leave,
)
from tests.conformance.raw.steps import OK, Case, Request, ask, case

_BEFORE, _AFTER = "$-1", "$+1"
_GROUPS_SINCE = 8
_STATE_IS_ERROR_SINCE = 9


_DONE = each(Error.NONE)


def _found(*offsets: int, version: int = 9, metadata: str = "") -> Mapping[str, Any]:
    partitions = [
        {"committed_offset": offset, "error_code": "NONE", "metadata": metadata} for offset in offsets
    ]
    topics = [{"partitions": partitions}]
    return {"groups": [{"topics": topics}]} if version >= _GROUPS_SINCE else {"topics": topics}


def _refused(version: int) -> Case:
    """A generation of a group that there is not."""
    error = Error.GROUP_ID_NOT_FOUND if version >= _STATE_IS_ERROR_SINCE else Error.ILLEGAL_GENERATION
    return case(
        f"commit-v{version}-of-a-generation-without-group",
        f"{error.name} in OffsetCommit {version}; no group is made",
        ask("a", commit(version=version, generation=1, member="x"), each(error)),
        ask("a", describe(), {"groups": [{"group_state": "Dead"}]}),
    )


def _of_two_groups(version: int) -> Request:
    """One that there is, one that there is not."""
    topics = [{"name": "{topic}", "partition_indexes": (0,)}]
    groups = [{"group_id": name, "topics": topics} for name in ("{group}", "{group}-none")]
    return Request("OffsetFetch", version, {"groups": groups})


COMMITS = (
    *(
        case(
            f"commit-v{version}",
            f"OffsetCommit {version} of a member, OffsetFetch {min(version, 10)} and 1",
            group_of_one(),
            ask("a", commit(7, version=version, partition=1, metadata="note"), _DONE),
            ask("a", fetch_offsets(1, version=version), _found(7, version=version, metadata="note")),
            ask("a", fetch_offsets(1, 2, version=1), {"topics": [{"partitions": [{}, {}]}]}),
        )
        for version in range(2, 11)
    ),
    _refused(8),
    _refused(9),
    case(
        "commit-from-outside-makes-a-group",
        "a commit without member and generation makes a group that holds offsets only: Empty, without a type",
        ask("a", commit_from_outside(3), _DONE),
        ask("a", describe(), {"groups": [{"group_state": "Empty", "protocol_type": ""}]}),
        ask("a", commit_from_outside(4, version=2), _DONE),
        ask("a", fetch_offsets(0), _found(4)),
        group_of_one(),
        ask("a", fetch_offsets(0), _found(4)),
    ),
    case(
        "commit-of-what-there-is-not",
        "an unknown topic or partition, and metadata above offset.metadata.max.bytes",
        ask("a", commit_from_outside(topic="none-such"), each(Error.UNKNOWN_TOPIC_OR_PARTITION)),
        ask("a", commit_from_outside(partition=3), each(Error.UNKNOWN_TOPIC_OR_PARTITION)),
        ask("a", commit_from_outside(metadata="x" * 4_097), each(Error.OFFSET_METADATA_TOO_LARGE)),
        ask("a", commit_from_outside(metadata="x" * 4_096), _DONE),
    ),
)

FETCHES = (
    *(
        case(
            f"fetch-offsets-v{version}",
            "an unknown group, an uncommitted partition, everything that is committed",
            ask("a", fetch_offsets(0, 2, version=version), _found(-1, -1, version=version)),
            ask("a", commit_from_outside(5, partition=1), _DONE),
            ask("a", fetch_offsets(0, 1, version=version), {}),
            ()
            if version < 2
            else ask("a", fetch_offsets(version=version, everything=True), _found(5, version=version)),
        )
        for version in range(1, 11)
    ),
    case(
        "fetch-offsets-of-two-groups",
        "OffsetFetch 8 and newer ask for several groups at once",
        ask("a", commit_from_outside(5), _DONE),
        [ask("a", _of_two_groups(version), {"groups": [{}, {}]}) for version in (8, 9)],
    ),
    case(
        "fetch-offsets-of-nothing",
        "an unknown topic is answered like a partition without offset; an empty group id as well",
        ask("a", fetch_offsets(0, topic="none-such"), _found(-1)),
        ask("a", fetch_offsets(0, require_stable=True), _found(-1)),
        ask("a", fetch_offsets(0, group=""), {}),
    ),
)

DELETIONS = (
    case(
        "delete-offsets-of-another-type",
        "NON_EMPTY_GROUP while a member has a subscription that cannot be read",
        group_of_one(protocol_type="connect", protocols=(("default", b"opaque"),)),
        ask("admin", delete_offsets(0), Error.NON_EMPTY_GROUP),
        ask("a", leave(), OK),
        ask("admin", delete_offsets(0), OK),
    ),
    case(
        "delete-offsets-of-nothing",
        "an unknown group, an unknown topic, a partition that the topic lacks",
        ask("admin", delete_offsets(0), Error.GROUP_ID_NOT_FOUND),
        ask("admin", commit_from_outside(), _DONE),
        ask("admin", delete_offsets(0, topic="none-such"), {"error_code": "NONE"}),
        ask("admin", delete_offsets(7), {"error_code": "NONE"}),
    ),
)

CASES = (*COMMITS, *FETCHES, *DELETIONS)
