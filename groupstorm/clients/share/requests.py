"""ShareFetch and ShareAcknowledge: our plain values <-> kio's dataclasses."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from groupstorm.clients.share.records import AckRange, Acquired, SharePartition
from groupstorm.clients.share.sessions import ShareAnswer, ShareRequest
from groupstorm.clients.wire.connection import Build, ClientApi, RequestTypes
from groupstorm.coordinator.errors import Error

SHARE_FETCH = ClientApi(78, "ShareFetch", 1, 2)
SHARE_ACKNOWLEDGE = ClientApi(79, "ShareAcknowledge", 1, 2)
#: The first version that renews, and that has acquire modes.
_SINCE_RENEWAL = 2

_MILLISECOND = datetime.timedelta(milliseconds=1)
_Value = TypeVar("_Value")


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
    acknowledged = request.acknowledged

    def build(types: RequestTypes) -> Any:
        who = {
            "group_id": group,
            "member_id": member_id,
            "share_session_epoch": request.epoch,
            "is_renew_ack": request.renews,
        }
        if not request.fetches:
            topics = _topics(types, "AcknowledgeTopic", "AcknowledgePartition", acknowledged, ())
            return types.make(types.root.__name__, topics=topics, **who)
        return types.make(
            types.root.__name__,
            max_wait=options.max_wait_ms * _MILLISECOND,
            min_bytes=options.min_bytes,
            max_bytes=options.max_bytes,
            max_records=options.max_records,
            batch_size=options.max_records,
            share_acquire_mode=int(options.strict),
            topics=_topics(types, "FetchTopic", "FetchPartition", acknowledged, request.added),
            forgotten_topics_data=tuple(
                types.make(
                    "ForgottenTopic", topic_id=topic_id, partitions=tuple(number for number, _ in those)
                )
                for topic_id, those in _by_topic((one, None) for one in request.forgotten)
            ),
            **who,
        )

    return build


def _topics(
    types: RequestTypes,
    topic: str,
    partition: str,
    acknowledged: Mapping[SharePartition, Sequence[AckRange]],
    added: Iterable[SharePartition],
) -> tuple[Any, ...]:
    ranges: dict[SharePartition, Sequence[AckRange]] = {**dict.fromkeys(added, ()), **acknowledged}
    return tuple(
        types.make(
            topic,
            topic_id=topic_id,
            partitions=tuple(
                types.make(
                    partition,
                    partition_index=number,
                    acknowledgement_batches=tuple(
                        types.make(
                            "AcknowledgementBatch",
                            first_offset=one.first,
                            last_offset=one.last,
                            acknowledge_types=(one.type,),
                        )
                        for one in batches
                    ),
                )
                for number, batches in those
            ),
        )
        for topic_id, those in _by_topic(ranges.items())
    )


def _by_topic(
    pairs: Iterable[tuple[SharePartition, _Value]],
) -> Iterable[tuple[Any, list[tuple[int, _Value]]]]:
    found: dict[Any, list[tuple[int, _Value]]] = {}
    for partition, value in pairs:
        found.setdefault(partition.topic_id, []).append((partition.partition, value))
    return found.items()


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
