"""A member's share sessions, one with each leader: which request goes out next, and what its answer means.

Kafka's client has it in ShareConsumeRequestManager and ShareSessionHandler (4.4.0). Sans-IO. One request at a
time is under way to each leader. Acknowledgements ride on a ShareFetch if one is due, and have a
ShareAcknowledge of their own otherwise.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from groupstorm.clients.operations import Disconnected
from groupstorm.clients.share.records import Acknowledgements, AckRange, Acquired, SharePartition, joined
from groupstorm.clients.wire.connection import Build, ClientApi, fields
from groupstorm.coordinator.errors import Error

#: Epochs of requests that open and close a session.
OPENS, CLOSES = 0, -1
_EPOCH_MAX = 2**31 - 1

#: Errors of whole requests after which the next one opens a new session.
_SESSION_GONE = frozenset(
    {
        Error.SHARE_SESSION_NOT_FOUND,
        Error.INVALID_SHARE_SESSION_EPOCH,
        Error.SHARE_SESSION_LIMIT_REACHED,
    }
)
#: Errors of acknowledgements that pass: the records are still locked for the member, so it repeats them.
_RETRIED = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS})


class ShareRequest(NamedTuple):
    """A ShareFetch, or without ``fetches`` a ShareAcknowledge, of a member to one leader.

    ``added``, ``forgotten``: the partitions that come into the session and leave it.
    """

    node_id: int
    epoch: int
    fetches: bool
    added: tuple[SharePartition, ...] = ()
    forgotten: tuple[SharePartition, ...] = ()
    acknowledgements: tuple[Acknowledgements, ...] = ()

    @property
    def renews(self) -> bool:
        return any(one.renews for one in self.acknowledgements)

    @property
    def acknowledged(self) -> dict[SharePartition, tuple[AckRange, ...]]:
        """The ranges of each partition, in order."""
        ranges: dict[SharePartition, list[AckRange]] = {}
        for one in self.acknowledgements:
            ranges.setdefault(one.partition, []).extend(one.ranges)
        return {partition: joined(those) for partition, those in ranges.items()}


class ShareAnswer(NamedTuple):
    """The errors of an answer: of the whole request, and of acknowledgements by partition.

    ``is_settled``: no partition's fetch has failed, so that the next one may follow at once.
    """

    error: Error
    acknowledged: Mapping[SharePartition, Error]
    is_settled: bool = True


@dataclass(slots=True)
class _Session:
    """The session with one leader, and the acknowledgements that wait for their request to it."""

    epoch: int = OPENS
    partitions: set[SharePartition] = field(default_factory=set)
    under_way: ShareRequest | None = None
    waiting: list[Acknowledgements] = field(default_factory=list)
    due_ms: int = 0

    def gone(self) -> None:
        self.epoch = OPENS
        self.partitions.clear()

    def go_on(self) -> None:
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1


class ShareSessions:
    """All sessions of one member.

    ``strict``: share.acquire.mode is record_limit, so that one leader at a time is asked for records.
    """

    def __init__(self, retry_backoff_ms: int, strict: bool) -> None:
        #: Whether the application waits for records. An answer with records ends it.
        self.wants_records = False
        #: Whether the next request to each leader is the last one.
        self.closing = False
        self._retry_backoff_ms = retry_backoff_ms
        self._strict = strict
        self._sessions: dict[int, _Session] = {}
        self._wanted: Mapping[int, frozenset[SharePartition]] = {}
        self._last_asked = -1
        self._done: list[Acknowledgements] = []

    # -- what the member does --------------------------------------------------------------------

    def read(self, wanted: Mapping[int, frozenset[SharePartition]]) -> None:
        """The partitions to fetch, by their leader."""
        self._wanted = wanted
        for node_id in wanted:
            self._sessions.setdefault(node_id, _Session())

    def acknowledge(self, acknowledgements: Iterable[Acknowledgements]) -> None:
        for one in acknowledgements:
            self._sessions.setdefault(one.node_id, _Session()).waiting.append(one)

    def done(self) -> list[Acknowledgements]:
        """The acknowledgements whose ``error`` is known since the last call."""
        done, self._done = self._done, []
        return done

    @property
    def is_closed(self) -> bool:
        """Whether close() may end: no session is open, and nothing is under way."""
        return self.closing and all(
            one.epoch == OPENS and one.under_way is None and not one.waiting
            for one in self._sessions.values()
        )

    # -- requests --------------------------------------------------------------------------------

    def requests(self, now_ms: int) -> list[ShareRequest]:
        """The requests that leave now. They count as sent."""
        made = []
        for node_id in self._in_turn():
            session = self._sessions[node_id]
            if session.under_way is None:
                self._expire(session)
                request = self._close(node_id) if self.closing else self._next(node_id, now_ms)
                if request is not None:
                    session.under_way = request
                    made.append(request)
        return made

    def next_ms(self, now_ms: int) -> int | None:
        """The time until a request leaves that waits for its backoff; None: no request waits."""
        dues = [
            min(one.due_ms, *(each.due_ms for each in one.waiting)) if one.waiting else one.due_ms
            for one in self._sessions.values()
            if one.under_way is None
        ]
        return min((due - now_ms for due in dues if due > now_ms), default=None)

    def _in_turn(self) -> list[int]:
        """The leaders, the one that was asked for records last at the end."""
        return sorted(self._sessions, key=lambda node_id: (node_id <= self._last_asked, node_id))

    def _expire(self, session: _Session) -> None:
        """Without a session the broker would refuse acknowledgements: it has released the records."""
        if session.epoch == OPENS:
            self._finish(session.waiting, Error.INVALID_SHARE_SESSION_EPOCH)
            session.waiting = []

    def _close(self, node_id: int) -> ShareRequest | None:
        session = self._sessions[node_id]
        if session.epoch == OPENS:
            return None
        acknowledgements, session.waiting = tuple(session.waiting), []
        return ShareRequest(node_id, CLOSES, False, acknowledgements=acknowledgements)

    def _next(self, node_id: int, now_ms: int) -> ShareRequest | None:
        session, wanted = self._sessions[node_id], self._wanted.get(node_id, frozenset())
        due = tuple(one for one in session.waiting if one.due_ms <= now_ms)
        fetches = self._may_fetch(session, now_ms) and bool(wanted) and not any(one.renews for one in due)
        if not fetches and not due:
            return None
        session.waiting = [one for one in session.waiting if one not in due]
        told = {one.partition for one in due}
        added: tuple[SharePartition, ...] = ()
        forgotten: tuple[SharePartition, ...] = ()
        if fetches:
            self._last_asked = node_id
            added = tuple(sorted(wanted - session.partitions))
            forgotten = tuple(sorted(session.partitions - wanted - told))
        session.partitions = session.partitions.difference(forgotten).union(added, told)
        return ShareRequest(node_id, session.epoch, fetches, added, forgotten, due)

    def _may_fetch(self, session: _Session, now_ms: int) -> bool:
        if not self.wants_records or session.due_ms > now_ms:
            return False
        asked = any(one.under_way is not None and one.under_way.fetches for one in self._sessions.values())
        return not (self._strict and asked)

    # -- answers ---------------------------------------------------------------------------------

    def answered(self, request: ShareRequest, answer: ShareAnswer | Disconnected, now_ms: int) -> None:
        """The leader has answered, or the connection broke: with it the broker has ended the session."""
        session = self._sessions[request.node_id]
        session.under_way = None
        if isinstance(answer, Disconnected):
            session.gone()
            self._finish(request.acknowledgements, Error.NETWORK_EXCEPTION)
            session.due_ms = now_ms + self._retry_backoff_ms
            return
        if request.epoch == CLOSES or answer.error in _SESSION_GONE:
            session.gone()
        else:
            session.go_on()
        if answer.error is not Error.NONE or not answer.is_settled:
            session.due_ms = now_ms + self._retry_backoff_ms
        for one in request.acknowledgements:
            error = answer.error
            if error is Error.NONE:
                error = answer.acknowledged.get(one.partition, Error.NONE)
            if error in _RETRIED and not self.closing and now_ms < one.deadline_ms:
                one.due_ms = now_ms + self._retry_backoff_ms
                session.waiting.append(one)
            else:
                self._finish([one], error)

    def lost(self, node_id: int) -> None:
        """The connection has ended while nothing was under way."""
        session = self._sessions.get(node_id)
        if session is not None and session.under_way is None:
            session.gone()

    def _finish(self, acknowledgements: Iterable[Acknowledgements], error: Error) -> None:
        for one in acknowledgements:
            one.error = error
            self._done.append(one)


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
