"""ShareFetch and ShareAcknowledge: our plain values <-> kio's dataclasses."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from groupstorm.clients.share.records import Acquired, SharePartition
from groupstorm.clients.share.sessions import ShareAnswer, ShareRequest
from groupstorm.clients.wire.connection import Build, ClientApi, fields
from groupstorm.coordinator.errors import Error

SHARE_FETCH = ClientApi(78, "ShareFetch", 1, 2)
SHARE_ACKNOWLEDGE = ClientApi(79, "ShareAcknowledge", 1, 2)
#: The first version that renews, and that has acquire modes.
_SINCE_RENEWAL = 2

_MILLISECOND = datetime.timedelta(milliseconds=1)


class ShareFetchOptions(NamedTuple):
    """Kafka's options of a ShareFetch. ``strict``: share.acquire.mode is record_limit."""

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    max_records: int
    strict: bool


class FetchedPartition(NamedTuple):
    """One partition of a ShareFetch's answer."""

    partition: SharePartition
    error: Error
    acquired: tuple[Acquired, ...]
    data: bytes


def api_of(request: ShareRequest, strict: bool) -> ClientApi:
    """The versions of the request that can say all of it."""
    api = SHARE_FETCH if request.fetches else SHARE_ACKNOWLEDGE
    needs = request.renews or (request.fetches and strict)
    return api._replace(lowest=_SINCE_RENEWAL) if needs else api


def share_request(request: ShareRequest, group: str, member_id: str, options: ShareFetchOptions) -> Build:
    """A ShareFetch, or a ShareAcknowledge, which has fewer fields and adds and forgets no partitions."""
    ranges = {**dict.fromkeys(request.added, ()), **request.acknowledged}
    partitions: dict[UUID, list[dict[str, Any]]] = {}
    for partition, batches in ranges.items():
        acknowledged = [
            {"first_offset": one.first, "last_offset": one.last, "acknowledge_types": (one.type,)}
            for one in batches
        ]
        asked = {"partition_index": partition.partition, "acknowledgement_batches": acknowledged}
        partitions.setdefault(partition.topic_id, []).append(asked)
    forgotten: dict[UUID, tuple[int, ...]] = {}
    for topic_id, number in request.forgotten:
        forgotten[topic_id] = (*forgotten.get(topic_id, ()), number)
    return fields(
        group_id=group,
        member_id=member_id,
        share_session_epoch=request.epoch,
        is_renew_ack=request.renews,
        max_wait=options.max_wait_ms * _MILLISECOND,
        min_bytes=options.min_bytes,
        max_bytes=options.max_bytes,
        max_records=options.max_records,
        batch_size=options.max_records,
        share_acquire_mode=int(options.strict),
        topics=[{"topic_id": topic_id, "partitions": those} for topic_id, those in partitions.items()],
        forgotten_topics_data=[
            {"topic_id": topic_id, "partitions": numbers} for topic_id, numbers in forgotten.items()
        ],
    )


def lock_timeout_ms(answer: Any) -> int | None:
    """The acquisition lock's time-out; None: this version, or an error's answer, does not have it."""
    timeout = getattr(answer, "acquisition_lock_timeout", None)
    return None if not timeout else timeout // _MILLISECOND


def fetched_partitions(answer: Any) -> Iterator[FetchedPartition]:
    for partition, data in _partitions(answer):
        acquired = tuple(
            Acquired(one.first_offset, one.last_offset, one.delivery_count) for one in data.acquired_records
        )
        yield FetchedPartition(partition, Error(data.error_code), acquired, bytes(data.records or b""))


def share_answer(request: ShareRequest, answer: Any) -> ShareAnswer:
    error = "acknowledge_error_code" if request.fetches else "error_code"
    acknowledged = {partition: Error(getattr(data, error)) for partition, data in _partitions(answer)}
    failed = request.fetches and any(
        Error(data.error_code) is not Error.NONE for _, data in _partitions(answer)
    )
    return ShareAnswer(Error(answer.error_code), acknowledged, not failed)


def _partitions(answer: Any) -> Iterator[tuple[SharePartition, Any]]:
    for topic in answer.responses:
        for data in topic.partitions:
            yield SharePartition(topic.topic_id, data.partition_index), data
