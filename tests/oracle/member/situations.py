"""What a member meets: a literal table of situations, each in one or more variants.

Every situation is a group of one member and a coordinator that answers as the script says. The member's
application polls, and closes its consumer when the situation says so or when poll() has thrown.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroupMember
from tests.oracle.member.scripted_broker import On, Reaction
from tests.oracle.member.situation import Act, After, Situation, WhenEnded, WhenQuiet

NOTHING: Mapping[On, Reaction] = {}
AS_EVER: Mapping[str, str | int] = {}
STATIC: Mapping[str, str | int] = {"group.instance.id": "i"}
EAGER: Mapping[str, str | int] = {"partition.assignment.strategy": "range"}
COMMITS_SOON: Mapping[str, str | int] = {"auto.commit.interval.ms": 250}

REBALANCE: Mapping[On, Reaction] = {("Heartbeat", 1): Reaction(error=Error.REBALANCE_IN_PROGRESS)}

OTHER_METADATA = encode_subscription(Subscription(("t",), None, (TopicPartition("t", 0),), 0), 3)
OTHER_TOPIC_METADATA = encode_subscription(Subscription(("t", "u"), None, (), -1), 3)


def assigned(*partitions: TopicPartition) -> Mapping[str, bytes]:
    return {"assignment": encode_assignment(partitions)}


def joined_by(metadata: bytes) -> Mapping[str, object]:
    """The answer to the leader: itself and one more."""
    own = encode_subscription(Subscription(("t",), None, (), -1), 3)
    return {"members": (JoinGroupMember("c-1", None, own), JoinGroupMember("other", None, metadata))}


def closes_in(generation: int) -> tuple[After, ...]:
    """It closes when it has settled: after a heartbeat of that generation."""
    return (After("Heartbeat", 1, Act.CLOSE, generation),)


def refused(
    name: str,
    on: On,
    errors: tuple[Error, ...],
    acts: tuple[After, ...],
    script: Mapping[On, Reaction] = NOTHING,
    config: Mapping[str, str | int] = AS_EVER,
) -> list[Situation]:
    """A variant per error; ``script``: what happens besides."""
    return [
        Situation(name, error.name, {**script, on: Reaction(error=error)}, acts, config) for error in errors
    ]


T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))
FOLLOWER: Mapping[str, object] = {"leader": "other", "members": ()}

SITUATIONS: tuple[Situation, ...] = (
    # -- joining ---------------------------------------------------------------------------------
    Situation("first join", "cooperative-sticky", {}, closes_in(1)),
    Situation("first join", "range", {}, closes_in(1), EAGER),
    Situation("first join", "sticky", {}, closes_in(1), {"partition.assignment.strategy": "sticky"}),
    Situation(
        "first join",
        "Kafka's default strategies",
        {},
        closes_in(1),
        {"partition.assignment.strategy": "range,cooperative-sticky"},
    ),
    Situation("first join", "two topics", {}, closes_in(1), subscribed=("u", "t")),
    Situation("first join", "no auto-commit", {}, closes_in(1), {"enable.auto.commit": "false"}),
    Situation(
        "follower",
        "",
        {
            ("JoinGroup", 2): Reaction(replaced=FOLLOWER),
            ("SyncGroup", 1): Reaction(replaced=assigned(T1, T2)),
        },
        closes_in(1),
    ),
    Situation(
        "leader of two",
        "one owns a partition",
        {("JoinGroup", 2): Reaction(replaced=joined_by(OTHER_METADATA))},
        closes_in(1),
    ),
    Situation(
        "leader of two",
        "one subscribes to more",
        {("JoinGroup", 2): Reaction(replaced=joined_by(OTHER_TOPIC_METADATA))},
        closes_in(1),
    ),
    # -- rebalances ------------------------------------------------------------------------------
    Situation("heartbeat says rebalance", "cooperative-sticky", REBALANCE, closes_in(2)),
    Situation("heartbeat says rebalance", "range", REBALANCE, closes_in(2), EAGER),
    Situation(
        "heartbeat says rebalance",
        "sticky",
        REBALANCE,
        closes_in(2),
        {"partition.assignment.strategy": "sticky"},
    ),
    Situation(
        "heartbeat says rebalance",
        "Kafka's default strategies",
        REBALANCE,
        closes_in(2),
        {"partition.assignment.strategy": "range,cooperative-sticky"},
    ),
    Situation(
        "second round",
        "",
        {
            **REBALANCE,
            ("SyncGroup", 2): Reaction(replaced=assigned(T0)),
            ("SyncGroup", 3): Reaction(replaced=assigned(T0)),
        },
        closes_in(3),
    ),
    Situation(
        "second round",
        "with partitions added",
        {
            ("SyncGroup", 1): Reaction(replaced=assigned(T0, T1)),
            **REBALANCE,
            ("SyncGroup", 2): Reaction(replaced=assigned(T1, T2)),
            ("SyncGroup", 3): Reaction(replaced=assigned(T1, T2)),
        },
        closes_in(3),
    ),
    # -- JoinGroup refused -------------------------------------------------------------------------
    *refused(
        "first join refused for now",
        ("JoinGroup", 1),
        (
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_COORDINATOR,
            Error.REBALANCE_IN_PROGRESS,
        ),
        closes_in(1),
    ),
    *refused(
        "rejoin refused for now",
        ("JoinGroup", 3),
        (
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_COORDINATOR,
            Error.REBALANCE_IN_PROGRESS,
            Error.UNKNOWN_MEMBER_ID,
        ),
        closes_in(2),
        script=REBALANCE,
    ),
    *refused(
        "join refused for good",
        ("JoinGroup", 2),
        (
            Error.GROUP_MAX_SIZE_REACHED,
            Error.INCONSISTENT_GROUP_PROTOCOL,
            Error.INVALID_SESSION_TIMEOUT,
            Error.INVALID_GROUP_ID,
            Error.GROUP_AUTHORIZATION_FAILED,
            Error.UNSUPPORTED_VERSION,
            Error.ILLEGAL_GENERATION,
            Error.REQUEST_TIMED_OUT,
            Error.UNKNOWN_SERVER_ERROR,
        ),
        (),
    ),
    Situation(
        "join refused for good",
        "of another protocol type",
        {("JoinGroup", 2): Reaction(replaced={"protocol_type": "connect"})},
        (),
    ),
    # -- SyncGroup refused -------------------------------------------------------------------------
    *refused(
        "sync refused for now",
        ("SyncGroup", 2),
        (
            Error.REBALANCE_IN_PROGRESS,
            Error.UNKNOWN_MEMBER_ID,
            Error.ILLEGAL_GENERATION,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_COORDINATOR,
        ),
        closes_in(3),
        script=REBALANCE,
    ),
    *refused(
        "sync refused for good",
        ("SyncGroup", 2),
        (
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            Error.GROUP_AUTHORIZATION_FAILED,
            Error.INCONSISTENT_GROUP_PROTOCOL,
            Error.REQUEST_TIMED_OUT,
            Error.UNKNOWN_SERVER_ERROR,
        ),
        (),
        script=REBALANCE,
    ),
    Situation(
        "sync refused for good",
        "of another protocol",
        {**REBALANCE, ("SyncGroup", 2): Reaction(replaced={"protocol": "range"})},
        (),
    ),
    # -- Heartbeat refused -------------------------------------------------------------------------
    *refused(
        "heartbeat says that it is out",
        ("Heartbeat", 1),
        (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION),
        closes_in(2),
    ),
    *refused(
        "heartbeat says that it is out, eager",
        ("Heartbeat", 1),
        (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION),
        closes_in(2),
        config={"partition.assignment.strategy": "sticky"},
    ),
    *refused(
        "heartbeat refused for now",
        ("Heartbeat", 1),
        (
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_COORDINATOR,
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            Error.REQUEST_TIMED_OUT,
            Error.GROUP_AUTHORIZATION_FAILED,
            Error.UNKNOWN_SERVER_ERROR,
        ),
        (After("Heartbeat", 3, Act.CLOSE),),
    ),
    # -- OffsetCommit refused ----------------------------------------------------------------------
    *refused(
        "commit in the background says that it is out",
        ("OffsetCommit", 1),
        (Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION),
        closes_in(2),
        config=COMMITS_SOON,
    ),
    *refused(
        "commit in the background refused for now",
        ("OffsetCommit", 1),
        (
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            Error.UNKNOWN_TOPIC_OR_PARTITION,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_COORDINATOR,
            Error.REQUEST_TIMED_OUT,
            Error.OFFSET_METADATA_TOO_LARGE,
            Error.UNKNOWN_SERVER_ERROR,
        ),
        (After("OffsetCommit", 2, Act.CLOSE),),
        config=COMMITS_SOON,
    ),
    *refused(
        "commit before a rejoin refused",
        ("OffsetCommit", 1),
        (
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            Error.UNKNOWN_TOPIC_OR_PARTITION,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_COORDINATOR,
            Error.REQUEST_TIMED_OUT,
            Error.REBALANCE_IN_PROGRESS,
            Error.UNKNOWN_MEMBER_ID,
            Error.ILLEGAL_GENERATION,
            Error.OFFSET_METADATA_TOO_LARGE,
            Error.UNKNOWN_SERVER_ERROR,
        ),
        closes_in(2),
        script=REBALANCE,
        config=EAGER,
    ),
    *refused(
        "commit on close refused",
        ("OffsetCommit", 1),
        (
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            Error.NOT_COORDINATOR,
            Error.REBALANCE_IN_PROGRESS,
            Error.UNKNOWN_MEMBER_ID,
            Error.ILLEGAL_GENERATION,
            Error.UNKNOWN_SERVER_ERROR,
        ),
        closes_in(1),
    ),
    # -- static members ------------------------------------------------------------------------------
    Situation(
        "static member comes back",
        "as leader",
        {
            ("JoinGroup", 2): Reaction(replaced={"generation": 1, "skip_assignment": True}),
            ("SyncGroup", 2): Reaction(replaced=assigned(T0, T1, T2)),
        },
        (
            After("Heartbeat", 1, Act.CLOSE),
            WhenEnded(),
            After("Heartbeat", 2, Act.CLOSE),
        ),
        STATIC,
    ),
    Situation(
        "static member comes back",
        "as follower",
        {
            ("JoinGroup", 2): Reaction(replaced={"generation": 1, **FOLLOWER}),
            ("SyncGroup", 2): Reaction(replaced=assigned(T0, T1, T2)),
        },
        (
            After("Heartbeat", 1, Act.CLOSE),
            WhenEnded(),
            After("Heartbeat", 2, Act.CLOSE),
        ),
        STATIC,
    ),
    Situation(
        "static member is fenced",
        "by JoinGroup",
        {**REBALANCE, ("JoinGroup", 2): Reaction(error=Error.FENCED_INSTANCE_ID)},
        (),
        STATIC,
    ),
    Situation(
        "static member is fenced",
        "by SyncGroup",
        {**REBALANCE, ("SyncGroup", 2): Reaction(error=Error.FENCED_INSTANCE_ID)},
        (),
        STATIC,
    ),
    Situation(
        "static member is fenced",
        "by Heartbeat",
        {("Heartbeat", 1): Reaction(error=Error.FENCED_INSTANCE_ID)},
        (),
        STATIC,
    ),
    Situation(
        "static member is fenced",
        "by OffsetCommit",
        {("OffsetCommit", 1): Reaction(error=Error.FENCED_INSTANCE_ID)},
        (),
        {**STATIC, **COMMITS_SOON},
    ),
    Situation(
        "static member is fenced",
        "by OffsetCommit before a rejoin",
        {**REBALANCE, ("OffsetCommit", 1): Reaction(error=Error.FENCED_INSTANCE_ID)},
        (),
        STATIC,
    ),
    # -- away from poll() ----------------------------------------------------------------------------
    Situation(
        "max.poll.interval.ms passes",
        "static member",
        {},
        (
            After("Heartbeat", 1, Act.LEAVE_POLL),
            WhenQuiet(400, Act.ENTER_POLL),
            *closes_in(2),
        ),
        {"max.poll.interval.ms": 500, **STATIC},
    ),
    Situation(
        "max.poll.interval.ms passes",
        "",
        {},
        (
            After("Heartbeat", 1, Act.LEAVE_POLL),
            After("LeaveGroup", 1, Act.ENTER_POLL),
            *closes_in(2),
        ),
        {"max.poll.interval.ms": 500},
    ),
    # -- lost connections and coordinators -----------------------------------------------------------
    Situation("connection lost", "at JoinGroup", {("JoinGroup", 2): Reaction(dropped=True)}, closes_in(1)),
    Situation(
        "connection lost",
        "at JoinGroup of a rejoin",
        {**REBALANCE, ("JoinGroup", 3): Reaction(dropped=True)},
        closes_in(2),
    ),
    Situation("connection lost", "at SyncGroup", {("SyncGroup", 1): Reaction(dropped=True)}, closes_in(2)),
    Situation(
        "connection lost",
        "at Heartbeat",
        {("Heartbeat", 1): Reaction(dropped=True)},
        (After("Heartbeat", 3, Act.CLOSE),),
    ),
    Situation(
        "connection lost",
        "at OffsetCommit before a rejoin",
        {**REBALANCE, ("OffsetCommit", 1): Reaction(dropped=True)},
        closes_in(2),
    ),
    Situation(
        "connection lost",
        "at OffsetFetch",
        {("OffsetFetch", 1): Reaction(dropped=True)},
        (After("Heartbeat", 2, Act.CLOSE),),
    ),
    Situation("connection lost", "at LeaveGroup", {("LeaveGroup", 1): Reaction(dropped=True)}, closes_in(1)),
    *refused(
        "coordinator not found yet",
        ("FindCoordinator", 1),
        (Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS),
        closes_in(1),
    ),
    *refused(
        "coordinator never found",
        ("FindCoordinator", 1),
        (Error.GROUP_AUTHORIZATION_FAILED, Error.INVALID_REQUEST),
        (),
    ),
    *refused(
        "OffsetFetch refused",
        ("OffsetFetch", 1),
        (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR),
        (After("Heartbeat", 2, Act.CLOSE),),
    ),
    Situation(
        "no answer in time",
        "to SyncGroup",
        {("SyncGroup", 1): Reaction(silent=True)},
        closes_in(2),
        {"request.timeout.ms": 400},
    ),
    Situation(
        "no answer in time",
        "to heartbeats for session.timeout.ms",
        {("Heartbeat", 1): Reaction(silent=True)},
        (After("Heartbeat", 3, Act.CLOSE),),
        {"session.timeout.ms": 400},
    ),
    # -- assignments -----------------------------------------------------------------------------------
    Situation("assignment", "empty", {("SyncGroup", 1): Reaction(replaced=assigned())}, closes_in(1)),
    Situation("assignment", "of no bytes", {("SyncGroup", 1): Reaction(replaced={"assignment": b""})}, ()),
    Situation(
        "assignment",
        "of a topic that it does not subscribe to",
        {("SyncGroup", 1): Reaction(replaced=assigned(TopicPartition("u", 0)))},
        closes_in(2),
    ),
    # -- metadata --------------------------------------------------------------------------------------
    Situation(
        "topic grows",
        "leader",
        {("Heartbeat", 1): Reaction(partitions={"t": 5})},
        closes_in(2),
        {"metadata.max.age.ms": 400},
    ),
    Situation(
        "topic grows",
        "follower",
        {
            ("JoinGroup", 2): Reaction(replaced=FOLLOWER),
            ("SyncGroup", 1): Reaction(replaced=assigned(T1)),
            ("Heartbeat", 1): Reaction(partitions={"t": 5}),
        },
        (After("Heartbeat", 6, Act.CLOSE),),
        {"metadata.max.age.ms": 400},
    ),
    Situation(
        "topic grows",
        "that only another member subscribes to",
        {
            ("JoinGroup", 2): Reaction(replaced=joined_by(OTHER_TOPIC_METADATA)),
            ("Heartbeat", 1): Reaction(partitions={"u": 5}),
        },
        closes_in(2),
        {"metadata.max.age.ms": 400},
    ),
)
