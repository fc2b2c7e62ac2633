"""Situations in which the coordinator refuses a request: every error that the client tells apart."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.oracle.member.scripted_broker import Reaction
from tests.oracle.member.scripts import COMMITS_SOON, EAGER, REBALANCE, closes_in, refused
from tests.oracle.member.situation import Act, After, Situation

ERROR_SITUATIONS: tuple[Situation, ...] = (
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
)
