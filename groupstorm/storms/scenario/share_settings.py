"""The settings of share groups (`group.protocol: share`, KIP-932): rows of the table in `settings`."""

from __future__ import annotations

from typing import Final

from groupstorm.storms.scenario.setting_types import Setting

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


def _row(name: str, default: int, meaning: str, least: int, most: int = 2**31 - 1) -> Setting:
    return Setting(name, "integer", default, meaning, least, most, in_files=False)


SHARE_SETTINGS: tuple[Setting, ...] = (
    _row(SHARE_SESSION_TIMEOUT, 45_000, "silence after which a member of a share group is fenced", 1),
    _row(
        SHARE_HEARTBEAT,
        5_000,
        "between two heartbeats of a member of a share group: the broker tells the members",
        1,
    ),
    _row(
        "group.share.assignment.interval.ms",
        1_000,
        "least time between two computations of a share group's targets",
        0,
    ),
    _row("group.share.max.size", 200, "members that a share group may have", 1, LARGEST_GROUP),
    _row(
        LOCK_DURATION,
        30_000,
        "how long a record is locked for the consumer that it was delivered to",
        1_000,
        3_600_000,
    ),
    _row(DELIVERY_LIMIT, 5, "deliveries of a record; after the last one it is archived", 2, 10),
    _row(
        RECORD_LOCKS,
        2_000,
        "records of a partition that a share group may have in flight, from the first that is not done on",
        100,
        10_000,
    ),
    Setting(
        SHARE_OFFSET_RESET,
        "choice",
        "latest",
        "where a share group begins a partition: latest (the end of the log) or earliest (its beginning)",
        allowed=("latest", "earliest"),
        in_files=False,
    ),
    Setting(
        ACQUIRE_MODE,
        "choice",
        "batch_optimized",
        "what max.poll.records means to a share consumer: batch_optimized (whole record batches) "
        "or record_limit (not one record more)",
        allowed=("batch_optimized", RECORD_LIMIT),
        in_files=False,
    ),
    Setting(
        ACKNOWLEDGEMENT,
        "choice",
        IMPLICIT,
        "when share consumers acknowledge: implicit (the next poll() accepts all records of the last one) or "
        "explicit (each record as it is done, sent with the next poll() or close())",
        allowed=(IMPLICIT, EXPLICIT),
        in_files=False,
    ),
    _row(FETCH_WAIT, 500, "how long a broker keeps a fetch of a share consumer that finds nothing", 1),
    Setting(
        DEAD_LETTERS,
        "topic name",
        "",
        "topic for records of a share group that are rejected or were delivered too often; empty: they are "
        "dropped",
        in_files=False,
    ),
    _row(
        RECORDS_PER_BATCH,
        1,
        "records of a record batch, as producers send them, which share consumers acquire as a whole",
        1,
        10_000,
    ),
)
