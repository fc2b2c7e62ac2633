"""The commit before a reconciliation, attempt by attempt.

Kafka 4.3.1 has it in CommitRequestManager.maybeAutoCommitSyncBeforeRebalance.
"""

from __future__ import annotations

from groupstorm.clients.consumer_group.timing import FOREVER_MS, Backoff
from groupstorm.clients.error_tables import COMMIT_RETRIED
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import Error

#: Errors after which the member commits again. UNKNOWN_TOPIC_OR_PARTITION is not one: the topic is gone.
RETRIED = COMMIT_RETRIED - {Error.UNKNOWN_TOPIC_OR_PARTITION}


class CommitAttempts:
    """When the next attempt leaves, and whether there is one. Times are milliseconds."""

    __slots__ = ("_attempts", "_backoff", "_deadline_ms", "_due_ms", "in_flight")

    def __init__(self, now_ms: int, deadline_ms: int, backoff: Backoff) -> None:
        self.in_flight = False
        self._deadline_ms = deadline_ms
        self._backoff = backoff
        self._due_ms = now_ms
        self._attempts = 0

    def wait_ms(self, now_ms: int) -> int:
        """How long until the next attempt; for ever while an answer is missing."""
        return FOREVER_MS if self.in_flight else max(0, self._due_ms - now_ms)

    def expired(self, now_ms: int) -> bool:
        """No attempt follows: one at least has failed, and the deadline is over."""
        return not self.in_flight and self._attempts > 0 and now_ms >= self._deadline_ms

    def goes_on(self, result: Error | Disconnected, epoch: int, now_ms: int) -> bool:
        """After an answer: whether another attempt follows. ``epoch``: the member's epoch now.

        A member that is out of the group has no epoch to repeat a commit with.
        """
        self.in_flight = False
        if result is Error.NONE:
            return False
        self._due_ms = now_ms + self._backoff.pause_ms(self._attempts)
        self._attempts += 1
        is_stale = result is Error.STALE_MEMBER_EPOCH and epoch > 0
        retried = isinstance(result, Disconnected) or result in RETRIED or is_stale
        return retried and now_ms < self._deadline_ms
