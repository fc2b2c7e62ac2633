"""DescribeGroups, ListGroups and DeleteGroups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.openings import deleted, group_of_one, listed, stable_group
from tests.conformance.raw.requests import (
    commit_from_outside,
    delete_groups,
    describe,
    fetch_offsets,
    heartbeat,
    leave,
    list_groups,
)
from tests.conformance.raw.steps import OK, ask, case


def _is(state: str, *members: Mapping[str, Any], protocol: str = "") -> Mapping[str, Any]:
    return {
        "groups": [
            {"error_code": "NONE", "group_state": state, "protocol_data": protocol, "members": list(members)}
        ]
    }


CASES = (
    *(
        case(
            f"describe-v{version}",
            "a group that does not exist is Dead; from version 6 on also GROUP_ID_NOT_FOUND",
            ask("admin", describe(version=version), {"groups": [{"group_state": "Dead"}]}),
            stable_group("b"),
            ask("admin", describe(version=version), _is("Stable", {}, {}, protocol="range")),
        )
        for version in range(7)
    ),
    *(
        case(
            f"list-v{version}",
            "a group of members and one that holds offsets only",
            ask("admin", commit_from_outside(), {}),
            ask("admin", list_groups(version=version), {"groups": [{"protocol_type": ""}]}),
            group_of_one(),
            ask("admin", list_groups(version=version), {"groups": [{"protocol_type": "consumer"}]}),
        )
        for version in range(6)
    ),
    case(
        "list-by-state-and-type",
        "filters ignore case; an unknown type matches no group",
        group_of_one(),
        ask("admin", list_groups(states=["Stable"]), listed("Stable")),
        ask("admin", list_groups(states=["sTABLE", "Empty"]), listed("Stable")),
        ask("admin", list_groups(states=["PreparingRebalance"]), listed()),
        ask("admin", list_groups(types=["Classic"]), listed("Stable")),
        ask("admin", list_groups(types=["classic"], states=["Empty"]), listed()),
        ask("admin", list_groups(types=["consumer"]), listed()),
        ask("a", leave(), OK),
        ask("admin", list_groups(states=["Empty"]), listed("Empty")),
    ),
    *(
        case(
            f"delete-groups-v{version}",
            "a group that does not exist, one with members, and one without, whose offsets are deleted too",
            ask("admin", delete_groups(version=version), deleted(Error.GROUP_ID_NOT_FOUND)),
            group_of_one(),
            ask("admin", delete_groups(version=version), deleted(Error.NON_EMPTY_GROUP)),
            ask("a", heartbeat(), OK),
            ask("a", leave(), OK),
            ask("admin", commit_from_outside(), {}),
            ask("admin", delete_groups(version=version), deleted(Error.NONE)),
            ask(
                "admin",
                fetch_offsets(0),
                {"groups": [{"topics": [{"partitions": [{"committed_offset": -1}]}]}]},
            ),
            ask("admin", delete_groups(version=version), deleted(Error.GROUP_ID_NOT_FOUND)),
        )
        for version in range(3)
    ),
)
