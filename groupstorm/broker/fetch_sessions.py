"""Fetch sessions (KIP-227): a consumer names a partition once, and each response has only the changes.

Kafka: FetchManager, FetchSession, FetchSessionCache. Each broker has its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from groupstorm.coordinator.errors import Error

NO_SESSION = 0
#: Epochs of a request: a session begins; a session ends, or none is wanted (FetchMetadata).
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_LAST_EPOCH = 2**31 - 1
#: A session that was used more recently is not dropped for another one
#: (FetchSession.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS).
_SAFE_FOR_MS = 120_000


def draw_session_id() -> int:
    """A random number, as Kafka's (FetchSessionCache.newSessionId)."""
    return uuid.uuid4().int % _LAST_EPOCH + 1


#: A topic as the request names it, and the partition's number.
PartitionKey: TypeAlias = tuple[str | uuid.UUID | None, int]


class Shown(NamedTuple):
    """The offsets of a partition in the last response to the client."""

    high_watermark: int
    log_start_offset: int


@dataclass(slots=True)
class FetchSession:
    """``partitions``: those of the requests (kio's structures), in the order of serving."""

    session_id: int
    uses_topic_ids: bool
    used_at_ms: int
    epoch: int = INITIAL_EPOCH + 1
    partitions: dict[PartitionKey, Any] = field(default_factory=dict)
    shown: dict[PartitionKey, Shown] = field(default_factory=dict)

    def change(self, wanted: Mapping[PartitionKey, Any], forgotten: Iterable[PartitionKey]) -> None:
        """Add or change the partitions that an incremental request names, remove those that it forgets."""
        self.partitions.update(wanted)
        for key in forgotten:
            self.partitions.pop(key, None)
            self.shown.pop(key, None)

    def has_changed(self, key: PartitionKey, shown: Shown, has_records_or_error: bool) -> bool:
        """Whether the partition belongs into an incremental response. If so, it is taken to be in the
        response.

        A partition with records moves to the end of the order: others come first next time.
        """
        if not has_records_or_error and self.shown.get(key) == shown:
            return False
        self.shown[key] = shown
        if has_records_or_error and key in self.partitions:
            self.partitions[key] = self.partitions.pop(key)
        return True


class FetchSessions:
    """At most ``slots`` sessions; a client that gets none is served without."""

    def __init__(self, slots: int, draw_id: Callable[[], int]) -> None:
        """``draw_id`` gives ids of 1 and above."""
        self._slots = slots
        self._draw_id = draw_id
        self._sessions: dict[int, FetchSession] = {}  # the longest unused first

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, uses_topic_ids: bool, now_ms: int) -> FetchSession | None:
        """Begin a session; an unused one is dropped if there is no free slot."""
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.used_at_ms <= _SAFE_FOR_MS:
                return None
            self.end(oldest.session_id)
        session_id = self._draw_id()
        while session_id in self._sessions:
            session_id = self._draw_id()
        session = self._sessions[session_id] = FetchSession(session_id, uses_topic_ids, now_ms)
        return session

    def end(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def use(
        self, session_id: int, epoch: int, uses_topic_ids: bool, now_ms: int
    ) -> tuple[FetchSession | None, Error]:
        """The session of an incremental request, or the error."""
        session = self._sessions.get(session_id)
        if session is None:
            return None, Error.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return None, Error.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return None, Error.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        session.used_at_ms = now_ms
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session, Error.NONE
