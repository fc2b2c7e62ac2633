"""When a heartbeat is due, and when session and poll interval expire (Heartbeat.java). Sans-IO."""

from __future__ import annotations

from enum import Enum

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.wire.backoff import backoff_ms


class Due(Enum):
    """What the heartbeat thread does next; if several are due, in this order."""

    SESSION_EXPIRED = "no heartbeat response came for session.timeout.ms"
    POLL_EXPIRED = "the application did not poll for max.poll.interval.ms"
    HEARTBEAT = "send a heartbeat"


class HeartbeatTimers:
    """Three timers, in microseconds of one clock.

    The next heartbeat is due heartbeat.interval.ms after the last one left. After a failed one it is due
    after retry.backoff.ms, doubled with every failure.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self._interval_us = config.heartbeat_interval_ms * 1000
        self._session_us = config.session_timeout_ms * 1000
        self._max_poll_us = config.max_poll_interval_ms * 1000
        self._retry_backoff_ms = config.retry_backoff_ms
        self._profile = config.profile
        self._sent_us: int | None = None
        self._failed = 0
        self._heartbeat_at_us = 0
        self._session_ends_us = 0
        #: None while the application is inside poll().
        self._poll_expires_us: int | None = None

    def enabled(self, now_us: int, is_cooperative: bool = False) -> None:
        """The JoinGroup response has arrived: all three timers begin anew."""
        self._heartbeat_at_us = self._profile.first_heartbeat_us(
            now_us, self._interval_us, self._sent_us, is_cooperative
        )
        self._session_ends_us = now_us + self._session_us
        if self._poll_expires_us is not None:
            self._poll_expires_us = now_us + self._max_poll_us

    def sent(self, now_us: int) -> None:
        self._sent_us = now_us
        self._heartbeat_at_us = now_us + self._interval_us

    def answered(self, now_us: int) -> None:
        """The response has no error or REBALANCE_IN_PROGRESS: the session goes on."""
        self._failed = 0
        self._session_ends_us = now_us + self._session_us

    def failed(self, now_us: int) -> None:
        self._heartbeat_at_us = now_us + backoff_ms(self._failed, self._retry_backoff_ms) * 1000
        self._failed += 1

    def coordinator_found(self, now_us: int) -> None:
        self._session_ends_us = now_us + self._session_us

    def left_poll(self, now_us: int) -> None:
        """The application works on a batch, or its rebalance listener runs."""
        if self._profile.has_max_poll_interval:
            self._poll_expires_us = now_us + self._max_poll_us

    def entered_poll(self) -> None:
        self._poll_expires_us = None

    def due(self, now_us: int) -> Due | None:
        if now_us >= self._session_ends_us:
            return Due.SESSION_EXPIRED
        if self._poll_expires_us is not None and now_us >= self._poll_expires_us:
            return Due.POLL_EXPIRED
        return Due.HEARTBEAT if now_us >= self._heartbeat_at_us else None

    def next_us(self) -> int:
        """When the next timer is due."""
        first_us = min(self._heartbeat_at_us, self._session_ends_us)
        return first_us if self._poll_expires_us is None else min(first_us, self._poll_expires_us)
