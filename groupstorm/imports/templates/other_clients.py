"""Lines that clients log without a prefix: aiokafka, kafka-python 1 to 3, franz-go's BasicLogger, kafkajs,
Spring's containers, sarama, segmentio/kafka-go, brod.

``where``: aiokafka's group_coordinator.py (ai), kafka-python's coordinator/base.py (kp) and
coordinator/consumer.py (kpc), franz-go's consumer_group.go (fg), with the line.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from groupstorm.imports.template import Template

_T = Template
_AIOKAFKA: Final = partial(Template, program="aiokafka")
_KAFKA_PYTHON: Final = partial(Template, program="kafka-python")
_FRANZ_GO: Final = partial(Template, program="franz-go")
_KAFKAJS: Final = partial(Template, program="kafkajs")
_SARAMA: Final = partial(Template, program="sarama")
_KAFKA_GO: Final = partial(Template, program="segmentio/kafka-go")
_BROD: Final = partial(Template, program="brod")

TEMPLATES: Final = (
    # -- aiokafka and kafka-python
    _T("subscribed", "Updating subscribed topics to: {topics}", "subscription_state.py of both"),
    _T("joining", "(Re-)joining group {group}", "ai:1265, kp:752"),
    _AIOKAFKA(
        "joined", "Joined group '{group}' (generation {generation}) with member_id {member_id}", "ai:1317"
    ),
    _KAFKA_PYTHON(
        "joined", "Successfully joined group {group} with generation {generation}", "kafka-python 1.4"
    ),
    _KAFKA_PYTHON(
        "joined",
        "Successfully joined group {group} <Generation {generation} (member_id: {member_id}, protocol: "
        "{protocol})>",
        "kp:605",
    ),
    _AIOKAFKA("synced", "Successfully synced group {group} with generation {generation}", "ai:1457"),
    _KAFKA_PYTHON(
        "learned", "Received member id {member_id} for group {group}; will retry join-group", "kp:642"
    ),
    _T("noted", "Elected group leader -- performing partition assignments using {protocol}", "kp:781"),
    _T("assigned", "Setting newly assigned partitions {partitions} for group {group}", "ai:497, kpc:370"),
    _KAFKA_PYTHON(
        "revoked-on-close",
        "Revoking previously assigned partitions {partitions} for group {group} on close",
        "kpc:723",
    ),
    _T(
        "revoked", "Revoking previously assigned partitions {partitions} for group {group}", "ai:411, kpc:548"
    ),
    _KAFKA_PYTHON("lost", "Group {group} lost membership; forcibly revoking {partitions}", "kpc:495"),
    _KAFKA_PYTHON(
        "cooperative-round",
        "Cooperative rebalance complete for group {group}: owned={owned_before}, assigned={partitions}, "
        "revoked={revoking}, added={adding}",
        "kpc:309",
    ),
    _KAFKA_PYTHON(
        "revoked",
        "Cooperative pre-rebalance for group {group}: revoking {partitions} (no longer in subscription)",
        "kpc:569",
    ),
    _KAFKA_PYTHON("rejoin", "Triggering follow-up rebalance for group {group} to {reason}", "kpc:342"),
    _T("rejoin", "Heartbeat failed for group {group} because it {reason}", "ai:830"),
    _T("rejoin", "Heartbeat failed for group {group}: {reason}", "ai:822, kp:1145"),
    _KAFKA_PYTHON("rejoin", "Group {group} {reason}; rejoining.", "kp:1150"),
    _T("rejoin-unnamed", "Heartbeat failed: {reason}; resetting and re-joining group", "ai:848"),
    _T("rejoin-unnamed", "Heartbeat: {reason}; this consumer needs to re-join", "kp:1161"),
    _T(
        "commit-refused-rejoins",
        "OffsetCommit failed for group {group} due to group error ({said}), will rejoin",
        "ai:1108",
    ),
    _T("commit-refused", "OffsetCommit failed for group {group} {said}", "ai:1057"),
    _T("commit-refused", "Auto offset commit failed: {said}", "ai:957"),
    _T("heartbeat-refused", "Heartbeat failed: {said}", "ai:859"),
    _T("coordinator-lost", "Group Coordinator Request failed: {said}", "ai:566"),
    _KAFKA_PYTHON(
        "session-expired",
        "Marking the coordinator dead (node {node}) for group {group}: Heartbeat session expired.",
        "kp:879",
    ),
    _KAFKA_PYTHON(
        "coordinator-lost", "Marking the coordinator dead (node {node}) for group {group}: {said}.", "kp:879"
    ),
    _AIOKAFKA("coordinator-lost", "Marking the coordinator dead (node {said})for group {group}.", "ai:522"),
    _AIOKAFKA("session-expired", "Heartbeat session expired - marking coordinator dead", "ai:786"),
    _T("noted", "Heartbeat session expired{rest}", "kp:990"),
    _KAFKA_PYTHON("leaving", "Leaving consumer group {group} (member {member_id}).", "kp:1071"),
    _T("leave-answered", "LeaveGroup request succeeded", "ai:386"),
    _T("noted", "LeaveGroup request {rest}", "ai:384, kp:1092"),
    _KAFKA_PYTHON(
        "poll-timeout",
        "Consumer poll timeout has expired. This means the time between subsequent calls to poll() was "
        "longer than the configured max_poll_interval_ms{rest}",
        "kp:991",
    ),
    _T("noted", "Discovered coordinator {node} for group {group}", "ai:585, kp:857"),
    _T("noted", "SyncGroup for group {group} failed {rest}", "kp:698"),
    _T("noted", "Attempt to join group {rest}", "kp:609"),
    # -- franz-go
    _FRANZ_GO("joining", "joining group; group: {group}", "fg:1448"),
    _FRANZ_GO(
        "joined",
        "joined, balancing group; group: {group}, member_id: {member_id}, instance_id: {instance}, "
        "generation: {generation}, balance_protocol: {protocol}, leader: true",
        "fg:1644",
    ),
    _FRANZ_GO(
        "joined",
        "joined; group: {group}, member_id: {member_id}, instance_id: {instance}, generation: {generation}, "
        "leader: {rest}",
        "fg:1664",
    ),
    _FRANZ_GO("fg-synced", "synced; group: {group}, assigned:{owned_now}", "fg:1812"),
    _FRANZ_GO(
        "fg-session", "new group session begun; group: {group}, added: {added}, lost:{lost_now}", "fg:1076"
    ),
    _FRANZ_GO("rejoin", "heartbeat errored; group: {group}, err: {reason}", "fg:1328"),
    _FRANZ_GO(
        "rejoin",
        "heartbeat errored again while waiting for user revoke to finish; group: {group}, err: {reason}",
        "fg:1331",
    ),
    _FRANZ_GO("leaving", "leaving group; group: {group}, member_id: {member_id}", "fg:640"),
    # -- Python's wrapper of librdkafka
    _T("rd-error", 'KafkaError{code={code},val={val},str="{said}"}{rest}', "confluent-kafka-python"),
    _T("rd-error", 'KafkaError{FATAL,code={code},val={val},str="{said}"}{rest}', "confluent-kafka-python"),
    # -- Confluent's client for .NET, which wraps librdkafka
    _T("rd-error", "Confluent.Kafka.KafkaException: {said}", "confluent-kafka-dotnet"),
    # -- kafkajs: a framework's logger puts the record of a line behind its message, or into lines of its own
    *(
        _KAFKAJS(f"kafkajs-{what}", f"{text}{{record}}", "kafkajs consumerGroup.js, runner.js", lines=True)
        for what, text in (
            ("joined", "[ConsumerGroup] Consumer has joined the group"),
            ("rejoin", "[Runner] The group is rebalancing, re-joining"),
            ("rejoin", "[Consumer] The group is rebalancing, re-joining"),
            ("answer", "[Connection] Response {api}(key: {key}, version: {version})"),
            ("crash", "[Consumer] Crash: "),
            ("out", "[Runner] The coordinator is not aware of this member, re-joining the group"),
        )
    ),
    _KAFKAJS("noted", "[ConsumerGroup] Pausing {rest}", "kafkajs consumerGroup.js"),
    _KAFKAJS("noted", "[Consumer] Stopped{rest}", "kafkajs consumer/index.js"),
    _KAFKAJS("noted", "[Consumer] Starting{rest}", "kafkajs consumer/index.js"),
    # -- Spring: the container's words behind its group, if the consumer's own are not logged
    *(
        Template(
            f"spring-{what}",
            f": partitions {what}: {{partitions}}",
            "AbstractMessageListenerContainer:689",
            program="Spring Kafka",
        )
        for what in ("assigned", "revoked", "lost")
    ),
    *(
        Template("noted", f"{text}{{rest}}", "KafkaMessageListenerContainer", program="Spring Kafka")
        for text in (
            "Non-fatal commit failure",
            "Container exception",
            "Consumer exception",
            "Fatal consumer exception; stopping container",
            "Error handler threw an exception",
            "Stopping container due to fencing",
        )
    ),
    # -- sarama
    *(
        _SARAMA(kind, text, "sarama consumer_group.go, errors.go, client.go")
        for kind, text in (
            ("sarama-fenced", "JoinGroup failed: group instance id {instance} has been fenced"),
            ("sarama-lost", "consumergroup/{group}: lost ownership of {claims} due to {said}"),
            ("sarama-refused", "kafka server: {said}"),
            ("sarama-session", "consumergroup/session/{member_id}/{generation} released"),
            (
                "partitions-changed",
                "consumergroup/{group} loop check partition number goroutine find partitions in {rest}",
            ),
            ("noted", "client/coordinator coordinator for consumergroup {group} is {rest}"),
            # sarama-cluster, whose readme prints its notifications
            (
                "cluster-rebalance",
                "&{Type:rebalance {step} Claimed:map[{rest}] Released:map[{gone}] Current:map[{by_topic}]}",
            ),
            ("given-now", "&{Claimed:map[{rest}] Released:map[{gone}] Current:map[{by_topic}]}"),
            ("noted", "consumergroup/{rest}"),
            ("noted", "client/coordinator {rest}"),
            ("noted", "consumer/broker/{rest}"),
        )
    ),
    # -- segmentio/kafka-go
    *(
        _KAFKA_GO(kind, text, "kafka-go consumergroup.go, reader.go")
        for kind, text in (
            ("joined", "joined group {group} as member {member_id} in generation {generation}"),
            ("noted", "Joined group {group} as member {member_id} in generation {generation}"),
            (
                "joined",
                "joinGroup succeeded for response, {group}.  generationID={generation}, memberID={member_id}",
            ),
            ("join-refused", "Failed to join group {group}: {said}"),
            ("join-refused", "failed to join group {group}: {said}"),
            ("sync-refused", "Failed to sync group {group}: {said}"),
            ("fetch-refused", "Failed to fetch offsets for group {group}: {said}"),
            ("partitions-changed", "Partition changes found, reblancing group: {group}."),
            ("given-now", "subscribed to topics and partitions: map[{go_map}]"),
            (
                "join-refused",
                "Unable to establish connection to consumer group coordinator for group {group}: {said}",
            ),
            ("leaving", "Leaving group {group}, member {member_id}"),
            ("noted", "leave group failed for group, {rest}"),
            ("noted", "entering loop for consumer group, {rest}"),
            ("noted", "started heartbeat for group, {rest}"),
            ("noted", "stopped heartbeat for group {rest}"),
            ("noted", "started commit for group {rest}"),
            ("noted", "stopped commit for group {rest}"),
            ("noted", "sync group finished for group, {rest}"),
            ("noted", "received empty assignments for group, {rest}"),
            ("noted", "selected as leader for group, {rest}"),
            ("noted", "using '{balancer}' balancer to assign group, {rest}"),
            ("noted", "the kafka reader {rest}"),
        )
    ),
    # the error of a heartbeat, a commit or a join, alone in its line
    *(
        _KAFKA_GO("sarama-refused", f"[{number}] {{said}}", "kafka-go reader.go:241, error.go:125")
        for number in (14, 15, 16, 22, 25, 27)
    ),
    # -- brod: its message is the line after the first one, or stands behind it
    *(
        _BROD("brod", f"{member}:{text}", "brod_group_coordinator.erl", lines=True)
        for member in (
            "Group member ({group},coor={client},cb={callback},generation={generation})",
            "group coordinator (groupId={group},memberId={member_id},generation={generation},pid={client})",
        )
        for text in (
            "{between}re-joining group, reason:{reason}",
            "{between}assignments received:{erlang_list}",
            "{rest}",
        )
    ),
)
