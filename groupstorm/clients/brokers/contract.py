"""What a broker is to those who run members against it, wherever it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from groupstorm.clients.wire.security import PLAINTEXT, Security
from groupstorm.coordinator.events import Event
from groupstorm.coordinator.server.config import Endpoint

#: Takes what an emulated coordinator did, as it happens.
OnCoordinatorEvents = Callable[[Sequence[Event]], None]


class BrokerUnavailable(Exception):
    """This kind of broker cannot be had here; the message is one line that says how to have it."""


class RunningBroker(NamedTuple):
    """A broker that answers.

    ``bootstrap``: where to reach it. ``tells_events``: whether it tells what its coordinator does.
    ``prefix``: what the names of groups and topics have to begin with on a cluster that is somebody's.
    ``security``: what it demands of its clients. ``pid``: its process, where that is one of its own on this
    machine.
    """

    name: str
    bootstrap: Sequence[Endpoint]
    tells_events: bool = False
    prefix: str = ""
    security: Security = PLAINTEXT
    pid: int | None = None

    @property
    def address(self) -> str:
        """What clients call bootstrap.servers."""
        return ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in self.bootstrap)


#: A broker that runs while the context lasts; entering it raises BrokerUnavailable or InputError.
BrokerContext = AbstractAsyncContextManager[RunningBroker]
