"""What a broker logs about consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071).

``where``: the release and the line of `GroupMetadataManager.java`. Kafka 3.7 to 3.9 log assignments at INFO,
Kafka 4 at DEBUG.
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.template import Template

_T = Template
_G: Final = "[GroupId {group}] "
_GM: Final = "[GroupId {group}][MemberId {member_id}] "

TEMPLATES: Final = (
    # -- members that come
    _T(
        "modern-joined",
        f"{_G}Member {{member_id}} joins the {{type}} group using the {{protocol}} protocol.",
        "4.3.1:3094",
    ),
    _T("modern-joined", f"{_G}Member {{member_id}} joins the consumer group.", "3.8.0:1414"),
    _T("modern-joined", f"{_GM}Member joins the {{type}} group.", "4.3.1:3125"),
    _T(
        "modern-joined",
        f"{_G}Static member {{member_id}} with instance id {{instance}} joins the consumer group using the "
        "{protocol} protocol.",
        "4.3.1:3163",
    ),
    _T(
        "modern-joined",
        f"{_G}Static member {{member_id}} with instance id {{instance}} joins the consumer group.",
        "3.8.0:1425",
    ),
    _T(
        "modern-replaced",
        f"{_G}Static member with instance id {{instance}} re-joins the consumer group using the {{protocol}} "
        "protocol. Created a new member {member_id} to replace the existing member {old_member_id}.",
        "4.3.1:3183",
    ),
    _T(
        "modern-replaced",
        f"{_G}Static member with unknown member id and instance id {{instance}} re-joins the consumer group. "
        "Created a new member {member_id} to replace the existing member {old_member_id}.",
        "3.8.0:1437",
    ),
    _T(
        "noted",
        f"{_G}Static member {{member_id}} with instance id {{instance}} re-joins the consumer group.",
        "3.8.0:1641",
    ),
    _T(
        "modern-id-handed-out",
        f"{_G}Dynamic member with unknown member id joins the consumer group. Created a new "
        "member id {member_id} and requesting the member to rejoin with this id.",
        "4.3.1:2515",
    ),
    # -- members that go
    _T(
        "modern-away",
        f"{_G}Static member {{member_id}} with instance id {{instance}} temporarily left the consumer group.",
        "4.3.1:4187",
    ),
    _T(
        "modern-away",
        f"{_G}Static Member {{member_id}} with instance id {{instance}} temporarily left the consumer group.",
        "3.8.0:1968",
    ),
    _T("modern-left", f"{_GM}Member {{member_id}} left the streams group.", "4.3.1:4225"),
    _T("modern-left", f"{_G}Member {{member_id}} left the {{type}} group.", "4.3.1:4180"),
    _T(
        "modern-left",
        f"{_G}Static member {{member_id}} with instance id {{instance}} left the consumer group.",
        "4.3.1:4191",
    ),
    _T(
        "modern-left",
        f"{_G}Static Member {{member_id}} with instance id {{instance}} left the consumer group.",
        "3.8.0:1972",
    ),
    _T(
        "modern-fenced-late",
        f"{_G}Member {{member_id}} fenced from the group because it failed to transition from epoch "
        f"{{epoch}} "
        "within {ms}ms.",
        "3.8.0:2179, 4.3.1:4771",
    ),
    _T("modern-fenced", f"{_G}Member {{member_id}} fenced from the group because {{reason}}.", "4.3.1:4615"),
    _T(
        "modern-fenced",
        f"{_G}Streams member {{member_id}} fenced from the group because {{reason}}.",
        "4.3.1:4681",
    ),
    # -- epochs and assignments
    _T("epoch", f"{_G}Bumped group epoch to {{epoch}} with metadata hash {{hash}}.", "4.3.1:2792"),
    _T("epoch", f"{_G}Bumped group epoch to {{epoch}}.", "4.0.0:2103"),
    _T("epoch", f"{_GM}Bumped streams group epoch to {{epoch}} with metadata hash {{rest}}", "4.3.1:2102"),
    _T(
        "target",
        f"{_G}Computed a new target assignment for epoch {{epoch}} with '{{protocol}}' assignor in {{ms}}ms: "
        "{targets}.",
        "3.8.0:1920, 4.3.1:3910 DEBUG",
    ),
    _T(
        "target",
        f"{_G}Computed a new target assignment for epoch {{epoch}} with '{{protocol}}' assignor in {{ms}}ms.",
        "4.3.1:3913",
    ),
    _T(
        "member-assignment",
        f"{_G}Member {{member_id}} new assignment state: epoch={{epoch}}, previousEpoch={{previous_epoch}}, "
        "state={state}, assignedPartitions={partitions} and revokedPartitions={revoking}.",
        "3.8.0:1844, 4.3.1:3589 DEBUG",
    ),
    _T(
        "member-assignment",
        f"{_G}Member {{member_id}} new assignment state: epoch={{epoch}}, previousEpoch={{previous_epoch}}, "
        "state={state}, assignedPartitions={partitions}.",
        "4.3.1:3647",
    ),
    _T(
        "member-tasks",
        f"{_GM}Member's new assignment state: epoch={{epoch}}, previousEpoch={{previous_epoch}}, "
        "state={state}, assignedTasks={tasks} and tasksPendingRevocation={revoking}.",
        "4.3.1:3715",
    ),
    _T("modern-updated", f"{_G}Member {{member_id}} updated its {{rest}}", "4.3.1:3490"),
    _T("modern-updated", f"{_GM}Member updated its {{rest}}", "4.3.1:3150"),
    # -- the group's life
    _T("upgraded", f"{_G}Converted the classic group to a consumer group.", "4.3.1:1460"),
    _T("downgraded", f"{_G}Converted the consumer group to a classic group.", "4.3.1:1363"),
    _T("noted", f"{_G}Converted the empty {{rest}}", "4.3.1:854"),
    _T("modern-loaded", "Loaded {type} group {group} with {count} members.", "4.3.1:6122"),
    _T("loaded-id", "Loaded member {member_id} in {type} group {group}.", "4.3.1:6124 DEBUG"),
    _T("modern-unloaded", "[GroupId={group}] Unloaded group metadata for group epoch {epoch}.", "4.3.1:6198"),
    _T(
        "modern-refused",
        f"{_G}Static member {{member_id}} with instance id {{instance}} cannot join the group {{rest}}",
        "3.8.0 to 4.4.0",
    ),
    *(
        _T("noted", text, "3.8.0 to 4.3.1")
        for text in (
            f"{_G}Computed new subscription metadata: {{rest}}",
            f"{_G}Computed new metadata hash: {{rest}}",
            f"{_G}Received updated regular expressions {{rest}}",
            f"{_G}Could not fence {{rest}}",
            f"{_G}Ignoring rebalance timeout for {{rest}}",
            f"{_G}Skipping delayed target assignment: {{rest}}",
            f"{_G}Static member {{member_id}} with instance id {{instance}} is fenced by existing member "
            f"{{rest}}",
            f"{_GM}Computed new metadata hash: {{rest}}",
            f"{_GM}Configuring the topology {{rest}}",
            f"{_GM}Valid topic configuration found in {{rest}}",
            f"{_GM}Assignment configurations changed {{rest}}",
            f"{_GM}Member initialized the topology {{rest}}",
            f"{_GM}Member joined with {{rest}}",
            "Cannot downgrade consumer group {rest}",
            "Cannot downgrade the consumer group {rest}",
            "Cannot upgrade classic group {rest}",
            "Cannot upgrade the classic group {rest}",
            "Cannot join the consumer group {rest}",
        )
    ),
)
