"""Consumer groups: live classic groups are upgraded, consumer groups downgraded."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.consumer_openings import OWN, case, described, refused, until
from tests.conformance.raw.consumer_requests import LEAVE, beat, describe_consumers, enter
from tests.conformance.raw.openings import group_of_one as classic_group
from tests.conformance.raw.requests import Assigned, Subscribed, describe, heartbeat, join, list_groups, sync
from tests.conformance.raw.steps import OK, Receive, Send, ask

_EVERYTHING = Assigned((0, 1, 2))

CASES = (
    case(
        "upgrade-live-group",
        "the first heartbeat that joins makes it a consumer group; the classic member is told to join again",
        classic_group(plan=_EVERYTHING),
        ask("admin", list_groups(), {"groups": [{"group_type": "classic"}]}),
        ask("b", enter(), {**OK, "member_epoch": 2}),
        ask("admin", list_groups(), {"groups": [{"group_type": "consumer"}]}),
        ask("admin", describe(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
        ask("admin", describe_consumers(), described("Reconciling", {"member_type": 1}, {"member_type": 0})),
        ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
        ask(
            "a",
            join(protocols=(("range", Subscribed(owned=(0, 1, 2))),)),
            {"error_code": "NONE", "leader": ""},
        ),
        ask("a", sync(), OK),
        ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
        ask("a", join(protocols=(("range", Subscribed(owned=(0, 1))),)), OK),
        ask("a", sync(), OK),
        ask("b", beat(), OK),
        ask("b", beat(owned=OWN), OK),
        until("Stable", members=2),
    ),
    case(
        "downgrade-live-group",
        "when the last member of the new protocol leaves, the classic ones rebalance",
        classic_group(plan=_EVERYTHING),
        ask("b", enter(), OK),
        ask("a", join(), OK),
        ask("a", sync(), OK),
        ask("b", beat(epoch=LEAVE), {"error_code": "NONE"}),
        ask("admin", list_groups(), {"groups": [{"group_type": "classic"}]}),
        ask("admin", describe_consumers(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
        ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
        Send("a", join()),
        Receive("a", {"error_code": "NONE", "leader": "{a}"}),
        ask("a", sync(assignments={"a": _EVERYTHING}), OK),
        ask("admin", describe(), {"groups": [{"group_state": "Stable"}]}),
        ask("b", beat(epoch=3), refused(Error.GROUP_ID_NOT_FOUND)),
    ),
)
