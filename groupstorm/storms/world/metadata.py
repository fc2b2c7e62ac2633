"""A client's knowledge of the topics: their state as of its last metadata refresh."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.topics import Topics


class ClientMetadata:
    """Refreshed every `metadata.max.age.ms`; ``on_refresh`` is called only if topics may have changed since
    the last refresh."""

    __slots__ = (
        "_clock",
        "_fetched_us",
        "_on_refresh",
        "_refresh_us",
        "_scheduled_us",
        "_started_us",
        "_topics",
    )

    def __init__(self, clock: Clock, topics: Topics, max_age_us: int, on_refresh: Callable[[], None]) -> None:
        self._clock = clock
        self._topics = topics
        self._refresh_us = max_age_us
        self._on_refresh = on_refresh
        #: Refreshes are due at this instant and every `metadata.max.age.ms` from it on.
        self._started_us = 0
        self._fetched_us = 0
        self._scheduled_us: int | None = None

    def start(self, age_us: int) -> None:
        """The client knows the topics of now; its next refresh comes as if they were ``age_us`` old."""
        self._fetched_us = self._clock.now_us
        self._started_us = self._fetched_us - age_us

    def topics(self) -> Mapping[str, int]:
        """Topics and their numbers of partitions, as the client knows them."""
        age_us = self._clock.now_us - self._started_us
        last_us = self._started_us + age_us // self._refresh_us * self._refresh_us
        return self._topics.at(max(last_us, self._fetched_us))

    def refresh(self) -> None:
        """The client fetches metadata now; the next refresh is `metadata.max.age.ms` later."""
        self.start(0)

    def topics_changed(self) -> None:
        """The client will see it at its next refresh."""
        age_us = self._clock.now_us - self._started_us
        refresh_us = self._started_us + (age_us // self._refresh_us + 1) * self._refresh_us
        if self._scheduled_us != refresh_us:
            self._scheduled_us = refresh_us
            self._clock.at(refresh_us, self._on_refresh)
