"""When a member's next heartbeat or commit may leave (Kafka 4.3.1).

Its classes are Timer, ExponentialBackoff, RequestState and HeartbeatRequestState.
All times are milliseconds. Nothing here reads a clock.
"""

from __future__ import annotations

import math

from groupstorm.clients.error_tables import COMMIT_RETRIED
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import Error

#: The answer to "how long": there is nothing to wait for.
FOREVER_MS = 2**63 - 1
#: A backoff doubles with each failure (RequestState.RETRY_BACKOFF_EXP_BASE).
_MULTIPLIER = 2
#: Errors after which the member commits again. UNKNOWN_TOPIC_OR_PARTITION is not one: the topic is gone.
_COMMIT_RETRIED = COMMIT_RETRIED - {Error.UNKNOWN_TOPIC_OR_PARTITION}


class Timer:
    """A deadline that is measured from the last `update` (org.apache.kafka.common.utils.Timer)."""

    __slots__ = ("_deadline_ms", "_now_ms")

    def __init__(self, now_ms: int, timeout_ms: int) -> None:
        self._now_ms = now_ms
        self._deadline_ms = now_ms + timeout_ms

    @property
    def now_ms(self) -> int:
        """The time of the last `update`."""
        return self._now_ms

    def update(self, now_ms: int) -> None:
        self._now_ms = max(now_ms, self._now_ms)

    def expires(self, now_ms: int) -> bool:
        """`update`, and whether the deadline is over: storms come here for every step."""
        if now_ms > self._now_ms:  # noqa: PLR1730  (`max` takes longer)
            self._now_ms = now_ms
        return self._now_ms >= self._deadline_ms

    def reset(self, timeout_ms: int) -> None:
        self._deadline_ms = self._now_ms + timeout_ms

    @property
    def expired(self) -> bool:
        return self._now_ms >= self._deadline_ms

    @property
    def remaining_ms(self) -> int:
        return max(0, self._deadline_ms - self._now_ms)


class Backoff:
    """Exponential backoff (ExponentialBackoff), without the factor between 0.8 and 1.2 that Kafka draws: the
    same responses make a member do the same.
    """

    __slots__ = ("_initial_ms", "_max_exponent", "_max_ms")

    def __init__(self, initial_ms: int, max_ms: int) -> None:
        self._initial_ms = min(initial_ms, max_ms)
        self._max_ms = max_ms
        self._max_exponent = (
            math.log(max_ms / max(initial_ms, 1)) / math.log(_MULTIPLIER) if max_ms > initial_ms else 0.0
        )

    def pause_ms(self, attempts: int) -> int:
        """The pause after ``attempts`` failures in a row."""
        if not self._max_exponent:
            return self._initial_ms
        term = self._initial_ms * math.pow(_MULTIPLIER, min(attempts, self._max_exponent))
        return min(int(term), self._max_ms)


class HeartbeatTiming:
    """The timer of the interval, the backoff, and whether an answer is missing."""

    __slots__ = ("_attempts", "_backoff", "_backoff_ms", "_received_ms", "_timer", "in_flight", "interval_ms")

    def __init__(self, now_ms: int, backoff: Backoff) -> None:
        #: As the broker told it; 0 before its first answer.
        self.interval_ms = 0
        self.in_flight = False
        self._timer = Timer(now_ms, 0)
        self._backoff = backoff
        #: When the last answer came, or None: then there is no backoff.
        self._received_ms: int | None = None
        self._attempts = 0
        self._backoff_ms = 0

    def reset(self) -> None:
        """Forget what was sent: the next heartbeat waits for the interval at most."""
        self.in_flight = False
        self._received_ms = None
        self._attempts = 0

    def may_send(self, now_ms: int) -> bool:
        """The interval and the backoff are over, and no answer is missing."""
        is_due = self._timer.expires(now_ms) and not self.in_flight
        return is_due and not self._remaining_backoff_ms(now_ms)

    def sent(self) -> None:
        """The interval starts when a heartbeat leaves, not when its answer comes."""
        self.in_flight = True
        self._timer.reset(self.interval_ms)

    def succeeded(self, now_ms: int, interval_ms: int) -> None:
        """A changed interval starts now; the same one goes on."""
        if interval_ms != self.interval_ms:
            self.interval_ms = interval_ms
            self._timer.update(now_ms)
            self._timer.reset(interval_ms)
        self.in_flight = False
        self._received_ms = now_ms
        self._attempts = 0
        self._backoff_ms = self._backoff.pause_ms(0)

    def failed(self, now_ms: int) -> None:
        """The next heartbeat waits for the backoff, not for the interval."""
        self._timer.reset(0)
        self.in_flight = False
        self._received_ms = now_ms
        self._backoff_ms = self._backoff.pause_ms(self._attempts)
        self._attempts += 1

    def next_ms(self, now_ms: int) -> int:
        """The time until the next heartbeat, if the state does not ask for one (timeToNextHeartbeatMs)."""
        return self._remaining_backoff_ms(now_ms) if self._timer.expired else self._timer.remaining_ms

    def backs_off(self, now_ms: int) -> bool:
        """Whether the next heartbeat waits for the backoff: the last answer came late in the interval."""
        return self._remaining_backoff_ms(now_ms) > self._timer.remaining_ms

    def _remaining_backoff_ms(self, now_ms: int) -> int:
        if self._received_ms is None:
            return 0
        return max(0, self._backoff_ms - (now_ms - self._received_ms))


class CommitAttempts:
    """The commit before a reconciliation: when its next attempt leaves, and whether there is one.

    Kafka 4.3.1 has it in CommitRequestManager.maybeAutoCommitSyncBeforeRebalance.
    """

    __slots__ = ("_attempts", "_backoff", "_deadline_ms", "_due_ms", "in_flight")

    def __init__(self, now_ms: int, deadline_ms: int, backoff: Backoff) -> None:
        self.in_flight = False
        self._deadline_ms = deadline_ms
        self._backoff = backoff
        self._due_ms = now_ms
        self._attempts = 0

    def wait_ms(self, now_ms: int) -> int:
        """The time until the next attempt; `FOREVER_MS` while an answer is missing."""
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
        retried = isinstance(result, Disconnected) or result in _COMMIT_RETRIED or is_stale
        return retried and now_ms < self._deadline_ms
