"""What a broker logs about classic groups: kafka.coordinator.group (Kafka 2.3 to 3.9), and its older wording.

``where`` names the release and the line of `GroupCoordinator.scala` (GC), `GroupMetadata.scala` (GM) or
`GroupMetadataManager.scala` (GMM).
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.template import Template

_T = Template
_OFFSETS: Final = "(__consumer_offsets-{partition})"

TEMPLATES: Final = (
    # -- rounds
    _T(
        "preparing",
        "Preparing to rebalance group {group} in state {state} with old generation {old_generation} "
        f"{_OFFSETS} (reason: {{reason}})",
        "2.3.1 GC:872, 3.8.0 GC:1498",
    ),
    _T(
        "preparing",
        f"Preparing to rebalance group {{group}} with old generation {{old_generation}} {_OFFSETS}",
        "1.x GC",
    ),
    _T("preparing", "Preparing to restabilize group {group} with old generation {old_generation}", "0.9 GC"),
    _T(
        "stabilized",
        f"Stabilized group {{group}} generation {{generation}} {_OFFSETS} with {{count}} members",
        "2.8.2 GC:1223, 3.8.0 GC:1573",
    ),
    _T("stabilized", f"Stabilized group {{group}} generation {{generation}} {_OFFSETS}", "2.3.1 GC:950"),
    _T("stabilized", "Stabilized group {group} generation {generation}", "0.9 GC"),
    _T(
        "assignment",
        "Assignment received from leader {leader} for group {group} for generation {generation}. "
        "The group has {count} members, {static} of which are static.",
        "3.4.1 GC:600",
    ),
    _T(
        "assignment",
        "Assignment received from leader for group {group} for generation {generation}. "
        "The group has {count} members, {static} of which are static.",
        "2.8.2 GC:411",
    ),
    _T(
        "assignment",
        "Assignment received from leader for group {group} for generation {generation}",
        "2.3.1 GC:381",
    ),
    _T("empty", f"Group {{group}} with generation {{generation}} is now empty {_OFFSETS}", "2.3.1 GC:938"),
    _T("gone", "Group {group} generation {generation} is dead and removed", "0.9 GC"),
    _T("noted", "Group {group} is dead, skipping rebalance stage", "2.3.1 GC:926"),
    _T("noted", "Group {group} could not complete rebalance because no members rejoined", "2.3.1 GC:931"),
    # -- members that come
    _T(
        "id-handed-out",
        "Dynamic member with unknown member id joins group {group} in {state} state. "
        "Created a new member id {member_id} and request the member to rejoin with this id.",
        "3.4.1 GC:352",
    ),
    _T(
        "created",
        "Dynamic Member with unknown member id joins group {group} in {state} state. "
        "Created a new member id {member_id} for this member and add to the group.",
        "2.8.2 GC:234, 3.4.1 GC:359",
    ),
    _T(
        "noted",  # the line "Adding new static member" follows, which has its instance
        "Static Member with unknown member id joins group {group} in {state} state. "
        "Created a new member id {member_id} for this member and add to the group.",
        "2.8.2 GC:234",
    ),
    _T(
        "static-created",
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} "
        "state. Created a new member id {member_id} for this member and add to the group.",
        "3.4.1 GC:328",
    ),
    _T(
        "static-created",
        "Adding new static member {instance} to group {group} with member id {member_id}.",
        "2.8.2 GC:1026",
    ),
    _T(
        "static-replacing",
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} "
        "state. Replacing previously mapped member {old_member_id} with this groupInstanceId.",
        "3.4.1 GC:310",
    ),
    _T(
        "static-replaced",
        "Static member {instance} of group {group} with unknown member id rejoins, assigning new member id "
        "{member_id}, while old member id {old_member_id} will be removed.",
        "2.8.2 GC:1040",
    ),
    _T(
        "static-replaced-anywhere",
        "Static member {instance} with unknown member id rejoins, assigning new member id {member_id}, "
        "while old member {old_member_id} will be removed.",
        "2.3.1 GC:182",
    ),
    _T("noted", "Static member joins during {state} stage will not trigger rebalance.", "2.3.1 GC:196"),
    _T(
        "fenced",
        "Request memberId={member_id} for static member with groupInstanceId={instance} is fenced by current "
        "memberId={old_member_id} during operation {operation}",
        "3.4.1 GC:379",
    ),
    # -- members that go
    _T(
        "failed",
        "Member {member_id} in group {group} has failed, removing it from the group",
        "2.3.1 GC:1016",
    ),
    _T(
        "left",
        "Member[group.instance.id {instance}, member.id {member_id}] in group {group} has left, removing it "
        "from the group",
        "2.8.2 GC:499",
    ),
    _T("left", "Member {member_id} in group {group} has left, removing it from the group", "2.3.1 GC:441"),
    _T(
        "left-described",
        "Member MemberMetadata({description}) has left group {group} through explicit `LeaveGroup`; "
        "client reason: {reason}",
        "3.4.1 GC:654",
    ),
    _T(
        "left-described",
        "Member MemberMetadata({description}) has left group {group} through explicit `LeaveGroup`{rest}",
        "without a reason",
    ),
    _T("pending-left", "Pending member {member_id} is leaving group {group}.", "2.3.1 GC:432"),
    _T(
        "pending-left",
        "Pending member with memberId={member_id} has left group {group} through explicit `LeaveGroup` "
        "request",
        "3.4.1 GC:689",
    ),
    _T(
        "pending-expired",
        "Pending member {member_id} in group {group} has been removed after session timeout expiration.",
        "2.3.1 GC:1009",
    ),
    _T(
        "not-rejoined",
        "Group {group} removed dynamic members who haven't joined: Set({member_ids})",
        "2.8.2 GC:1189",
    ),
    _T("noted", "Member id {member_id} was not found in {group} during heartbeat {rest}", "2.3.1 GC:999"),
    _T("noted", "Group leader [member.id: {rest}", "2.8.2 GM:286"),
    _T("noted", "Received unexpected notification of sync expiration {rest}", "2.8.2 GC:1311"),
    # -- the group's life
    _T("loading", "Loading group metadata for {group} with generation {generation}", "2.3.1 GC:726"),
    _T("unloaded", "Unloading group metadata for {group} with generation {generation}", "2.3.1 GC:702"),
    _T(
        "loaded-member",
        "Loaded member MemberMetadata({description}) in group {group} with generation {generation}.",
        "2.8.2 GM:149",
    ),
    _T("gone", "Group {group} transitioned to Dead in generation {generation}", "2.3.1 GMM:745"),
    _T("noted", "given member.id {member_id} is identified as a known static member {rest}", "2.8.2 GM:429"),
    _T("append-failed", "Failed to write empty metadata for group {group}: {error}", "2.3.1 GC:946"),
    _T("append-failed", "Failed to persist metadata for group {group}: {error}", "2.8.2 GC:1063"),
    _T("noted", "The following groups were deleted: {rest}", "2.3.1 GC:483"),
    _T("noted", "The following offsets of the group {group} were deleted: {rest}", "2.8.2 GC:599"),
    # -- the coordinator's life
    *(
        _T("noted", text, "2.3.1 to 3.8.0 GC, GMM")
        for text in (
            "Shutdown complete.",
            "Startup complete.",
            "Starting up.",
            "Shutting down.",
            "Scheduling loading of offsets and group metadata from {rest}",
            "Already loading offsets and group metadata from {rest}",
            "Not loading offsets and group metadata for {rest}",
            "Finished loading offsets and group metadata from {rest}",
            "Error loading offsets from {rest}",
            "Attempted to load offsets and group metadata from {rest}",
            "Loaded offsets and group metadata from {rest}",
            "Scheduling unloading of offsets and group metadata from {rest}",
            "Finished unloading {rest}",
            "Not removing offsets and group metadata for {rest}",
            "Removed {count} expired offsets in {ms} milliseconds.",
            "Removed {count} offsets associated with deleted partitions: {rest}",
            "Elected as the group coordinator for partition {rest}",
            "Resigned as the group coordinator for partition {rest}",
            "Failed to append {count} tombstones to {rest}",
            "Group {group} has moved away from {rest}",
            "Failed to parse Consumer Protocol {rest}",
            "Unknown message key with version {rest}",
            "Static member which joins during Stable stage and doesn't affect selectProtocol will not "
            "trigger rebalance.",
            "Received notification of heartbeat expiration for member {member_id} after group {group} had "
            "already been unloaded or deleted.",
            "Attempt to add rejoining member {member_id} of group {group} in unexpected group state {state}",
            "Setting empty assignments for members {member_ids} of {group} for generation {generation}{dot}",
            "Sending empty assignment to member {member_id} of {group} for generation {generation} with no "
            "errors",
            "Static member MemberMetadata({description}).groupInstanceId of group {group} loaded with member"
            " id {member_id} at generation {generation}.",
            "Appending metadata message for group {group} generation {generation} failed due to {rest}",
        )
    ),
)
