"""The topics of a run as they are created, grow and are deleted, and as a client knows them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.world.broker import topic_id
from groupstorm.storms.world.clock import Clock


class Topics:
    """Topics and partitions now, and as they were at any time before: clients see them late.

    ``followed`` says whether members subscribe to a topic of that name: only partitions of such topics need
    an owner.
    """

    def __init__(self, topics: Mapping[str, int], followed: Callable[[str], bool] = lambda _: True) -> None:
        self._changes: list[tuple[int, Mapping[str, int]]] = [(-1, topics)]
        self._followed = followed
        #: All partitions of now; None if they are not listed yet.
        self._partitions: tuple[TopicPartition, ...] | None = None
        #: Topics that existed and do not any more.
        self.deleted: frozenset[str] = frozenset()

    def at(self, time_us: int) -> Mapping[str, int]:
        """Topics and their numbers of partitions as they were at ``time_us``."""
        if len(self._changes) == 1:
            return self.now
        index = bisect_right(self._changes, time_us, key=lambda change: change[0])
        return self._changes[max(0, index - 1)][1]

    @property
    def now(self) -> Mapping[str, int]:
        return self._changes[-1][1]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions of all topics that members subscribe to."""
        if self._partitions is None:
            self._partitions = tuple(
                [
                    TopicPartition(topic, p)
                    for topic, count in self.now.items()
                    if self._followed(topic)
                    for p in range(count)
                ]
            )
        return self._partitions

    def grow(self, topic: str, count: int, now_us: int) -> tuple[TopicPartition, ...]:
        """``topic`` has ``count`` partitions from now on (it cannot shrink), or is created with them.

        Returns the new partitions, none if no member subscribes to the topic.
        """
        before = self.now.get(topic, 0)
        created = tuple(TopicPartition(topic, p) for p in range(before, max(before, count)))
        self.deleted -= {topic}
        self._change({**self.now, topic: max(before, count)}, now_us)
        return created if self._followed(topic) else ()

    def delete(self, topic: str, now_us: int) -> tuple[TopicPartition, ...]:
        """``topic`` does not exist from now on. Returns its partitions; none if it was not there."""
        gone = tuple(TopicPartition(topic, p) for p in range(self.now.get(topic, 0)))
        if gone:
            self.deleted |= {topic}
            self._change({name: count for name, count in self.now.items() if name != topic}, now_us)
        return gone

    def _change(self, topics: Mapping[str, int], now_us: int) -> None:
        self._changes.append((now_us, topics))
        self._partitions = None


class ClientMetadata:
    """Refreshed every `metadata.max.age.ms`; ``on_refresh`` is called only if topics may have changed since
    the last refresh."""

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

    def names_by_id(self) -> Mapping[UUID, str]:
        return {topic_id(name): name for name in self.topics()}

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
