"""Consumer groups: live classic groups are upgraded, consumer groups downgraded."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.consumer_openings import OWN, case, described, group_of_one, refused, until
from tests.conformance.raw.consumer_requests import LEAVE, beat, commit_as, describe_consumers, enter
from tests.conformance.raw.openings import group_of_one as classic_group
from tests.conformance.raw.openings import send_join
from tests.conformance.raw.requests import (
    Assigned,
    Subscribed,
    commit,
    describe,
    fetch_offsets,
    heartbeat,
    join,
    leave,
    list_groups,
    sync,
)
from tests.conformance.raw.steps import OK, Receive, Send, Until, ask

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
        "upgrade-while-members-join",
        "parked members are answered REBALANCE_IN_PROGRESS and join again",
        classic_group(plan=_EVERYTHING),
        send_join("c"),
        Until("PreparingRebalance", 2),
        ask("b", enter(), {}),
        Receive("c", {"error_code": "REBALANCE_IN_PROGRESS"}),
        ask("c", join(), {}),
    ),
    case(
        "upgrade-empty-group",
        "an empty classic group is replaced; its offsets stay",
        classic_group(plan=_EVERYTHING),
        ask("a", commit(7), {}),
        ask("a", leave(), OK),
        group_of_one("b"),
        ask("admin", fetch_offsets(0), {"groups": [{"topics": [{"partitions": [{"committed_offset": 7}]}]}]}),
        ask("b", commit_as(9), {"topics": [{"partitions": [{"error_code": "NONE"}]}]}),
    ),
    case(
        "classic-member-joins-consumer-group",
        "JoinGroup is answered at once, without a leader; the generation is the member epoch",
        group_of_one(),
        ask("c", join(member=""), Error.MEMBER_ID_REQUIRED),
        ask("c", join(), {"error_code": "NONE", "generation_id": 3, "leader": ""}),
        ask("c", sync(), OK),
        ask("a", beat(), OK),
        ask("a", beat(owned=OWN), OK),
        ask("c", heartbeat(), Error.REBALANCE_IN_PROGRESS),
        ask("c", join(), OK),
        ask("c", sync(), OK),
        ask("c", commit(5, partition=2), {}),
        ask("c", heartbeat(generation="$+1"), {}),
        ask("c", heartbeat(), OK),
        until("Stable", members=2),
        ask("c", leave(), OK),
        until("Assigning", members=1),
    ),
    case(
        "classic-member-that-does-not-fit",
        "another type or no common protocol is refused; the group goes on",
        group_of_one(),
        ask("c", join(member="", protocol_type="connect"), Error.INCONSISTENT_GROUP_PROTOCOL),
        ask("c", join(member="", protocols=(("range", b"nonsense"),)), {}),
        ask("a", beat(), OK),
        until("Stable", members=1),
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
    case(
        "rolling-upgrade",
        "the classic member is replaced by one of the new protocol: nobody speaks the classic one any more",
        classic_group(plan=_EVERYTHING),
        ask("b", enter(), OK),
        ask("a", leave(), OK),
        ask("b", beat(), OK),
        ask("b", beat(owned=OWN), OK),
        until("Stable", members=1),
        ask("admin", describe_consumers(), described("Stable", {"member_type": 1})),
    ),
)
