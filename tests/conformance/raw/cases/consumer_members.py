"""Consumer groups: members join, share, hand partitions over, leave, come back, and are fenced."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.consumer_openings import (
    OWN,
    case,
    described,
    given,
    group_of_one,
    group_of_two,
    refused,
    still,
    unchanged,
    until,
)
from tests.conformance.raw.consumer_requests import (
    LEAVE,
    LEAVE_FOR_A_WHILE,
    SET,
    alter_configs,
    beat,
    beat_with_everything,
    describe_consumers,
    enter,
)
from tests.conformance.raw.steps import OK, Again, Case, ask

_LEFT = {"error_code": "NONE", "member_epoch": LEAVE}
_GONE_FOR_A_WHILE = {"error_code": "NONE", "member_epoch": LEAVE_FOR_A_WHILE}


def _assignor(name: str) -> Case:
    return case(
        f"members-share-by-{name}",
        f"three members, the server's assignor `{name}`: each has one partition at the end",
        ask("a", enter(assignor=name), given(2, 0, 1, 2)),
        ask("b", enter(assignor=name), given(3)),
        ask("c", enter(assignor=name), given(4)),
        ask("admin", describe_consumers(), described("Reconciling", {}, {}, {}, assignor_name=name)),
        ask("a", beat(), OK),
        ask("a", beat(owned=OWN), OK),
        ask("b", beat(), OK),
        ask("c", beat(), OK),
        ask("a", beat(owned=OWN), OK),
        ask("b", beat(owned=OWN), OK),
        ask("c", beat(owned=OWN), OK),
        until("Stable", members=3, epoch=4),
    )


JOINS = (
    case(
        "member-alone",
        "it has all partitions at once, in group epoch 2; its heartbeats change nothing",
        group_of_one(),
        ask("a", beat(owned=OWN), unchanged(2)),
        still("a"),
        ask("admin", describe_consumers(), described("Stable", {}, group_epoch=2, assignment_epoch=2)),
        ask("a", beat(epoch=LEAVE), _LEFT),
        ask("a", beat(epoch=2), refused(Error.UNKNOWN_MEMBER_ID)),
        ask("admin", describe_consumers(), described("Empty", group_epoch=3)),
    ),
    case(
        "member-hands-over",
        "it gives a partition up at its old epoch; the other gets it when the first owns it no more",
        group_of_one(),
        ask("b", enter(), given(3)),
        ask("admin", describe_consumers(), described("Reconciling", {}, {})),
        ask("a", beat(), given(2, 0, 1)),
        ask("b", beat(), unchanged(3)),
        ask("a", beat(owned={"{topic_id}": [0, 1, 2]}), unchanged(2)),
        ask("b", beat(), unchanged(3)),
        ask("a", beat(owned=OWN), unchanged(3)),
        ask("b", beat(), given(3, 2)),
        ask("b", beat(owned=OWN), unchanged(3)),
        until("Stable", members=2),
    ),
    case(
        "member-leaves",
        "the one that stays has everything at its next heartbeats",
        group_of_two(),
        ask("b", beat(epoch=LEAVE), _LEFT),
        ask("admin", describe_consumers(), described("Assigning", {}, group_epoch=4, assignment_epoch=3)),
        ask("a", beat(), given(4, 0, 1, 2)),
        until("Stable", members=1, epoch=4),
    ),
    case(
        "member-misses-an-answer",
        "a heartbeat that says everything is answered with everything",
        group_of_two(),
        ask("a", beat_with_everything(), given(3, 0, 1)),
        ask("a", beat_with_everything(epoch=2), given(3, 0, 1)),
        still("a", "b"),
    ),
    case(
        "member-joins-again",
        "epoch 0 joins again under the same id: with the same subscription the group epoch stays",
        group_of_two(),
        ask("a", enter(), OK),
        until("Stable", members=2),
        still("a", "b"),
    ),
    case(
        "member-changes-its-subscription",
        "partitions of a topic that it no longer names are taken away at once",
        group_of_two(),
        ask("b", beat(topics=("nobody-makes-it",)), {**OK, "assignment": {"topic_partitions": []}}),
        ask("b", beat(owned={}), OK),
        ask("a", beat(), OK),
        ask("a", beat_with_everything(), {"assignment": {"topic_partitions": [{"partitions": [0, 1, 2]}]}}),
        until("Stable", members=2, epoch=4),
    ),
    _assignor("uniform"),
    _assignor("range"),
    case(
        "members-prefer-assignors",
        "the assignor that most members name; the broker's first one if nobody names any",
        ask("a", enter(assignor="range"), given(2, 0, 1, 2)),
        ask("admin", describe_consumers(), described("Stable", {}, assignor_name="range")),
        ask("b", enter(), OK),
        ask("admin", describe_consumers(), described("Reconciling", {}, {}, assignor_name="range")),
        ask("c", enter(assignor="uniform"), OK),
        ask("d", enter(assignor="uniform"), OK),
        ask("admin", describe_consumers(), described("Reconciling", {}, {}, {}, {}, assignor_name="uniform")),
    ),
    case(
        "member-with-rack",
        "racks are described; the assignors of Kafka 4.3.1 do not look at them",
        ask("a", enter(rack="east"), given(2, 0, 1, 2)),
        ask("b", enter(rack="west"), given(3)),
        ask("a", beat(rack="north"), given(2, 0, 1)),
        ask(
            "admin", describe_consumers(), described("Reconciling", {"rack_id": "north"}, {"rack_id": "west"})
        ),
    ),
)

REGEXES = (
    case(
        "regex-alone",
        "an expression is resolved after the heartbeat that brings it; the next ones know its topics",
        ask("a", enter(topics=None, regex="{topic}"), OK),
        Again(
            "a",
            beat_with_everything(topics=None, regex="{topic}"),
            {"assignment": {"topic_partitions": [{}]}},
        ),
        until("Stable", members=1),
    ),
    case(
        "regex-matches-whole-names",
        "a part of a name is no match",
        ask("a", enter(topics=None, regex="orders"), {**OK, "assignment": {"topic_partitions": []}}),
        until("Stable", members=1),
        ask("admin", describe_consumers(), described("Stable", {"subscribed_topic_regex": "orders"})),
    ),
    case(
        "regex-beside-names",
        "a member may name topics and an expression",
        ask("a", enter(regex="nobody.*"), given(2, 0, 1, 2)),
        ask(
            "admin",
            describe_consumers(),
            {
                "groups": [
                    {
                        "members": [
                            {"subscribed_topic_names": ["<topic>"], "subscribed_topic_regex": "nobody.*"}
                        ]
                    }
                ]
            },
        ),
    ),
    case(
        "regex-and-names-share",
        "one member by its name, one by an expression: each gets some",
        group_of_one(),
        ask("b", enter(topics=None, regex="{topic}|no-other"), OK),
        Again("a", beat_with_everything(), {"assignment": {"topic_partitions": [{"partitions": [0, 1]}]}}),
        ask("a", beat(owned=OWN), OK),
        Again(
            "b",
            beat_with_everything(topics=None, regex="{topic}|no-other"),
            {"assignment": {"topic_partitions": [{"partitions": [2]}]}},
        ),
        until("Stable", members=2),
    ),
    case(
        "regex-is-dropped",
        "an empty expression ends the subscription by expression",
        ask("a", enter(regex="nobody.*"), given(2, 0, 1, 2)),
        ask("a", beat(regex=""), OK),
        ask("admin", describe_consumers(), described("Stable", {"subscribed_topic_regex": ""})),
    ),
)

STATIC = (
    case(
        "static-member-leaves-and-returns",
        "-2 keeps its partitions; the same instance has them again under another id, without a new epoch",
        ask("a", enter(instance="i"), given(2, 0, 1, 2)),
        ask("b", enter(), given(3)),
        ask("a", beat(instance="i"), given(2, 0, 1)),
        ask("a", beat(owned=OWN, instance="i"), unchanged(3)),
        ask("b", beat(), given(3, 2)),
        ask("b", beat(owned=OWN), unchanged(3)),
        ask("a", beat(epoch=LEAVE_FOR_A_WHILE, instance="i"), _GONE_FOR_A_WHILE),
        ask("b", beat(), unchanged(3)),
        ask("admin", describe_consumers(), described("Reconciling", {"member_epoch": -2}, {})),
        ask("again", enter(instance="i"), given(3, 0, 1)),
        ask("again", beat(owned=OWN, instance="i"), unchanged(3)),
        until("Stable", members=2, epoch=3),
        ask("a", beat(epoch=3, instance="i"), refused(Error.FENCED_INSTANCE_ID)),
        ask("a", beat(epoch=3), refused(Error.UNKNOWN_MEMBER_ID)),
        still("b"),
    ),
    case(
        "static-member-returns-under-its-id",
        "after -2 the same member joins again with epoch 0",
        ask("a", enter(instance="i"), given(2, 0, 1, 2)),
        ask("a", beat(epoch=LEAVE_FOR_A_WHILE, instance="i"), _GONE_FOR_A_WHILE),
        ask("a", enter(instance="i"), given(2, 0, 1, 2)),
        until("Stable", members=1, epoch=2),
    ),
    case(
        "static-instance-in-use",
        "UNRELEASED_INSTANCE_ID until the member has left with -2",
        ask("a", enter(instance="i"), given(2, 0, 1, 2)),
        ask("again", enter(instance="i"), refused(Error.UNRELEASED_INSTANCE_ID)),
        ask("a", enter(instance="i"), refused(Error.UNRELEASED_INSTANCE_ID)),
        ask("a", beat(instance="i"), unchanged(2)),
        ask("a", beat(epoch=LEAVE, instance="i"), _LEFT),
        ask("again", enter(instance="i"), OK),
    ),
    case(
        "static-member-with-another-subscription",
        "an instance that comes back subscribed to something else changes the group",
        ask("a", enter(instance="i"), given(2, 0, 1, 2)),
        ask("a", beat(epoch=LEAVE_FOR_A_WHILE, instance="i"), _GONE_FOR_A_WHILE),
        ask("again", enter(topics=("nobody-makes-it",), instance="i"), given(3)),
        until("Stable", members=1, epoch=3),
    ),
)

FENCED = (
    case(
        "fenced-member-joins-again",
        "after FENCED_MEMBER_EPOCH it joins with epoch 0, and has its partitions again",
        group_of_two(),
        ask("b", beat(epoch="$+4"), refused(Error.FENCED_MEMBER_EPOCH)),
        ask("b", enter(), given(3, 2)),
        until("Stable", members=2),
        still("a", "b"),
    ),
    case(
        "fenced-by-its-session",
        "a member without heartbeats is removed after its group's session timeout",
        ask("admin", alter_configs(("consumer.session.timeout.ms", SET, "1000")), {}),
        group_of_one(),
        ask("a", beat(topics=("{topic}",)), unchanged(2)),
        until("Empty", members=0, epoch=3),
        ask("a", beat(), refused(Error.UNKNOWN_MEMBER_ID)),
    ),
    case(
        "fenced-by-its-rebalance-timeout",
        "a member that does not give partitions up in its rebalance timeout is removed",
        group_of_one(rebalance=800),
        ask("b", enter(), given(3)),
        ask("a", beat(), given(2, 0, 1)),
        Again("a", beat(), refused(Error.UNKNOWN_MEMBER_ID)),
        Again("b", beat_with_everything(), {"assignment": {"topic_partitions": [{"partitions": [0, 1, 2]}]}}),
        until("Stable", members=1),
    ),
)

CASES = (*JOINS, *REGEXES, *STATIC, *FENCED)
