"""The common surface of every kind of broker on which members run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.security import PLAINTEXT, ClientSecurity
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events.coordinator import Event

#: Takes the events of an emulated coordinator as they happen.
OnCoordinatorEvents = Callable[[Sequence[Event]], None]


class BrokerUnavailable(Exception):
    """This kind of broker cannot run here; the message is one line that says what it needs."""


class BrokerFailed(ConnectionLost):
    """A broker that this machine can run has not started. A test that needs it fails; it is not skipped."""


def refused(kind: str, why: Exception) -> InputError:
    """The error of a command whose ``--on`` cannot be used. ``why`` may begin with the address itself."""
    text = str(why)
    return InputError(f"--on {text}" if text.startswith(f"{kind}:") else f"--on {kind}: {text}")


class RunningBroker(NamedTuple):
    """A broker that accepts connections.

    ``bootstrap``: its addresses. ``emits_events``: whether its coordinator's events reach the caller.
    ``prefix``: the beginning of the names of groups and topics on a cluster that others use too.
    ``security``: what it demands of clients. ``pid``: its process, if it has one of its own on this machine.
    """

    name: str
    bootstrap: Sequence[Endpoint]
    emits_events: bool = False
    prefix: str = ""
    security: ClientSecurity = PLAINTEXT
    pid: int | None = None

    @property
    def address(self) -> str:
        """The value of bootstrap.servers."""
        return ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in self.bootstrap)


#: A broker that runs while the context lasts; entering it raises BrokerUnavailable or InputError.
BrokerContext = AbstractAsyncContextManager[RunningBroker]
