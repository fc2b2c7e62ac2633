"""Situations in which the coordinator refuses a request: every error that the client tells apart."""

from __future__ import annotations

from tests.oracle.member.scripted_broker import Reaction
from tests.oracle.member.scripts import COMMITS_SOON, EAGER, REBALANCE, closes_in, refused
from tests.oracle.member.situation import Act, After, Situation

ERROR_SITUATIONS: tuple[Situation, ...] = (
    # -- JoinGroup refused -------------------------------------------------------------------------
    *refused("first join refused for now", ("JoinGroup", 1),
             "COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR REBALANCE_IN_PROGRESS",
             closes_in(1)),
    *refused("rejoin refused for now", ("JoinGroup", 3),
             ("COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR "
              "REBALANCE_IN_PROGRESS UNKNOWN_MEMBER_ID"), closes_in(2), script=REBALANCE),
    *refused("join refused for good", ("JoinGroup", 2),
             ("GROUP_MAX_SIZE_REACHED INCONSISTENT_GROUP_PROTOCOL INVALID_SESSION_TIMEOUT "
              "INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION ILLEGAL_GENERATION "
              "REQUEST_TIMED_OUT UNKNOWN_SERVER_ERROR"), ()),
    Situation("join refused for good", "of another protocol type",
              {("JoinGroup", 2): Reaction(replaced={"protocol_type": "connect"})}, ()),
    # -- SyncGroup refused -------------------------------------------------------------------------
    *refused("sync refused for now", ("SyncGroup", 2),
             ("REBALANCE_IN_PROGRESS UNKNOWN_MEMBER_ID ILLEGAL_GENERATION COORDINATOR_NOT_AVAILABLE "
              "NOT_COORDINATOR"), closes_in(3), script=REBALANCE),
    *refused("sync refused for good", ("SyncGroup", 2),
             ("COORDINATOR_LOAD_IN_PROGRESS GROUP_AUTHORIZATION_FAILED INCONSISTENT_GROUP_PROTOCOL "
              "REQUEST_TIMED_OUT UNKNOWN_SERVER_ERROR"), (), script=REBALANCE),
    Situation("sync refused for good", "of another protocol",
              {**REBALANCE, ("SyncGroup", 2): Reaction(replaced={"protocol": "range"})}, ()),
    # -- Heartbeat refused -------------------------------------------------------------------------
    *refused("heartbeat says that it is out", ("Heartbeat", 1), "UNKNOWN_MEMBER_ID ILLEGAL_GENERATION",
             closes_in(2)),
    *refused("heartbeat says that it is out, eager", ("Heartbeat", 1), "UNKNOWN_MEMBER_ID ILLEGAL_GENERATION",
             closes_in(2), config={"partition.assignment.strategy": "sticky"}),
    *refused("heartbeat refused for now", ("Heartbeat", 1),
             ("COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR COORDINATOR_LOAD_IN_PROGRESS REQUEST_TIMED_OUT "
              "GROUP_AUTHORIZATION_FAILED UNKNOWN_SERVER_ERROR"), (After("Heartbeat", 3, Act.CLOSE),)),
    # -- OffsetCommit refused ----------------------------------------------------------------------
    *refused("commit in the background says that it is out", ("OffsetCommit", 1),
             "REBALANCE_IN_PROGRESS UNKNOWN_MEMBER_ID ILLEGAL_GENERATION", closes_in(2), config=COMMITS_SOON),
    *refused("commit in the background refused for now", ("OffsetCommit", 1),
             ("COORDINATOR_LOAD_IN_PROGRESS UNKNOWN_TOPIC_OR_PARTITION COORDINATOR_NOT_AVAILABLE "
              "NOT_COORDINATOR REQUEST_TIMED_OUT OFFSET_METADATA_TOO_LARGE UNKNOWN_SERVER_ERROR"),
             (After("OffsetCommit", 2, Act.CLOSE),), config=COMMITS_SOON),
    *refused("commit before a rejoin refused", ("OffsetCommit", 1),
             ("COORDINATOR_LOAD_IN_PROGRESS UNKNOWN_TOPIC_OR_PARTITION COORDINATOR_NOT_AVAILABLE "
              "NOT_COORDINATOR REQUEST_TIMED_OUT REBALANCE_IN_PROGRESS UNKNOWN_MEMBER_ID "
              "ILLEGAL_GENERATION OFFSET_METADATA_TOO_LARGE UNKNOWN_SERVER_ERROR"), closes_in(2),
             script=REBALANCE, config=EAGER),
    *refused("commit on close refused", ("OffsetCommit", 1),
             ("COORDINATOR_LOAD_IN_PROGRESS NOT_COORDINATOR REBALANCE_IN_PROGRESS UNKNOWN_MEMBER_ID "
              "ILLEGAL_GENERATION UNKNOWN_SERVER_ERROR"), closes_in(1)),
)  # fmt: skip
