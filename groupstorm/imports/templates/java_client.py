"""What Kafka's Java consumer logs about its group: the classic protocol and KIP-848, Kafka 2.3 to 4.3.

``where``: the release and the line of `AbstractCoordinator` (AC), `ConsumerCoordinator` (CC),
`ConsumerRebalanceListenerInvoker` (LI), `AbstractMembershipManager` (MM), `StreamsMembershipManager` (SM), or
the class. Connect's workers log the same in `WorkerCoordinator` and `DistributedHerder`.
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.template import Template
from groupstorm.imports.templates import connect

_T = Template

TEMPLATES: Final = (
    # -- joining
    _T("joining", "(Re-)joining group", "2.3.1 AC:505 to 4.3.1 AC:611"),
    _T("joined", "Successfully joined group with generation {described_generation}", "4.3.1 AC:672"),
    _T("synced", "Successfully synced group in generation {described_generation}", "4.3.1 AC:849"),
    _T("finished", "Finished assignment for group at generation {generation}: {assignments}", "2.8.2 CC:652"),
    _T("rejoin", "Request joining group due to: {reason}", "3.4.1 AC:1062, 4.3.1 AC:1109"),
    _T("rejoin", "Attempt to heartbeat failed since {reason}", "2.3.1 AC:931 to 4.3.1 AC:1255"),
    _T("rejoin", "Attempt to heartbeat failed for since {reason}", "2.3.1 AC:947"),
    _T(
        "rejected",
        "Attempt to heartbeat with {described_generation} and group instance id {instance} failed due to "
        "{error}, resetting generation",
        "2.8.2 AC:1139, 4.3.1 AC:1275",
    ),
    _T("rejoin", "Requesting to re-join the group and trigger rebalance since {reason}", "2.8.2 CC:798"),
    _T("rejoin", "JoinGroup failed: {reason}", "2.8.2 AC:607"),
    _T("rejoin", "JoinGroup failed due to {reason}", "2.8.2 AC:638"),
    _T("rejoin", "Join group failed with {reason}", "2.4 AC"),
    _T("rejoin", "Attempt to join group failed due to {reason}", "2.3.1 AC"),
    _T("rejoin", "SyncGroup failed: {reason}", "2.8.2 AC:785"),
    _T("rejoin", "SyncGroup failed due to {reason}", "2.3.1 AC"),
    _T("rejoin", "Rebalance failed.{reason}", "2.8.2 AC:470"),
    _T("reset", "Resetting generation and member id due to: {reason}", "3.4.1 AC:1015"),
    _T("reset", "Resetting generation due to: {reason}", "3.4.1 AC:1015"),
    _T("failed-for-good", "Received fatal exception: group.instance.id gets fenced", "2.3.1 AC:566"),
    _T("failed-for-good", "Caught fenced group.instance.id {rest}", "2.3.1 AC:1151"),
    _T("heartbeat-refused", "ConsumerGroupHeartbeatRequest failed because {said}", "4.3.1"),
    _T("heartbeat-refused", "ConsumerGroupHeartbeatRequest failed due to {said}", "4.4.0"),
    _T(
        "coordinator-lost",
        "Group coordinator {coordinator} is unavailable or invalid{said}",
        "2.3.1 AC:714, 4.3.1 AC:1006",
    ),
    _T("coordinator-lost", "Marking the coordinator {said} dead", "0.9 to 1.0 AC"),
    _T("noted", "Group coordinator {rest}", "2.3.1 AC"),
    # -- offsets
    _T(
        "commit-refused",
        "Offset commit failed on partition {partition} at offset {offset}: {said}",
        "2.3.1 CC:931, 4.3.1 CC:1373",
    ),
    _T("commit-refused", "OffsetCommit failed with {described_generation}: {said}", "4.3.1 CC:1435"),
    _T("commit-refused", "OffsetCommit failed {said}", "4.3.1 CC:1400"),
    _T("commit-refused", "Offset commit with offsets {offsets} failed{said}", "4.3.1 CC:1258"),
    _T("commit-refused", "Asynchronous auto-commit of offsets {offsets} failed: {said}", "2.3.1 CC:750"),
    _T("commit-refused", "Asynchronous auto-commit of offsets failed: {said}", "4.x CommitRequestManager"),
    _T("commit-refused", "Synchronous auto-commit of offsets {offsets} failed: {said}", "2.3.1 CC:722"),
    _T("commit-refused", "Auto-commit of offsets {offsets} failed{said}", "1.x CC"),
    _T("commit-refused", "Failing OffsetCommit request since the consumer is {said}", "4.3.1 CC:1313"),
    _T("offset-missing", "Found no committed offset for partition {named}", "2.3.1 CC:989"),
    _T(
        "offset-reset",
        "Resetting offset for partition {named} to position FetchPosition{offset={position}, {rest}",
        "2.8.2, 4.3.1 SubscriptionState",
    ),
    _T("offset-reset", "Resetting offset for partition {named} to offset {position}{dot}", "2.3.1 Fetcher"),
    _T(
        "offset-out-of-range",
        "Fetch position FetchPosition{offset={position}, {rest} is out of range for partition {named}, "
        "resetting offset",
        "2.8.2, 4.3.1",
    ),
    _T(
        "offset-out-of-range",
        "Fetch offset {position} is out of range for partition {named}, resetting offset",
        "2.3.1 Fetcher",
    ),
    # -- what it owns
    _T("given", "Notifying assignor about the new Assignment(partitions={partitions})", "2.8.2 CC:279"),
    _T(
        "given",
        "Notifying assignor about the new Assignment(partitions={partitions}, userData{rest}",
        "2.8.2 CC:279",
    ),
    _T("assignment-update", "Updating assignment with{rest}", "2.8.2 CC:396, 4.3.1 CC:428", lines=True),
    _T("assigned", "Adding newly assigned partitions: {partitions}", "2.8.2 CC:291, 4.3.1 LI:57"),
    _T("assigned", "Adding newly assigned partitions:", "2.8.2 CC:291, of none"),
    _T("assigned", "Setting newly assigned partitions: {partitions}", "2.3.1 CC:283"),
    _T("assigned", "Setting newly assigned partitions {partitions}", "1.x CC"),
    _T("revoked", "Revoke previously assigned partitions {partitions}", "2.8.2 CC:310, 4.3.1 LI:83"),
    _T("revoked", "Revoking previously assigned partitions {partitions}", "2.3.1 CC:476, 4.3.1 MM:1131"),
    _T("lost", "Lost previously assigned partitions {partitions}", "2.8.2 CC:329, 4.3.1 LI:113"),
    _T("subscribed", "Subscribed to topic(s): {topics}", "KafkaConsumer"),
    _T("subscribed", "Subscribed to topics: {topics}", "ShareConsumerImpl"),
    # -- leaving
    _T(
        "leaving",
        "Member {member_id} sending LeaveGroup request to coordinator {coordinator} due to {reason}",
        "2.8.2 AC:1045, 4.3.1 AC:1174",
    ),
    _T("leaving", "Member {member_id} sending LeaveGroup request to coordinator {coordinator}", "2.3.1 AC"),
    _T("poll-timeout", "consumer poll timeout has expired.{rest}", "3.4.1 AC:1471"),
    _T("poll-timeout", "Consumer poll timeout has expired.{rest}", "4.3.1 AbstractHeartbeatRequestManager"),
    _T("poll-timeout", "This member will leave the group because consumer poll timeout{rest}", "2.3.1 AC"),
    # -- KIP-848
    _T(
        "transition",
        "Member {member_id} with epoch {epoch} transitioned from {previous_state} to {state}.",
        "4.3.1 MM:246, SM:569",
    ),
    _T("reconciling", "Reconciling assignment with local epoch {epoch}{rest}", "4.3.1 MM:867", lines=True),
    _T("tasks", "Assigned tasks with local epoch {epoch} and group {rest}", "4.3.1 SM:1088", lines=True),
    *connect.TEMPLATES,
    # -- understood, and no row follows
    *(
        _T("noted", text, "KafkaConsumer and its parts")
        for text in (
            "Discovered group coordinator {rest}",
            "Requesting disconnect from last known coordinator {rest}",
            "Consumer has been disconnected from the group coordinator {rest}",
            "Requested disconnect {rest}",
            "Cluster ID: {rest}",
            "Setting offset for partition {rest}",
            "Resetting the last seen epoch {rest}",
            "Seeking to {rest}",
            "Node {rest}",
            "Error while fetching metadata {rest}",
            "Generation data was cleared by heartbeat thread {rest}",
            "Giving away all assigned partitions as lost {rest}",
            "Need to revoke partitions {rest}",
            "Skipped assignment for returning static leader {rest}",
            "Attempt to heartbeat with stale {rest}",
            "The following subscribed topics are not assigned {rest}",
            "The following not-subscribed topics {rest}",
            "The following partitions still have unstable offsets {rest}",
            "The pause flag in partitions {rest}",
            "Unsubscribed all topics or patterns and assigned partitions",
            "Interrupting reconciliation {rest}",
            "Member {member_id} is triggering callbacks {rest}",
            "Member {member_id} completed callback {rest}",
            "LeaveGroup request with {rest}",
            "FindCoordinator request {rest}",
            "Close timed out {rest}",
            "User provided listener {rest}",
            "still waiting to ensure active group",
            "Completed leaving the group",
            "Member {member_id} won't include epoch in following offset commit/fetch requests {rest}",
            "Time between subsequent calls to poll() was longer than {rest}",
            "Member {member_id} received heartbeat interval {rest}",
            "Member {member_id} with epoch {epoch} transitioned to fatal state",
            "Reconciliation failed.",
            "Client requested disconnect {rest}",
            "Cancelled in-flight {rest}",
            "Subscribed to pattern: {rest}",
            "Subscribed to partition(s): {rest}",
            "Received Streams group configuration {rest}",
            "StreamsGroupHeartbeatRequest failed {rest}",
            "Membership is in the following statuses: {rest}",
            "Assigning active tasks {rest}",
            "Revoking previously assigned active tasks {rest}",
            "Revoking previously assigned and now lost active tasks {rest}",
            "Invoking task revoked callback {rest}",
            "Invoking tasks assigned callback {rest}",
            "Invoking tasks lost callback {rest}",
            "Requesting the log end offset {rest}",
            "Not requesting the log end offset {rest}",
            "The metadata response from the cluster reported a recoverable issue {rest}",
        )
    ),
)
