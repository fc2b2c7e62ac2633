"""The states of a classic group and the causes of its changes, as events name them."""

from __future__ import annotations

from enum import StrEnum


class GroupState(StrEnum):
    """A group's state, under the names that DescribeGroups uses."""

    #: No members; committed offsets may remain.
    EMPTY = "Empty"
    #: A round is open: members join again, or miss it.
    PREPARING_REBALANCE = "PreparingRebalance"
    #: The round is closed: the group waits for the leader's assignments.
    COMPLETING_REBALANCE = "CompletingRebalance"
    #: Every member has, or can fetch, its assignment.
    STABLE = "Stable"


class Cause(StrEnum):
    """Why a group, a member or an id changed: the closed list of causes in the coordinator's events."""

    NEW_MEMBER = "new-member"  # a member joined that the group did not have
    PENDING_MEMBER = "pending-member"  # it joined with the id that MEMBER_ID_REQUIRED gave it
    STATIC_MEMBER = "static-member"  # a static member: new, or back under a new id
    MEMBER_UPDATED = "member-updated"  # a member joined again with other protocols or metadata
    LEADER_REJOINED = "leader-rejoined"  # the leader joined again, with whatever metadata
    LEFT = "left"  # LeaveGroup
    SESSION_EXPIRED = "session-expired"  # no heartbeat for session.timeout.ms
    NEW_MEMBER_TIMEOUT = "new-member-timeout"  # a new member was parked for five minutes
    REBALANCE_TIMEOUT = "rebalance-timeout"  # the round was open for the longest rebalance timeout
    SYNC_TIMEOUT = "sync-timeout"  # joined, but sent no SyncGroup for the rebalance timeout
    GROUP_FULL = "group-full"  # refused with GROUP_MAX_SIZE_REACHED, and forgotten
    ALL_JOINED = "all-joined"  # every member has joined and no id is pending
    INITIAL_DELAY = "initial-delay"  # group.initial.rebalance.delay.ms is over
    NO_MEMBERS = "no-members"  # a round closed without members
    ASSIGNED = "assigned"  # the leader's assignments are written
    APPEND_FAILED = "append-failed"  # the records could not be written
    DELETED = "deleted"  # DeleteGroups
    EXPIRED = "expired"  # an empty group whose offsets have all expired (offsets.retention.minutes)
    FAILED = "failed"  # an operation broke off (`operation_failed`) and the group could not go on
    OVER_CAPACITY = "over-capacity"  # loaded with more members than group.max.size
    UPGRADED = "upgraded"  # the first member of the new protocol has come (KIP-848's migration)
    HEARTBEAT = "heartbeat"  # a member of a consumer group joined, changed or came further
    JOIN_TIMEOUT = "join-timeout"  # a classic member of a consumer group did not join again in time
    RESOLVED = "resolved"  # topics were found that match regular expressions
    DOWNGRADED = "downgraded"  # the last member of the new protocol has gone (KIP-848's migration)
    UNLOADED = "unloaded"  # its coordinator moved away, or ended
