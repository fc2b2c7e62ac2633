"""The parts of a consumer over TCP that do not depend on its group protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.wire.application import ApplicationBehaviour
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.coordinator_link import CoordinatorLink
from groupstorm.clients.wire.event_emitter import EventEmitter
from groupstorm.clients.wire.positions import Positions

#: Starts a task that ends with the consumer.
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


@dataclass(frozen=True, slots=True)
class ConsumerParts:
    """What a `MembershipDriver` works with.

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
