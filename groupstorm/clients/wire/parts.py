"""The parts of a consumer over TCP: those that do not depend on its group protocol, and its membership."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.wire.application import ApplicationBehaviour
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.coordinator_link import CoordinatorLink
from groupstorm.clients.wire.event_emitter import EventEmitter
from groupstorm.clients.wire.positions import Positions
from groupstorm.coordinator.errors import Error

#: Starts a task that ends with the consumer.
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


@dataclass(frozen=True, slots=True)
class ConsumerParts:
    """The parts that a consumer has with either group protocol.

    ``clock`` returns microseconds. ``running``: not set while the process is paused. ``closing``: close() has
    been called.
    """

    config: ConsumerConfig
    application: ApplicationBehaviour
    clock: Callable[[], int]
    emitter: EventEmitter
    cluster: ClusterClient
    link: CoordinatorLink
    positions: Positions
    running: asyncio.Event
    closing: asyncio.Event
    spawn: Spawn

    def who(self, generation: Generation) -> tuple[str, str, str, int]:
        """The beginning of an event: group, client id, member id, generation."""
        return self.config.group_id, self.config.client_id, generation.member_id, generation.id


class MemberStatus(Protocol):
    """A member of a group, whichever group protocol it speaks."""

    config: ConsumerConfig

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that the application may read, in order."""
        ...

    @property
    def generation(self) -> Generation:
        """The generation, or the member epoch, for requests and events; -1: not in the group."""
        ...

    @property
    def failure(self) -> str | None:
        """The fatal error by Kafka's name, or the exception that poll() throws; None while it runs."""
        ...

    @property
    def may_commit(self) -> bool:
        """Whether the coordinator takes commits of this member now."""
        ...

    @property
    def is_joining(self) -> bool:
        """Whether a commit has to wait for the generation that the member is joining."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether the member has what its group assigns to it, and nothing is under way."""
        ...

    @property
    def is_leader(self) -> bool: ...

    @property
    def assigned_topic_ids(self) -> Collection[UUID]:
        """The topics of the assignment, if the broker says which they are."""
        ...

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """``error``: the first one of the response. ``sent``: the generation in the request."""
        ...

    def metadata_refreshed(self) -> None:
        """New topic metadata has arrived."""
        ...
