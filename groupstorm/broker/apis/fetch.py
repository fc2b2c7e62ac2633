"""Fetch (key 1), versions 4-18.

* v4: isolation level: committed reads end at the last stable offset, and the response names the aborted
  transactions among the records (KIP-98). v5: log start offset. v7: fetch sessions (KIP-227). v9: the leader
  epoch is checked. v12: flexible. v13: topic ids instead of names (KIP-516). v15-18: fields for replicas and
  new leaders.
* A fetch waits up to max_wait_ms for min_bytes (DelayedFetch). With an error in any partition it does not
  wait.
* A consumer needs READ on each topic. A fetch does not end earlier because of a topic that its client may not
  read, unless it is about nothing else (KafkaApis.handleFetchRequest).
* Above its quota a client gets an empty response, with the time for which its connection is muted (KIP-219).
* Records of a partition without any are empty, never null: librdkafka rejects null (KAFKA-18646).
* The first batch of a response may exceed the limits (KIP-74).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import Api, Call, Done, Encoded, Wait
from groupstorm.broker.apis.resources import NO_EPOCH, find_log, find_named, may_on_cluster
from groupstorm.broker.authorization import Operation
from groupstorm.broker.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    PartitionKey,
    Shown,
)
from groupstorm.broker.log.batches import Batch
from groupstorm.broker.log.partition import NO_OFFSET, PartitionLog
from groupstorm.broker.quotas import CONSUMER_BYTE_RATE
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import encode_in_turns, encoder
from groupstorm.protocol.codec.plain_values import milliseconds
from groupstorm.protocol.codec.shape import MILLISECOND
from groupstorm.turns import Turns, at_once, in_turns

_READ_COMMITTED = 1
_NO_REPLICA = -1
#: In front of a response; its size counts with it.
_LENGTH_BYTES = 4
_FIRST_WITH_TOPIC_IDS = 13
#: So many encoded responses without records are kept, each of at most so many partitions.
_IDLE_KEPT = 1_000
_IDLE_PARTITIONS = 32
#: So many bytes of records are copied in the time of a unit of work.
BYTES_PER_WORK = 20_000


@dataclass(frozen=True, slots=True)
class _Asked:
    """One partition of the request: its log, or the error."""

    key: PartitionKey
    partition: Any
    log: PartitionLog | None
    error: Error
    committed_only: bool

    @property
    def is_denied(self) -> bool:
        return self.error is Error.TOPIC_AUTHORIZATION_FAILED

    def present_error(self) -> Error:
        """The error now: retention, or a deletion, may have come while the fetch has waited."""
        if self.error is not Error.NONE or self.log is None:
            return self.error
        if self.log.is_gone:
            by_id = not isinstance(self.key[0], str)
            return Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION
        known = self.log.has_offset(self.partition.fetch_offset)
        return Error.NONE if known else Error.OFFSET_OUT_OF_RANGE

    def until(self) -> int | None:
        """Committed reads end in front of the first open transaction."""
        return self.log.last_stable_offset if self.committed_only and self.log is not None else None


def fetch(state: BrokerState, call: Call) -> Turns[Done | Encoded | Wait]:
    named = yield from in_turns(
        ((_name(topic), partition.partition), partition)
        for topic in call.message.topics
        for partition in topic.partitions
    )
    session, is_full, error = _session(state, call, dict(named))
    if error is not Error.NONE:
        return Done(call.types.response(error_code=error, session_id=NO_SESSION, responses=()))
    wanted = tuple((dict(named) if session is None else session.partitions).items())
    asked = yield from in_turns((_ask(state, call, key, partition) for key, partition in wanted), work=2)
    max_bytes, min_bytes = _limits(state, call)
    max_wait_ms = milliseconds(call.message.max_wait)

    def is_ready() -> bool:
        return _is_ready(asked, min_bytes)

    def finish() -> Done | Encoded | Turns[Done]:
        idle = _idle(state, call, asked) if session is None else None
        if idle is not None:
            return idle
        return read()

    def read() -> Turns[Done]:
        reads = yield from _read(asked, max_bytes)
        throttle_ms = yield from _throttle_ms(state, call, reads, is_full)
        if throttle_ms:
            return Done(_throttled(state, call, session, is_full, throttle_ms))
        return Done((yield from _response(call, reads, session, is_full)))

    if max_wait_ms <= 0 or all(one.is_denied for one in asked) or is_ready():
        outcome = finish()
        return (yield from outcome) if isinstance(outcome, Generator) else outcome
    logs = [one.log for one in asked if one.log is not None]
    return Wait(call.now_ms + max_wait_ms, logs, is_ready, finish)


def _session(
    state: BrokerState, call: Call, wanted: Mapping[PartitionKey, Any]
) -> tuple[FetchSession | None, bool, Error]:
    """The session, whether the response must name every partition, and the error if there is no session
    (FetchManager.newContext)."""
    message = call.message
    session_id = getattr(message, "session_id", NO_SESSION)
    epoch = getattr(message, "session_epoch", FINAL_EPOCH)
    sessions = state.sessions[call.node]
    uses_topic_ids = call.version >= _FIRST_WITH_TOPIC_IDS
    if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        sessions.end(session_id)
        session = None
        if epoch == INITIAL_EPOCH and message.topics:
            session = sessions.begin(uses_topic_ids, call.now_ms)
        if session is not None:
            session.change(wanted, ())
        return session, True, Error.NONE
    session, error = sessions.use(session_id, epoch, uses_topic_ids, call.now_ms)
    if session is not None:
        session.change(wanted, _forgotten(call))
        if not session.partitions:
            sessions.end(session_id)
            return None, True, Error.NONE
    return session, False, error


def _forgotten(call: Call) -> Iterable[PartitionKey]:
    return [
        (_name(topic), number) for topic in call.message.forgotten_topics_data for number in topic.partitions
    ]


def _name(topic: Any) -> Any:
    return topic.topic_id if hasattr(topic, "topic_id") else topic.topic


def _ask(state: BrokerState, call: Call, key: PartitionKey, partition: Any) -> _Asked:
    found = find_named(state, call, key[0])
    if _is_replica(call) and not may_on_cluster(state, call, Operation.CLUSTER_ACTION):
        found = None, Error.TOPIC_AUTHORIZATION_FAILED
    log, error = find_log(call, found, key[1], getattr(partition, "current_leader_epoch", NO_EPOCH))
    return _Asked(key, partition, log, error, call.message.isolation_level == _READ_COMMITTED)


def _is_replica(call: Call) -> bool:
    """Whether a broker asks: since version 15 it says so in a structure of its own."""
    asker: Any = getattr(call.message, "replica_state", call.message)
    return bool(asker.replica_id != _NO_REPLICA)


def _is_ready(asked: Sequence[_Asked], min_bytes: int) -> bool:
    available = 0
    for one in asked:
        if one.is_denied:
            continue
        if one.log is None or one.present_error() is not Error.NONE:
            return True
        wanted = one.partition
        available += one.log.readable_bytes(wanted.fetch_offset, wanted.partition_max_bytes, one.until())
        if available >= min_bytes:
            return True
    return available >= min_bytes


def _limits(state: BrokerState, call: Call) -> tuple[int, int]:
    """The most and the fewest bytes that this fetch returns. A quota allows no more than fit into all of its
    windows."""
    most = min(call.message.max_bytes, state.config.fetch_max_bytes)
    by_quota = state.quotas.most_at_once(CONSUMER_BYTE_RATE, call.client)
    if by_quota is not None and by_quota < most:
        most = int(by_quota)
    return most, min(call.message.min_bytes, most)


def _idle(state: BrokerState, call: Call, asked: Sequence[_Asked]) -> Encoded | None:
    """The response if the client is at the end of every partition and has no quota. Idle clients get the same
    one twice a second: it is encoded once."""
    if (
        len(asked) > _IDLE_PARTITIONS
        or state.quotas.most_at_once(CONSUMER_BYTE_RATE, call.client) is not None
    ):
        return None
    shown: list[object] = [call.version, call.message.isolation_level]
    for one in asked:
        log = one.log
        if log is None or log.is_gone or one.partition.fetch_offset != log.end_offset:
            return None
        shown += (one.key, log.end_offset, log.last_stable_offset, log.start_offset)
    key = tuple(shown)
    body = state.idle_fetches.get(key)
    if body is None:
        if len(state.idle_fetches) >= _IDLE_KEPT:
            state.idle_fetches.clear()
        reads = [_Read(one, Error.NONE, [], b"") for one in asked]
        body = encoder(call.types.root)(at_once(_response(call, reads, None, True)))
        body = [b"".join(body)]
        state.idle_fetches[key] = body
    return Encoded(body)


class _Read(NamedTuple):
    """The part of a response that a partition has."""

    asked: _Asked
    error: Error
    records: list[bytes]
    data: bytes


def _read(asked: Sequence[_Asked], max_bytes: int) -> Turns[list[_Read]]:
    reads, left, anything = [], max_bytes, False
    for one in asked:
        error = one.present_error()
        records: list[bytes] = []
        if error is Error.NONE and one.log is not None:
            limit = min(one.partition.partition_max_bytes, left)
            until = one.until()
            try:
                records = one.log.read(one.partition.fetch_offset, limit, not anything, until)
            except OSError:
                error = Error.KAFKA_STORAGE_ERROR
        data = b"".join(records)
        anything = anything or bool(data)
        left = max(0, left - len(data))
        reads.append(_Read(one, error, records, data))
        yield 2 + len(data) // BYTES_PER_WORK
    return reads


def _throttle_ms(state: BrokerState, call: Call, reads: list[_Read], is_full: bool) -> Turns[int]:
    if state.quotas.most_at_once(CONSUMER_BYTE_RATE, call.client) is None or _is_replica(call):
        return 0
    shown = reads if is_full else [one for one in reads if one.data or one.error is not Error.NONE]
    return (yield from count_bytes(state, call, (yield from _response(call, shown, None, True))))


def count_bytes(state: BrokerState, call: Call, response: Any) -> Turns[int]:
    """For how long the client's quota wants nothing to be sent; the bytes of the response count otherwise."""
    size_bytes = _LENGTH_BYTES + sum(map(len, (yield from encode_in_turns(response))))
    row = (CONSUMER_BYTE_RATE, call.client, size_bytes, state.now_ms)
    throttle_ms = state.quotas.record(*row)
    if throttle_ms:
        state.quotas.take_back(*row)
    return throttle_ms


