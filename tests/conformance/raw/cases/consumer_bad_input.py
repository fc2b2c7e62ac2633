"""Consumer groups: heartbeats that Kafka refuses, with its message; the group goes on as it was."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.backends import MAX_SIZE
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
    beat,
    beat_with_everything,
    describe_consumers,
    enter,
)
from tests.conformance.raw.openings import group_of_one as classic_group
from tests.conformance.raw.requests import commit_from_outside, describe, heartbeat
from tests.conformance.raw.steps import OK, Case, Request, ask

_INVALID = Error.INVALID_REQUEST
_NOBODY = "00000000-0000-0000-0000-000000000000"
_UNKNOWN = "3b7e4a52-7a0c-4f0b-9d5e-0a1b2c3d4e5f"
_INT_MAX, _INT_MIN = 2**31 - 1, -(2**31)


#: Requests that are refused alike: the error, Kafka's sentence (None: not compared here), and the requests.
_Refused = tuple[Error, str | None, tuple[Request, ...]]


def _bad(name: str, about: str, *all_refused: _Refused) -> Case:
    """Every request is sent by a stranger, x, to a Stable group of two."""
    return case(
        f"bad-{name}",
        about,
        group_of_two(),
        [ask("x", one, refused(code, said)) for code, said, requests in all_refused for one in requests],
        still("a", "b"),
        ask("admin", describe_consumers(), described("Stable", {}, {}, group_epoch=3, assignment_epoch=3)),
    )


def _empty(text: str) -> str:
    return f"{text} can't be empty."


_NEEDS_SUBSCRIPTION = (
    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
)
_NOT_EMPTY = "TopicPartitions must be empty when (re-)joining."
_NO_SUCH_ASSIGNOR = "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
_EMPTY = (
    _bad(
        "member-id",
        "version 1 has members draw their ids; version 0 takes an empty one with epochs 0 and -2 alone",
        (
            _INVALID,
            _empty("MemberId"),
            (
                *(
                    enter(member=""),
                    enter(member=" \t"),
                    beat(member="", epoch=LEAVE_FOR_A_WHILE, instance="i"),
                ),
                *(beat(member="", epoch=3, version=0), beat(member="", epoch=LEAVE, version=0)),
            ),
        ),
    ),
    _bad(
        "group-id",
        "an empty group id",
        (_INVALID, _empty("GroupId"), (enter(group=""), enter(group="  "), beat(group="", epoch=LEAVE))),
    ),
    _bad(
        "instance-id",
        "an empty group.instance.id; epoch -2 without one",
        (_INVALID, _empty("InstanceId"), (enter(instance=""), enter(instance=" "))),
        (_INVALID, "InstanceId can't be null.", (beat(epoch=LEAVE_FOR_A_WHILE),)),
    ),
    _bad("rack-id", "an empty rack", (_INVALID, _empty("RackId"), (enter(rack=""),))),
)

_JOINS = (
    _bad(
        "rebalance-timeout",
        "a member that joins says it; -1 counts as left out",
        (_INVALID, "RebalanceTimeoutMs must be provided in first request.", (enter(rebalance=-1),)),
    ),
    _bad(
        "owned-on-joining",
        "a member that joins owns nothing and says so",
        (_INVALID, _NOT_EMPTY, (enter(owned=None), enter(owned={"{topic_id}": [0]}))),
    ),
    _bad(
        "no-subscription",
        "a member that joins subscribes to names, to an expression, or to both",
        (_INVALID, _NEEDS_SUBSCRIPTION, (enter(topics=None), enter(topics=None, version=0))),
    ),
    _bad(
        "epoch",
        "epochs below -2 mean nothing",
        (_INVALID, "MemberEpoch is invalid.", (beat(epoch=-3), beat(epoch=_INT_MIN))),
    ),
    _bad(
        "assignor",
        "a server assignor that the broker does not have",
        (Error.UNSUPPORTED_ASSIGNOR, _NO_SUCH_ASSIGNOR, (enter(assignor="sticky"),)),
        (
            Error.UNSUPPORTED_ASSIGNOR,
            None,
            (enter(assignor=""), enter(assignor="Uniform"), beat(epoch=3, assignor="nobody's")),
        ),
    ),
    _bad(
        "regex-bracket",
        "an expression that RE2/J does not compile: [a",
        (Error.INVALID_REGULAR_EXPRESSION, None, (enter(topics=None, regex="[a"), enter(regex="[a"))),
    ),
    case(
        "bad-full-group",
        "group.consumer.max.size: one member more is refused",
        [ask(f"m{number}", enter(), OK) for number in range(MAX_SIZE)],
        ask(
            "x",
            enter(),
            refused(
                Error.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {MAX_SIZE} members.",
            ),
        ),
        ask("x", enter(instance="i"), refused(Error.GROUP_MAX_SIZE_REACHED)),
        ask("m0", beat(), OK),
    ),
)

_STRANGERS = (
    case(
        "bad-heartbeat-without-group",
        "a group that does not exist: only a join makes it",
        ask("x", beat(epoch=1), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", beat(epoch=LEAVE), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", beat(epoch=LEAVE_FOR_A_WHILE, instance="i"), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("admin", describe_consumers(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
        ask("a", enter(), given(2, 0, 1, 2)),
    ),
    _bad(
        "unknown-member",
        "UNKNOWN_MEMBER_ID: a member or an instance that the group does not have",
        (
            Error.UNKNOWN_MEMBER_ID,
            None,
            (
                *(beat(epoch=1), beat(epoch=3), beat(epoch=LEAVE), beat(epoch=3, instance="i")),
                *(beat(epoch=LEAVE_FOR_A_WHILE, instance="i"), beat(epoch=LEAVE, instance="i")),
            ),
        ),
    ),
)

_OTHER_TYPE = (
    case(
        "bad-classic-group",
        "heartbeats to a classic group: only a join changes it, a member id of it gets nothing",
        classic_group(),
        ask("x", beat(epoch=1), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", beat(member="$a", epoch=1), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", beat(member="$a", epoch=LEAVE), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", enter(member="$a", topics=None), refused(_INVALID)),
        ask("x", enter(assignor="sticky"), refused(Error.UNSUPPORTED_ASSIGNOR)),
        ask("a", heartbeat(), OK),
        ask("admin", describe(), {"groups": [{"group_state": "Stable"}]}),
        ask("admin", describe_consumers(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
    ),
    case(
        "bad-group-of-another-kind",
        "a classic group of Connect is no group of consumers",
        classic_group(protocol_type="connect", protocols=(("default", b"opaque"),)),
        ask("x", enter(), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("a", heartbeat(), OK),
    ),
    case(
        "bad-upgrade-of-unreadable-group",
        "members whose assignments or subscriptions are not a consumer's cannot be taken over",
        classic_group(plan=b"nonsense"),
        ask("x", enter(), refused(Error.UNKNOWN_SERVER_ERROR)),
        ask("a", heartbeat(), OK),
    ),
    case(
        "bad-classic-requests",
        "requests of classic members with ids of members of the new protocol",
        group_of_one(),
        ask("a", heartbeat(member="a", generation=2), {}),
        ask("a", heartbeat(member="nobody", generation=2), refused(Error.UNKNOWN_MEMBER_ID)),
        ask("admin", describe(), {}),
        still("a"),
    ),
)

_ODD = (
    case(
        "odd-repeated-topics",
        "a name that comes twice counts once",
        ask("a", enter(topics=("{topic}", "{topic}")), given(2, 0, 1, 2)),
        ask("a", beat(topics=("{topic}", "{topic}", "{topic}")), unchanged(2)),
        ask("admin", describe_consumers(), described("Stable", {"subscribed_topic_names": ["<topic>"]})),
    ),
    case(
        "odd-repeated-partitions",
        "a partition that a member says twice that it owns counts once",
        group_of_one(),
        ask("b", enter(), given(3)),
        ask("a", beat(owned={"{topic_id}": [0, 0, 1, 2, 2]}), given(2, 0, 1)),
        ask("a", beat(owned={"{topic_id}": [0, 0, 1, 1]}), unchanged(3)),
        ask("b", beat(), given(3, 2)),
    ),
    case(
        "odd-owned-partitions",
        "partitions that do not exist, or that are another's, change nothing",
        group_of_two(),
        ask("a", beat(owned={"{topic_id}": [0, 1, 2]}), OK),
        ask("a", beat(owned={"{topic_id}": [7, -1, 2147483647]}), OK),
        ask("a", beat(owned={_UNKNOWN: [0]}), OK),
        ask("a", beat(owned={_NOBODY: [0]}), OK),
        ask("a", beat(owned={}), OK),
        still("b"),
    ),
    case(
        "odd-topics",
        "names of topics that do not exist, or that no topic can have",
        ask("a", enter(topics=("nobody-makes-it",)), given(2)),
        ask("a", beat(topics=("",)), unchanged(3)),
        ask("a", beat(topics=("a/b", "x" * 300)), OK),
        ask("a", beat(topics=("{topic}",)), OK),
    ),
    case(
        "odd-empty-subscription",
        "a member may subscribe to nothing: an empty list, or an empty expression",
        ask("a", enter(topics=()), OK),
        ask("b", enter(topics=None, regex=""), OK),
        ask("a", beat_with_everything(topics=(), owned={}), OK),
        until("Stable", members=2),
    ),
    case(
        "odd-rebalance-timeouts",
        "any number but -1 is taken, 0 and negative ones too",
        ask("a", enter(rebalance=0), given(2, 0, 1, 2)),
        ask("a", beat(rebalance=-7), unchanged(2)),
        ask("a", beat(rebalance=_INT_MAX), unchanged(2)),
        ask("a", beat(rebalance=_INT_MIN), unchanged(2)),
    ),
    case(
        "odd-long-names",
        "ids may be long",
        ask("a", enter(instance="i" * 2000, rack="r" * 2000), given(2, 0, 1, 2)),
        ask("b", enter(member="b" * 3000), OK),
        ask("admin", describe_consumers(), described("Reconciling", {}, {})),
    ),
    case(
        "odd-owned-in-version-0",
        "version 0 draws the id of a member that has none; no expressions",
        ask("a", enter(member="", version=0), given(2, 0, 1, 2)),
        ask("a", beat(member="$", version=0), unchanged(2)),
        ask("a", beat(member="$", epoch=LEAVE, version=0), {"error_code": "NONE", "member_epoch": -1}),
    ),
    case(
        "odd-leave-with-everything",
        "a member that leaves may say anything else beside it",
        group_of_two(),
        ask("b", beat_with_everything(epoch=LEAVE, rack="r"), {"error_code": "NONE", "member_epoch": -1}),
        ask("a", beat(), given(4, 0, 1, 2)),
        ask("admin", commit_from_outside(), {}),
        ask("a", beat(owned=OWN), unchanged(4)),
    ),
)

CASES = (*_EMPTY, *_JOINS, *_STRANGERS, *_OTHER_TYPE, *_ODD)
