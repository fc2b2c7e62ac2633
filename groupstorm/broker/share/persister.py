"""The way of leaders and of the group coordinator to the share coordinator, which is in the same process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from groupstorm.broker.changes import ShareStateDeleted, ShareStateUpdated
from groupstorm.broker.share.logs import id_of, kept, share_key
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.share_records.coordinator import StateRecord
from groupstorm.share_records.ports import ReadAnswer, SharePartitionKey, WriteState
from groupstorm.turns import Turns


class SharePersister:
    """Answers inside each call. The records of the share coordinator are changes of the broker."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    # what leaders ask (`groupstorm.share_records.ports.Persister`)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[ReadAnswer | None], None]
    ) -> None:
        answer, record = self._state.share_states.read(key, leader_epoch)
        self._note(key, record)
        done(answer)

    def write(self, request: WriteState, done: Callable[[Error | None], None]) -> None:
        error, record = self._state.share_states.write(request)
        self._note(request.key, record, request)
        done(error)

    # what the group coordinator asks (`groupstorm.coordinator.share.persister.Persister`)

    def initialize(self, group: str, asked: Initialization, /) -> Turns[Error | None]:
        first_error = NO_ERROR
        for topic_id, starts in asked.starts.items():
            for partition, start in starts.items():
                key = share_key(group, topic_id, partition)
                error, record = self._state.share_states.initialize(key, asked.epoch, start)
                self._note(key, record)
                first_error = error if first_error is NO_ERROR else first_error
                yield 1
        return first_error

    def delete(self, group: str, partitions: Mapping[UUID, Iterable[int]], /) -> Turns[Error | None]:
        for topic_id, numbers in partitions.items():
            for partition in numbers:
                key = share_key(group, topic_id, partition)
                self._note(key, self._state.share_states.delete(key)[1])
                yield 1
        return NO_ERROR

    def forget_topics(self) -> None:
        """Topics are gone, and with them the states of their partitions."""
        for key in self._state.share_states.forget_unknown():
            self._note(key, StateRecord.TOMBSTONE)

    def _note(
        self, key: SharePartitionKey, record: StateRecord | None, request: WriteState | None = None
    ) -> None:
        group, (topic, partition) = key
        changes = self._state.changes
        if record is StateRecord.TOMBSTONE:
            changes.append(ShareStateDeleted(group, id_of(topic), partition))
        elif record is StateRecord.UPDATE and request is not None:
            _, state_epoch, leader_epoch, start, complete, batches = request
            where = group, id_of(topic), partition
            changes.append(
                ShareStateUpdated(*where, start, complete, leader_epoch, state_epoch, tuple(batches))
            )
        elif record is not None:
            changes.append(kept(key, self._state.share_states.summary(key)[1]))
