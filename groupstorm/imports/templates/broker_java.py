"""What a broker logs about classic groups since it has its coordinator in Java (Kafka 4.0; 3.7 if it is
chosen).

``where``: the release and the line of `GroupMetadataManager.java`, or of `CoordinatorRuntime.java` (CR).
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.template import Template

_T = Template

TEMPLATES: Final = (
    # -- rounds
    _T(
        "preparing",
        "Preparing to rebalance group {group} in state {state} with old generation {old_generation} "
        "(reason: {reason}).",
        "3.8.0:3585, 4.3.1:7160",
    ),
    _T("stabilized", "Stabilized group {group} generation {generation} with {count} members.", "4.3.1:6870"),
    _T("empty", "Group {group} with generation {generation} is now empty.", "4.3.1:6851"),
    _T("noted", "Group {group} is dead, skipping rebalance stage.", "4.3.1:6832"),
    _T("noted", "Group {group} could not complete rebalance because no members rejoined.", "4.3.1:6837"),
    # -- members that come
    _T(
        "id-handed-out",
        "Dynamic member with unknown member id joins group {group} in {state} state. "
        "Created a new member id {member_id} and requesting the member to rejoin with this id.",
        "4.3.1:6598",
    ),
    _T(
        "created",
        "Dynamic member with unknown member id joins group {group} in state {state}. "
        "Created a new member id {member_id} and added the member to the group.",
        "4.3.1:6618",
    ),
    _T(
        "pending-joins",
        "Pending dynamic member with id {member_id} joins group {group} in {state} state. "
        "Adding to the group now.",
        "4.3.1:6668",
    ),
    _T(
        "static-created",
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} "
        "state. Created a new member id {member_id} for this member and added to the group.",
        "4.3.1:6565",
    ),
    _T("append-failed", "Failed to persist metadata for group {group} static member {rest}", "4.3.1:7479"),
    _T(
        "fenced",
        "Request memberId={member_id} for static member with groupInstanceId={instance} is fenced by "
        "existing memberId={old_member_id} during operation {operation}",
        "4.4.0 ClassicGroup",
    ),
    # -- members that go
    _T("failed", "Member {member_id} in group {group} has failed, removing it from the group.", "4.3.1:6954"),
    *(
        _T(
            kind,
            f"[{{word}} {{group}}] {who} has left group through explicit `LeaveGroup` request{end}",
            where,
        )
        for kind, who, where in (
            ("left", "Dynamic member {member_id}", "4.3.1:8057"),
            ("left", "Dynamic Member {member_id}", "3.8.0:4494"),
            ("left", "Static member {member_id} with instance id {instance}", "4.3.1:8069"),
            ("left", "Static Member {member_id} with instance id {instance}", "3.8.0:4508"),
            ("left", "Member {member_id}", "4.3.1:8222"),
            ("pending-left", "Pending member {member_id}", "4.3.1:8144"),
        )
        for end in ("; client reason: {reason}", "{dot}")
    ),
    _T(
        "not-rejoined",
        "Group {group} removed dynamic members who haven't joined: [{member_ids}]",
        "4.3.1:6827",
    ),
    _T("noted", "Cannot complete join phase of group {group} because {rest}", "4.3.1:6465 DEBUG"),
    _T("noted", "Member {member_id} has already been removed from the group.", "4.3.1:6950 DEBUG"),
    # -- the group's life
    _T("loaded", "Loaded classic group {group} with {count} members.", "4.3.1:6156"),
    _T("loaded-id", "Loaded member {member_id} in classic group {group}.", "4.3.1:6158 DEBUG"),
    _T("unloaded", "[GroupId={group}] Unloading group metadata for generation {generation}.", "4.3.1:6208"),
    # -- the coordinator's life
    *(
        _T("noted", text, "4.3.1 CR")
        for text in (
            "Scheduling loading of metadata from {rest}",
            "Finished loading of metadata from {rest}",
            "Ignored load completion from {rest}",
            "Failed to load metadata from {rest}",
            "Scheduling unloading of metadata for {rest}",
            "Started unloading metadata for {rest}",
            "Finished unloading metadata for {rest}",
            "Ignored unloading metadata for {rest}",
            "Ignored loading metadata from {rest}",
            "Shutting down event processor.",
            "Event processor closed.",
            "Closing coordinator runtime.",
            "Coordinator runtime closed.",
            "Execution of {rest}",
            "Static member which joins during Stable stage and doesn't affect the selected protocol will not"
            " trigger a rebalance.",
            "Group {group} removed members who haven't sent their sync requests: {rest}",
            "Received notification of heartbeat expiration for member {member_id} after group {group} had "
            "already been deleted or upgraded.",
        )
    ),
)
