"""Why a broker prepares a round: the `reason` of "Preparing to rebalance", and the cause that a trace names.

The kind of each template is a `group_states.Cause`. What the client gave as its reason (KIP-800) stands
behind "; client reason: " and is taken off first.
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.template import Template
from groupstorm.trace.events.group_states import Cause

_T = Template

REASONS: Final = (
    _T(Cause.NEW_MEMBER, "Adding new member {member_id} with group instanceid {instance}", "2.3.1 GC"),
    _T(Cause.NEW_MEMBER, "Adding new member {member_id} with group instance id {instance}", "2.8.2 to 4.3.1"),
    _T(Cause.NEW_MEMBER, "Adding new member {member_id}", "2.2 GC"),
    _T(Cause.LEADER_REJOINED, "leader {member_id} re-joining group during {state}", "2.8.2 GC"),
    _T(Cause.LEADER_REJOINED, "Leader {member_id} re-joining group during {state}", "3.4.1 to 4.3.1"),
    _T(Cause.MEMBER_UPDATED, "Updating metadata for member {member_id} during {state}", "2.8.2 to 4.3.1"),
    _T(
        Cause.MEMBER_UPDATED,
        "Updating metadata for static member {member_id} with instance id {instance}",
        "2.8.2 to 4.3.1",
    ),
    _T(Cause.MEMBER_UPDATED, "Updating metadata for member {member_id}", "2.3.1 GC"),
    _T(Cause.MEMBER_UPDATED, "Member {member_id} joining group during {state}", "2.8.2 GC"),
    _T(Cause.MEMBER_UPDATED, "Member {member_id} is joining group during {state}", "4.3.1:6697"),
    _T(
        Cause.STATIC_MEMBER,
        "Group's selectedProtocol will change because static member {member_id} with instance id {instance} "
        "joined with change of protocol",
        "2.8.2 to 4.3.1",
    ),
    _T(Cause.LEFT, "removing member {member_id} on LeaveGroup", "2.3.1, 2.8.2 GC"),
    _T(Cause.LEFT, "Removing member {member_id} on LeaveGroup", "3.4.1 GC"),
    _T(Cause.LEFT, "explicit `LeaveGroup` request for ({member_ids}) members.", "4.x"),
    _T(Cause.LEFT, "explicit `LeaveGroup` request for ({member_ids}) members", "3.4.1 to 4.3.1"),
    _T(Cause.LEFT, "explicit `LeaveGroup` request{rest}", "without members"),
    _T(Cause.SESSION_EXPIRED, "removing member {member_id} on heartbeat expiration{dot}", "2.3.1 to 4.3.1"),
    _T(Cause.DOWNGRADED, "Downgrade group {group} from consumer to classic {rest}", "4.3.1"),
    _T(Cause.SYNC_TIMEOUT, "Removing Set({member_ids}) on pending sync request expiration", "2.8.2 GC"),
    _T(Cause.SYNC_TIMEOUT, "Removing HashSet({member_ids}) on pending sync request expiration", "3.4.1 GC"),
    _T(Cause.SYNC_TIMEOUT, "Removing [{member_ids}] on pending sync request expiration", "4.3.1:7388"),
    _T(Cause.OVER_CAPACITY, "Freshly-loaded group {rest}", "2.3.1 to 4.3.1"),
    _T(
        Cause.APPEND_FAILED,
        "error when storing group assignment during SyncGroup (member: {member_id})",
        "2.3.1",
    ),
    _T(
        Cause.APPEND_FAILED,
        "Error {error} when storing group assignment during SyncGroup (member: {member_id})",
        "3.4.1 GC",
    ),
    _T(
        Cause.APPEND_FAILED,
        "Error {error} when storing group assignmentduring SyncGroup (member: {member_id}).",
        "4.3.1:7658",
    ),
)
