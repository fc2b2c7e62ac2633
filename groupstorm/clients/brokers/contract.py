"""The common surface of every kind of broker on which members run; a broker at an address from the user."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.security import PLAINTEXT, ClientSecurity
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events.coordinator import Event

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\[\],\s]+):(?P<port>[0-9]{1,5})")

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
        return _shown(self.bootstrap)


#: A broker that runs while the context lasts; entering it raises BrokerUnavailable or InputError.
BrokerContext = AbstractAsyncContextManager[RunningBroker]


def read_addresses(text: str) -> tuple[Endpoint, ...]:
    """``HOST:PORT[,HOST:PORT...]``. Raises InputError."""
    found = []
    for part in text.split(","):
        match = _ADDRESS.fullmatch(part.strip())
        if match is None or not 0 < int(match["port"]) < 2**16:
            raise InputError(f"{part.strip()!r}: expected HOST:PORT")
        found.append(Endpoint(match["host"].strip("[]"), int(match["port"])))
    return tuple(found)


@asynccontextmanager
async def at_address(
    bootstrap: tuple[Endpoint, ...], security: ClientSecurity = PLAINTEXT
) -> AsyncIterator[RunningBroker]:
    """Groups and topics of the run get a prefix of its own, so that they meet none of the cluster's owner."""
    yield RunningBroker(_shown(bootstrap), bootstrap, prefix=new_prefix(), security=security)


def new_prefix() -> str:
    """The beginning of names that nobody else uses."""
    return f"groupstorm-{uuid.uuid4().hex[:8]}-"


def _shown(bootstrap: Iterable[Endpoint]) -> str:
    return ",".join(map(str, bootstrap))
