"""Consumer groups: ConsumerGroupDescribe, ListGroups and DeleteGroups."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.consumer_openings import case, described, given, group_of_one, group_of_two, still
from tests.conformance.raw.consumer_requests import LEAVE, beat, describe_consumers, enter
from tests.conformance.raw.openings import deleted, listed
from tests.conformance.raw.openings import group_of_one as classic_group
from tests.conformance.raw.requests import commit_from_outside, delete_groups, describe, leave, list_groups
from tests.conformance.raw.steps import OK, ask

CASES = (
    *(
        case(
            f"describe-consumers-v{version}",
            "version 1 says which protocol each member speaks",
            group_of_two(),
            ask("admin", describe_consumers(version=version), described("Stable", {}, {})),
        )
        for version in (0, 1)
    ),
    case(
        "describe-consumers-of-other-groups",
        "a classic group, no group, an empty name, a group twice",
        ask("admin", describe_consumers(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
        ask("admin", describe_consumers(groups=("",)), {}),
        ask("admin", describe_consumers(groups=()), {"groups": []}),
        classic_group(),
        ask("admin", describe_consumers(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
        ask("a", leave(), OK),
        group_of_one("b"),
        ask("admin", describe_consumers(groups=("{group}", "{group}")), {}),
        ask("admin", describe(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
        ask("admin", describe(version=5), {"groups": [{"group_state": "Dead"}]}),
    ),
    *(
        case(
            f"list-consumers-v{version}",
            "a consumer group with members, and empty",
            group_of_one(),
            ask("admin", list_groups(version=version), {"groups": [{"protocol_type": "consumer"}]}),
            ask("a", beat(epoch=LEAVE), {}),
            ask("admin", list_groups(version=version), {"groups": [{"protocol_type": "consumer"}]}),
        )
        for version in range(6)
    ),
    case(
        "list-consumers-by-state-and-type",
        "filters ignore case",
        group_of_two(),
        ask("admin", list_groups(states=["Stable"]), listed("Stable")),
        ask("admin", list_groups(states=["sTABLE", "Empty"]), listed("Stable")),
        ask("admin", list_groups(states=["Assigning"]), listed()),
        ask("admin", list_groups(types=["Consumer"]), listed("Stable")),
        ask("admin", list_groups(types=["classic"]), listed()),
        ask("admin", list_groups(types=["classic", "consumer"], states=["stable"]), listed("Stable")),
        ask("b", beat(epoch=LEAVE), {}),
        ask("admin", list_groups(states=["assigning"]), listed("Assigning")),
        ask("a", beat(epoch=LEAVE), {}),
        ask("admin", list_groups(states=["Empty"], types=["CONSUMER"]), listed("Empty")),
    ),
    *(
        case(
            f"delete-consumer-groups-v{version}",
            "one with members is refused and goes on, an empty one goes with its offsets",
            group_of_one(),
            ask("admin", delete_groups(version=version), deleted(Error.NON_EMPTY_GROUP)),
            still("a"),
            ask("a", beat(epoch=LEAVE), {}),
            ask("admin", commit_from_outside(), {}),
            ask("admin", delete_groups(version=version), deleted(Error.NONE)),
            ask("admin", delete_groups(version=version), deleted(Error.GROUP_ID_NOT_FOUND)),
            ask("a", enter(), given(2, 0, 1, 2)),
        )
        for version in range(3)
    ),
)
