"""The situations of a member: a literal table, each in one or more variants.

Every situation is a group of one member and a coordinator that answers as the script says. The member's
application polls, and closes its consumer when the situation says so or when poll() has thrown.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.errors import Error
from tests.oracle.member.error_situations import ERROR_SITUATIONS
from tests.oracle.member.scripted_broker import On, Reaction
from tests.oracle.member.scripts import (
    COMMITS_SOON,
    EAGER,
    FOLLOWER,
    NOTHING,
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
from tests.oracle.member.situation import Act, Acts, After, Script, Situation, WhenEnded, WhenQuiet

#: Each kind of assignor: the variant's name, and its option.
_STRATEGIES: tuple[tuple[str, Mapping[str, str | int]], ...] = (
    ("cooperative-sticky", {}),
    ("range", EAGER),
    ("sticky", {"partition.assignment.strategy": "sticky"}),
    ("Kafka's default strategies", {"partition.assignment.strategy": "range,cooperative-sticky"}),
)
_COMES_BACK = (After("Heartbeat", 1, Act.CLOSE), WhenEnded(), After("Heartbeat", 1, Act.CLOSE))
_FRESH = {"metadata.max.age.ms": 400}


def _answers(**replaced: Mapping[str, object]) -> Script:
    """The script that replaces answers: ``SyncGroup_1`` is the first one to a SyncGroup."""
    return {_on(name): Reaction(replaced=fields) for name, fields in replaced.items()}


def _on(name: str) -> On:
    api, _, nth = name.partition("_")
    return api, int(nth)


def _fenced(
    variant: str, on: str, script: Script = NOTHING, config: Mapping[str, str | int] = STATIC
) -> Situation:
    fenced = Reaction(error=Error.FENCED_INSTANCE_ID)
    return Situation("static member is fenced", variant, {**script, _on(on): fenced}, (), config)


def _lost(variant: str, on: str, acts: Acts, script: Script = NOTHING) -> Situation:
    return Situation("connection lost", variant, {**script, _on(on): Reaction(dropped=True)}, acts)


SITUATIONS: tuple[Situation, ...] = (
    # -- joining ---------------------------------------------------------------------------------
    *(Situation("first join", name, {}, closes_in(1), config) for name, config in _STRATEGIES),
    Situation("first join", "two topics", {}, closes_in(1), subscribed=("u", "t")),
    Situation("first join", "no auto-commit", {}, closes_in(1), {"enable.auto.commit": "false"}),
    Situation("follower", "", _answers(JoinGroup_2=FOLLOWER, SyncGroup_1=assigned(T1, T2)), closes_in(1)),
    *(
        Situation("leader of two", variant, _answers(JoinGroup_2=joined_by(metadata)), closes_in(1))
        for variant, metadata in (
            ("one owns a partition", OTHER_METADATA),
            ("one subscribes to more", OTHER_TOPIC_METADATA),
        )
    ),
    # -- rebalances ------------------------------------------------------------------------------
    *(
        Situation("heartbeat says rebalance", name, REBALANCE, closes_in(2), config)
        for name, config in _STRATEGIES
    ),
    Situation("second round", "",
              {**REBALANCE, **_answers(SyncGroup_2=assigned(T0), SyncGroup_3=assigned(T0))}, closes_in(3)),
    Situation("second round", "with partitions added",
              {**REBALANCE, **_answers(SyncGroup_1=assigned(T0, T1), SyncGroup_2=assigned(T1, T2)),
               **_answers(SyncGroup_3=assigned(T1, T2))}, closes_in(3)),
    *ERROR_SITUATIONS,
    # -- static members ------------------------------------------------------------------------------
    *(
        Situation(
            "static member comes back",
            variant,
            _answers(JoinGroup_2={"generation": 1, **joined}, SyncGroup_2=assigned(T0, T1, T2)),
            _COMES_BACK,
            STATIC,
        )
        for variant, joined in (("as leader", {"skip_assignment": True}), ("as follower", FOLLOWER))
    ),
    _fenced("by JoinGroup", "JoinGroup_2", REBALANCE),
    _fenced("by SyncGroup", "SyncGroup_2", REBALANCE),
    _fenced("by Heartbeat", "Heartbeat_1"),
    _fenced("by OffsetCommit", "OffsetCommit_1", config={**STATIC, **COMMITS_SOON}),
    _fenced("by OffsetCommit before a rejoin", "OffsetCommit_1", REBALANCE),
    # -- away from poll() ----------------------------------------------------------------------------
    Situation("max.poll.interval.ms passes", "static member", {},
              (After("Heartbeat", 1, Act.LEAVE_POLL), WhenQuiet(400, Act.ENTER_POLL), *closes_in(2)),
              {"max.poll.interval.ms": 500, **STATIC}),
    Situation("max.poll.interval.ms passes", "", {},
              (After("Heartbeat", 1, Act.LEAVE_POLL), After("LeaveGroup", 1, Act.ENTER_POLL), *closes_in(2)),
              {"max.poll.interval.ms": 500}),
    # -- lost connections and coordinators -----------------------------------------------------------
    _lost("at JoinGroup", "JoinGroup_2", closes_in(1)),
    _lost("at JoinGroup of a rejoin", "JoinGroup_3", closes_in(2), REBALANCE),
    _lost("at SyncGroup", "SyncGroup_1", closes_in(2)),
    _lost("at Heartbeat", "Heartbeat_1", (After("Heartbeat", 3, Act.CLOSE),)),
    _lost("at OffsetCommit before a rejoin", "OffsetCommit_1", closes_in(2), REBALANCE),
    _lost("at OffsetFetch", "OffsetFetch_1", (After("Heartbeat", 2, Act.CLOSE),)),
    _lost("at LeaveGroup", "LeaveGroup_1", closes_in(1)),
    *refused("coordinator not found yet", ("FindCoordinator", 1),
             "COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS", closes_in(1)),
    *refused("coordinator never found", ("FindCoordinator", 1), "GROUP_AUTHORIZATION_FAILED INVALID_REQUEST",
             ()),
    *refused("OffsetFetch refused", ("OffsetFetch", 1), "COORDINATOR_LOAD_IN_PROGRESS NOT_COORDINATOR",
             (After("Heartbeat", 2, Act.CLOSE),)),
    Situation("no answer in time", "to SyncGroup", {("SyncGroup", 1): Reaction(silent=True)}, closes_in(2),
              {"request.timeout.ms": 400}),
    Situation("no answer in time", "to heartbeats for session.timeout.ms",
              {("Heartbeat", 1): Reaction(silent=True)}, (After("Heartbeat", 3, Act.CLOSE),),
              {"session.timeout.ms": 400}),
    # -- assignments -----------------------------------------------------------------------------------
    Situation("assignment", "empty", _answers(SyncGroup_1=assigned()), closes_in(1)),
    Situation("assignment", "of no bytes", _answers(SyncGroup_1={"assignment": b""}), ()),
    Situation("assignment", "of a topic that it does not subscribe to",
              _answers(SyncGroup_1=assigned(TopicPartition("u", 0))), closes_in(2)),
    # -- metadata --------------------------------------------------------------------------------------
    Situation("topic grows", "leader", {("Heartbeat", 1): Reaction(partitions={"t": 5})}, closes_in(2),
              _FRESH),
    Situation("topic grows", "follower",
              {**_answers(JoinGroup_2=FOLLOWER, SyncGroup_1=assigned(T1)),
               ("Heartbeat", 1): Reaction(partitions={"t": 5})}, (After("Heartbeat", 6, Act.CLOSE),), _FRESH),
    Situation("topic grows", "that only another member subscribes to",
              {**_answers(JoinGroup_2=joined_by(OTHER_TOPIC_METADATA)),
               ("Heartbeat", 1): Reaction(partitions={"u": 5})}, closes_in(2), _FRESH),
)  # fmt: skip
