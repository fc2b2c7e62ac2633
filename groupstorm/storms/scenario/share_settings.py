"""The names of the settings of share groups (`group.protocol: share`, KIP-932)."""

from __future__ import annotations

from typing import Final

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