def _throttled(
    state: BrokerState, call: Call, session: FetchSession | None, is_full: bool, throttle_ms: int
) -> Any:
    """An empty response: it begins no session, and a session that there is goes on
    (FetchContext.getThrottledResponse)."""
    session_id = NO_SESSION if session is None or is_full else session.session_id
    if session is not None and is_full:
        state.sessions[call.node].end(session.session_id)
    return call.types.response(
        throttle_time=throttle_ms * MILLISECOND, error_code=Error.NONE, session_id=session_id, responses=()
    )


def _response(call: Call, reads: list[_Read], session: FetchSession | None, is_full: bool) -> Turns[Any]:
    topics: dict[Any, list[Any]] = {}
    for one, error, records, data in reads:
        has_changed = _has_changed(session, one, error, data)
        yield 2
        if is_full or has_changed:
            topics.setdefault(one.key[0], []).append(_partition(call, one, error, data, records))
    responses = tuple(
        call.types.make("FetchableTopicResponse", topic=name, topic_id=name, partitions=tuple(partitions))
        for name, partitions in topics.items()
    )
    session_id = NO_SESSION if session is None else session.session_id
    return call.types.response(error_code=Error.NONE, session_id=session_id, responses=responses)


def _has_changed(session: FetchSession | None, asked: _Asked, error: Error, data: bytes) -> bool:
    if session is None:
        return True
    log = asked.log if error is Error.NONE else None
    shown = Shown(NO_OFFSET, NO_OFFSET) if log is None else Shown(log.end_offset, log.start_offset)
    return session.has_changed(asked.key, shown, bool(data) or error is not Error.NONE)


