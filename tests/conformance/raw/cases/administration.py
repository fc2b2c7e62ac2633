"""DescribeGroups, ListGroups and DeleteGroups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.lives import alone, enter, settled, together
from tests.conformance.raw.requests import (
    commit_from_outside,
    committed,
    delete_groups,
    describe,
    heartbeat,
    join,
    leave,
    list_groups,
)
from tests.conformance.raw.steps import OK, Case, Hear, Send, Until, ask


def _is(state: str, *members: Mapping[str, Any], protocol: str = "") -> Mapping[str, Any]:
    return {
        "groups": [
            {"error_code": "NONE", "group_state": state, "protocol_data": protocol, "members": list(members)}
        ]
    }


def _listed(*states: str) -> Mapping[str, Any]:
    return {"error_code": "NONE", "groups": [{"group_state": state} for state in states]}


def _deleted(code: Error) -> Mapping[str, Any]:
    return {"results": [{"error_code": code.name}]}


CASES = (
    Case(
        "describe-each-state",
        "protocol, metadata and assignments are shown in Stable only",
        (
            ask("a", describe(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
            enter("a"),
            Hear("a", {"generation_id": 1}),
            ask("admin", describe(), _is("CompletingRebalance", {"member_metadata": ""})),
            settled(),
            ask("admin", describe(), _is("Stable", {"member_assignment": "for a"}, protocol="range")),
            enter("b"),
            Until("PreparingRebalance", 2),
            ask("admin", describe(), _is("PreparingRebalance", {}, {})),
            Send("a", join()),
            Hear("a", {"generation_id": 2}),
            Hear("b", {"generation_id": 2}),
            ask("a", leave(), OK),
            ask("b", leave(), OK),
            ask("admin", describe(), _is("Empty")),
        ),
    ),
    *(
        Case(
            f"describe-v{version}",
            "a group that there is not is Dead; from version 6 on GROUP_ID_NOT_FOUND as well",
            (
                ask("admin", describe(version=version), {"groups": [{"group_state": "Dead"}]}),
                together("b"),
                ask("admin", describe(version=version), _is("Stable", {}, {}, protocol="range")),
            ),
        )
        for version in range(7)
    ),
    *(
        Case(
            f"list-v{version}",
            "a group of members and one that holds offsets only",
            (
                ask("admin", commit_from_outside(), {}),
                ask("admin", list_groups(version=version), {"groups": [{"protocol_type": ""}]}),
                alone(),
                ask("admin", list_groups(version=version), {"groups": [{"protocol_type": "consumer"}]}),
            ),
        )
        for version in range(6)
    ),
    Case(
        "list-by-state-and-type",
        "filters are read without regard to case; an unknown type is nothing",
        (
            alone(),
            ask("admin", list_groups(states=["Stable"]), _listed("Stable")),
            ask("admin", list_groups(states=["sTABLE", "Empty"]), _listed("Stable")),
            ask("admin", list_groups(states=["PreparingRebalance"]), _listed()),
            ask("admin", list_groups(types=["Classic"]), _listed("Stable")),
            ask("admin", list_groups(types=["classic"], states=["Empty"]), _listed()),
            ask("admin", list_groups(types=["consumer"]), _listed()),
            ask("a", leave(), OK),
            ask("admin", list_groups(states=["Empty"]), _listed("Empty")),
        ),
    ),
    *(
        Case(
            f"delete-groups-v{version}",
            "one that there is not, one with members, one without, whose offsets go with it",
            (
                ask("admin", delete_groups(version=version), _deleted(Error.GROUP_ID_NOT_FOUND)),
                alone(),
                ask("admin", delete_groups(version=version), _deleted(Error.NON_EMPTY_GROUP)),
                ask("a", heartbeat(), OK),
                ask("a", leave(), OK),
                ask("admin", commit_from_outside(), {}),
                ask("admin", delete_groups(version=version), _deleted(Error.NONE)),
                ask(
                    "admin",
                    committed(0),
                    {"groups": [{"topics": [{"partitions": [{"committed_offset": -1}]}]}]},
                ),
                ask("admin", delete_groups(version=version), _deleted(Error.GROUP_ID_NOT_FOUND)),
            ),
        )
        for version in range(3)
    ),
)
