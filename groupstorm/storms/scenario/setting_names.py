"""The names of settings that the code asks for, and the values of those that have few.

The protocols of groups have theirs in `group_protocol_settings`.
"""

from __future__ import annotations

from typing import Final

#: Values of `application`.
CONSUMER, STREAMS = "consumer", "streams"
STANDBYS: Final = "num.standby.replicas"
#: Kafka Streams has no public property for it.
LEAVE: Final = "leave_on_close"
OUTLASTS: Final = "state_outlasts_process"

# who replaces processes, and how many run: a HorizontalPodAutoscaler on the group's lag, or KEDA

#: Values of `deployment`.
PROCESSES, DEPLOYMENT, STATEFUL_SET = "processes", "deployment", "statefulset"
#: Values of `ready_when`.
POLLS, ASSIGNED, RUNS = "polls", "assigned", "runs"
#: Values of `autoscaler`.
NO_AUTOSCALER, HPA, KEDA = "none", "hpa", "keda"

# who commits the positions of a member, when, and where an owner begins without a commit

COMMITS: Final = "commits"
COMMIT_INTERVAL: Final = "commit_interval_ms"

#: The values of `commits`.
BACKGROUND: Final = "background"
BATCH: Final = "batch"
RECORD: Final = "record"
INTERVAL: Final = "interval"
NEVER: Final = "never"

OFFSET_RESET: Final = "auto.offset.reset"
EARLIEST: Final = "earliest"
NONE: Final = "none"

# share groups (group.protocol: share, KIP-932)

SHARE_SESSION_TIMEOUT: Final = "group.share.session.timeout.ms"
SHARE_HEARTBEAT: Final = "group.share.heartbeat.interval.ms"
LOCK_DURATION: Final = "group.share.record.lock.duration.ms"
DELIVERY_LIMIT: Final = "group.share.delivery.count.limit"
RECORD_LOCKS: Final = "group.share.partition.max.record.locks"
SHARE_OFFSET_RESET: Final = "share.auto.offset.reset"
ACQUIRE_MODE: Final = "share.acquire.mode"
RECORD_LIMIT: Final = "record_limit"
ACKNOWLEDGEMENT: Final = "share.acknowledgement.mode"
IMPLICIT, EXPLICIT = "implicit", "explicit"
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
RECORDS_PER_BATCH: Final = "records_per_batch"
FETCH_WAIT: Final = "fetch.max.wait.ms"
#: group.share.max.size of a broker is this at most.
LARGEST_GROUP: Final = 1_000