def _partition(call: Call, asked: _Asked, error: Error, data: bytes, batches: list[bytes]) -> Any:
    log = asked.log if error is Error.NONE else None
    return call.types.make(
        "PartitionData",
        partition_index=asked.key[1],
        error_code=error,
        high_watermark=log.end_offset if log is not None else NO_OFFSET,
        last_stable_offset=log.last_stable_offset if log is not None else NO_OFFSET,
        log_start_offset=log.start_offset if log is not None else NO_OFFSET,
        aborted_transactions=_aborted(call, asked, log, batches) if asked.committed_only else None,
        preferred_read_replica=_NO_REPLICA,
        records=data,
    )


def _aborted(call: Call, asked: _Asked, log: PartitionLog | None, batches: list[bytes]) -> tuple[Any, ...]:
    if log is None or not batches:
        return ()
    offset, until = asked.partition.fetch_offset, Batch.read(batches[-1]).last_offset + 1
    return tuple(
        call.types.make("AbortedTransaction", producer_id=one.producer_id, first_offset=one.first_offset)
        for one in log.transactions.aborted_between(offset, until)
    )


APIS = (
    Api(
        1, "Fetch", 4, 18, fetch, older=(12, 17), on_topics=Operation.READ,
        errors={"topics.partitions": "responses.partitions"}, last_with_errors=12, is_repeated=True,
    ),
)  # fmt: skip
