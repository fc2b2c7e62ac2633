"""The situations of a member: a literal table, each in one or more variants.

Every situation is a group of one member and a coordinator that answers as the script says. The member's
application polls, and closes its consumer when the situation says so or when poll() has thrown.
"""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.errors import Error
from tests.oracle.member.error_situations import ERROR_SITUATIONS
from tests.oracle.member.scripted_broker import Reaction
from tests.oracle.member.scripts import (
    COMMITS_SOON,
    EAGER,
    FOLLOWER,
    OTHER_METADATA,
    OTHER_TOPIC_METADATA,
    REBALANCE,
    STATIC,
    T0,
    T1,
    T2,
    assigned,
    closes_in,
    joined_by,
    refused,
)
from tests.oracle.member.situation import Act, After, Situation, WhenEnded, WhenQuiet

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
    *ERROR_SITUATIONS,
    # -- static members ------------------------------------------------------------------------------
    Situation(
        "static member comes back",
        "as leader",
        {
            ("JoinGroup", 2): Reaction(replaced={"generation": 1, "skip_assignment": True}),
            ("SyncGroup", 2): Reaction(replaced=assigned(T0, T1, T2)),
        },
        (After("Heartbeat", 1, Act.CLOSE), WhenEnded(), After("Heartbeat", 1, Act.CLOSE)),
        STATIC,
    ),
    Situation(
        "static member comes back",
        "as follower",
        {
            ("JoinGroup", 2): Reaction(replaced={"generation": 1, **FOLLOWER}),
            ("SyncGroup", 2): Reaction(replaced=assigned(T0, T1, T2)),
        },
        (After("Heartbeat", 1, Act.CLOSE), WhenEnded(), After("Heartbeat", 1, Act.CLOSE)),
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
        (After("Heartbeat", 1, Act.LEAVE_POLL), WhenQuiet(400, Act.ENTER_POLL), *closes_in(2)),
        {"max.poll.interval.ms": 500, **STATIC},
    ),
    Situation(
        "max.poll.interval.ms passes",
        "",
        {},
        (After("Heartbeat", 1, Act.LEAVE_POLL), After("LeaveGroup", 1, Act.ENTER_POLL), *closes_in(2)),
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
        "COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS",
        closes_in(1),
    ),
    *refused(
        "coordinator never found", ("FindCoordinator", 1), "GROUP_AUTHORIZATION_FAILED INVALID_REQUEST", ()
    ),
    *refused(
        "OffsetFetch refused",
        ("OffsetFetch", 1),
        "COORDINATOR_LOAD_IN_PROGRESS NOT_COORDINATOR",
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
