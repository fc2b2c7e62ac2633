"""The state of a record that a share group has in flight (Kafka: RecordState, InFlightState).

```
              acquired                       accept
  AVAILABLE ------------> ACQUIRED --------------------> ACKNOWLEDGED
      |     <------------     |  \\
      |      release,         |   \\ reject, or the last delivery, with a dead letter queue
      |      lock's end,      |    ------> ARCHIVING
      |      session's end    |                |  the record is in the queue
      |                       v                v
      -------------------> ARCHIVED <-----------
       the log has moved    reject, gap, the last delivery, an aborted transaction
```
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from groupstorm.share_records.timers import Timer


class RecordState(IntEnum):
    """A record's state, with the number that the share coordinator stores."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the group is done with the record."""
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class AcknowledgeType(IntEnum):
    """The answer of a member for a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


#: The states that may follow a state. A change that the share coordinator does not confirm is undone.
TRANSITIONS: Final[Mapping[RecordState, frozenset[RecordState]]] = {
    RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED, RecordState.ARCHIVED}),
    RecordState.ACQUIRED: frozenset(
        {RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVING, RecordState.ARCHIVED}
    ),
    RecordState.ACKNOWLEDGED: frozenset(),
    RecordState.ARCHIVING: frozenset({RecordState.ARCHIVED}),
    RecordState.ARCHIVED: frozenset(),
}

#: The state that an acknowledgement asks for. RENEW keeps the state.
ACKNOWLEDGED_AS: Final[Mapping[AcknowledgeType, RecordState]] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class DeliveryRule:
    """The delivery limit of a group at one moment, and whether it has a dead letter queue."""

    __slots__ = ("has_dead_letters", "limit", "throttled_from")

    def __init__(self, limit: int, has_dead_letters: bool) -> None:
        self.limit = limit
        self.has_dead_letters = has_dead_letters
        #: The delivery count from which on records are delivered in ever smaller numbers (KAFKA-17541).
        self.throttled_from = max(2, -(-limit // 2))


class InFlightState:
    """The state of one record, or of all records of a batch.

    A change begins, and completes once the share coordinator has answered. Until then nobody else may change
    the state, and the lock runs on.
    """

    __slots__ = ("_before", "_is_final", "delivery_count", "lock", "member_id", "state")

    def __init__(
        self, state: RecordState, delivery_count: int, member_id: str = "", lock: Timer | None = None
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock = lock
        #: The state and the member before a change that is not confirmed yet, and the delivery limit then.
        self._before: tuple[RecordState, str, int] | None = None
        #: The record was archived on the broker alone: a change that fails does not bring it back.
        self._is_final = False

    @property
    def is_changing(self) -> bool:
        """Whether the share coordinator has not confirmed the last change yet."""
        return self._before is not None

    @property
    def is_acquirable(self) -> bool:
        return self.state is RecordState.AVAILABLE and self._before is None

    def is_held(self, by: str | None) -> bool:
        """Whether the record is locked for this member; None: for any."""
        return self.state is RecordState.ACQUIRED and by in (None, self.member_id)

    def acquire(self, member_id: str) -> None:
        """Deliver an acquirable record to a member, who has yet to get a lock."""
        self._become(RecordState.ACQUIRED)
        self.delivery_count += 1
        self.member_id = member_id

    def give_up(self, wanted: RecordState, rule: DeliveryRule) -> bool:
        """Take the record from its member; False during a change. At the limit of deliveries it is archived
        instead of available, or on its way to the dead letter queue."""
        if self._before is not None:
            return False
        if wanted is RecordState.AVAILABLE and self.delivery_count >= rule.limit:
            wanted = RecordState.ARCHIVING if rule.has_dead_letters else RecordState.ARCHIVED
        self._become(wanted)
        self.member_id = ""
        return True

    def begin(self, wanted: RecordState, rule: DeliveryRule) -> bool:
        """`give_up` as a change that `complete` confirms or undoes."""
        before = (self.state, self.member_id, rule.limit)
        if not self.give_up(wanted, rule):
            return False
        self._before = before
        return True

    def complete(self, confirmed: bool) -> None:
        """End the change. A lock that ended meanwhile is not given back."""
        before, self._before = self._before, None
        if confirmed or self._is_final or before is None:
            self.unlock()
            return
        self.state, self.member_id, limit = before
        if self.lock is not None and self.lock.has_fired:
            is_last = self.delivery_count >= limit
            self.state = RecordState.ARCHIVED if is_last else RecordState.AVAILABLE
            self.member_id = ""
            self.unlock()

    def archive(self) -> None:
        """Archive the record for good, whatever change is under way."""
        self._become(RecordState.ARCHIVED)
        self._is_final = True
        self.member_id = ""
        self.unlock()

    def unlock(self) -> None:
        """Stop the lock's timer."""
        if self.lock is not None:
            self.lock.cancel()
            self.lock = None

    def _become(self, state: RecordState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state.name} -> {state.name}"
        self.state = state
