"""A broker at an address from the user: a cluster that others use too."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.wire.security import PLAINTEXT, ClientSecurity
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\[\],\s]+):(?P<port>[0-9]{1,5})")


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
    shown = ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in bootstrap)
    yield RunningBroker(shown, bootstrap, prefix=new_prefix(), security=security)


def new_prefix() -> str:
    """The beginning of names that nobody else uses."""
    return f"groupstorm-{uuid.uuid4().hex[:8]}-"
