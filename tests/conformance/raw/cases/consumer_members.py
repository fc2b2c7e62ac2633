"""Consumer groups: members join, share, hand partitions over, leave, come back, and are fenced."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.consumer_openings import (
    OWN,
    case,
    described,
    given,
    group_of_one,
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
from tests.conformance.raw.steps import OK, Again, ask

_LEFT = {"error_code": "NONE", "member_epoch": LEAVE}
_GONE_FOR_A_WHILE = {"error_code": "NONE", "member_epoch": LEAVE_FOR_A_WHILE}


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
)

FENCED = (
    case(
        "fenced-by-its-session",
        "a member without heartbeats is removed after its group's session timeout",
        ask("admin", alter_configs(("consumer.session.timeout.ms", SET, "1000")), {}),
        group_of_one(),
        ask("a", beat(topics=("{topic}",)), unchanged(2)),
        until("Empty", members=0, epoch=3),
        ask("a", beat(), refused(Error.UNKNOWN_MEMBER_ID)),
    ),
)

CASES = (*JOINS, *REGEXES, *STATIC, *FENCED)
