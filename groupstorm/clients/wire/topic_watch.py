"""A client's topic metadata: fetched at once and every metadata.max.age.ms (ConsumerMetadata)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable
from typing import Protocol
from uuid import UUID

from groupstorm.assignors.userdata import UserDataError, decode_subscription
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.waiting import Retries
from groupstorm.coordinator.messages import JoinGroupMember


class TopicReader(Protocol):
    """A member whose topics are refreshed."""

    config: ConsumerConfig

    @property
    def is_leader(self) -> bool: ...

    @property
    def assigned_topic_ids(self) -> Collection[UUID]: ...

    def metadata_refreshed(self) -> None:
        """New topic metadata has arrived."""
        ...


class TopicWatch:
    """Refreshes the topics. The membership compares them and joins again if it leads and they changed.

    ``on_change`` is called after each refresh.
    """

    def __init__(
        self, cluster: ClusterClient, membership: TopicReader, on_change: Callable[[], None]
    ) -> None:
        self.known = asyncio.Event()
        self._config = membership.config
        self._cluster = cluster
        self._membership = membership
        self._on_change = on_change
        self._group_topics: frozenset[str] = frozenset()
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Refresh until the task is cancelled."""
        while True:
            await self._refresh()
            self.known.set()
            self._membership.metadata_refreshed()
            self._on_change()
            pause_ms, max_age_ms = self._config.retry_backoff_ms, self._config.metadata_max_age_ms
            await asyncio.sleep(pause_ms / 1000)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0, max_age_ms - pause_ms) / 1000):
                    await self._wanted.wait()
            self._wanted.clear()

    def refresh_soon(self) -> None:
        """The metadata has turned out to be old, or the subscription has changed."""
        self._wanted.set()

    async def cover(self, members: Iterable[JoinGroupMember]) -> None:
        """The leader needs all topics of its group's subscriptions (updateGroupSubscription)."""
        topics: set[str] = set()
        for member in members:
            try:
                topics.update(decode_subscription(member.metadata).topics)
            except UserDataError:
                return  # the assignment will fail with this error
        self._group_topics = frozenset(topics)
        if not topics <= self._cluster.topics.keys():
            await self._refresh()

    async def _refresh(self) -> None:
        """Ask brokers until one answers."""
        retries = Retries(self._config.retry_backoff_ms)
        while True:
            try:
                if self._membership.config.subscription_pattern is None:
                    await self._cluster.refresh(self._watched())
                else:  # only the broker knows which topics match (ConsumerMetadata)
                    await self._cluster.refresh((), self._membership.assigned_topic_ids)
                return
            except ConnectionLost:
                await retries.pause()

    def _watched(self) -> frozenset[str]:
        """The topics to refresh: a leader's are those of its group (SubscriptionState.metadataTopics)."""
        own = frozenset(self._membership.config.topics)
        return own | self._group_topics if self._membership.is_leader else own
