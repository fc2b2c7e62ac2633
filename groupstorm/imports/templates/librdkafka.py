"""What librdkafka logs about its group with `debug=cgrp` (commit 4c3b017c), behind `[thrd:...]: `.

``where``: rdkafka_cgrp.c (C), rdkafka_assignor.c (A), with the line. Without `debug` only MAXPOLL and
SESSTMOUT are logged.
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.template import Template

_T = Template
_G: Final = 'Group "{group}"'

TEMPLATES: Final = (
    _T(
        "rd-joined",
        "JoinGroup response: GenerationId {generation}, Protocol {protocol}, LeaderId {leader}, my MemberId "
        "{member_id}, member metadata count {count}: {error}",
        "C:2342",
    ),
    _T("rd-started", f'{_G}: updating member id "(not-set)" -> "{{member_id}}"', "C:7573"),
    _T("rd-member-id", f'{_G}: updating member id "{{old}}" -> "{{member_id}}"', "C:7573"),
    _T("rd-joining", f"{_G}: join with {{count}} subscribed topic(s)", "C:2709"),
    _T(
        "rd-joining",
        '{broker}: Joining group "{group}" with {count} subscribed topic(s){rest}',
        "rdkafka_request.c",
    ),
    _T("rd-synced", "SyncGroup response: {error} ({count} bytes of MemberState data)", "C:2051"),
    _T(
        "rd-rejoin",
        f"{_G} is rebalancing ({{protocol}}) in state {{state}} (join-state {{join}}) with {{count}} "
        "assigned partition(s){lost}: {reason}",
        "C:5580",
    ),
    _T(
        "rd-rejoin",
        f"{_G} initiating rebalance ({{protocol}}) in state {{state}} (join-state {{join}}) with {{count}} "
        "assigned partition(s){lost}: {reason}",
        "C:5580",
    ),
    _T(
        "heartbeat-refused",
        f"{_G} heartbeat error response in state {{state}} (join-state {{join}}, {{count}} partition(s) "
        "assigned): {said}",
        "C:3846",
    ),
    _T(
        "rd-rejoin",
        f"{_G} is rebalancing in state {{state}} (join-state {{join}}) {{assigned}} assignment: {{reason}}",
        "1.x",
    ),
    _T(
        "heartbeat-refused",
        f"{_G} heartbeat error response in state {{state}} (join state {{join}}, {{count}} partition(s) "
        "assigned): {said}",
        "1.x",
    ),
    _T("heartbeat-late", "{broker}: Timed out HeartbeatRequest in flight (after {said}", "rdkafka_broker.c"),
    _T("join-late", "{broker}: Timed out JoinGroupRequest in flight (after {said}", "rdkafka_broker.c"),
    _T(
        "heartbeat-refused",
        "Heartbeat failed due to coordinator ({node}) no longer available: {said}",
        "C:3873",
    ),
    _T("heartbeat-refused", "ConsumerGroupHeartbeat failed due to coordinator ({node}) {said}", "C:3341"),
    _T("heartbeat-refused", "ConsumerGroupHeartbeat failed due to: {said}: will rejoin the group", "C:3371"),
    _T("heartbeat-refused", "ConsumerGroupHeartbeat failed: {said}", "C:3453"),
    _T(
        "commit-refused",
        "Offset commit ({why}) failed for {failed}/{count} partition(s) in join-state {join}: {said}",
        "C:4405",
    ),
    _T(
        "commit-refused",
        "Offset commit ({why}) failed for {failed}/{count} partition(s): Broker: {said}: {rest}",
        "1.x",
    ),
    _T("rd-fatal", "Fatal error: {said}", "rdkafka.c rd_kafka_set_fatal_error"),
    _T("noted", f"{_G} changed join state {{rest}}", "C:421"),
    _T("noted", f"{_G} changed state {{rest}}", "C:359"),
    _T("noted", f"{_G}: Rejoining group {{rest}}", "C:1551"),
    _T("noted", f"{_G}: Joining group {{rest}}", "C:1551"),
    _T("noted", f"{_G} (re)joining in join-state {{rest}}", "C:2805"),
    _T("rd-owned", f"{_G}: add {{topic}} [{{partition}}]", "C:4115"),
    _T("rd-released", f"{_G}: delete {{topic}} [{{partition}}]", "C:4152"),
    _T("rd-plan", f"{_G} {{protocol}} assignment for {{count}} member(s) finished in {{took}}ms:", "A:398"),
    _T("rd-plan-member", ' Member "{member_id}" (me) assigned {count} partition(s):', "A:407"),
    _T("rd-plan-member", ' Member "{member_id}" assigned {count} partition(s):', "A:407"),
    _T("rd-running", f"{_G} running {{protocol}} assignor for {{rest}}", "A:348"),
    _T("noted", ' Member "{member_id}" with {owned} owned partition(s) {rest}', "A:359"),
    _T("noted", ' Member "{member_id}" (me) with {owned} owned partition(s) {rest}', "A:359"),
    _T("rd-plan-partition", "  {topic} [{partition}]", "A:420"),
    _T("poll-timeout", "Application maximum poll interval ({ms}ms) exceeded by {rest}", "C:5703"),
    _T("poll-timeout", "Application maximum poll interval ({rest}", "C:5703"),
    _T("rd-session", "{rest}: revoking assignment and rejoining group", "C:6678"),
    _T("rd-left", f"{_G}: leave (in state {{state}})", "C:1231"),
    _T("rd-started", "librdkafka {release} {handle} initialized ({rest}", "rdkafka.c"),
    _T("rd-topic", " Topic {topic} with {count} partition(s)", "C:4985"),
    # -- KIP-848
    _T(
        "rd-epoch",
        'ConsumerGroupHeartbeat response received for member id "{member_id}" with epoch {epoch}',
        "rdkafka_cgrp.c",
    ),
    _T("rd-subscription", 'Sending new subscription "{topic_partitions}"', "rdkafka_request.c"),
    # -- understood, and no row follows
    *(
        _T("noted", f"{_G}{text}", "rdkafka_cgrp.c, rdkafka_assignor.c")
        for text in (
            " received op {rest}",
            " changing coordinator {rest}",
            " coordinator {rest}",
            " broker {rest}",
            ": no broker available for {rest}",
            ": subscribe to new subscription {rest}",
            ": unsubscribe from current subscription {rest}",
            ": clearing {rest}",
            ": effective subscription list changed {rest}",
            ": subscription updated from metadata change{rest}",
            ": postponing join {rest}",
            ": resetting group leader info: {rest}",
            ": Not rejoining {rest}",
            ": setting group assignment {rest}",
            ": new assignment of {rest}",
            ": incremental {rest}",
            ": delegating {rest}",
            ": revoking all {rest}",
            ": current assignment {rest}",
            ": unassign done {rest}",
            ": assignment operations done {rest}",
            ": {count} partition(s) being {rest}",
            ': "{protocol}" assignor run for {rest}',
            ": Partitions owned by members: {rest}",
            ": COOPERATIVE protocol collection sizes: {rest}",
            ": {count} partitions assigned to consumers",
            ": waiting for {rest}",
            ": Consumer is terminating{rest}",
        )
    ),
)
