"""The way to the group's coordinator: looked up, connected, lost and found again (AbstractCoordinator)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.backoff import backoff_ms
from groupstorm.clients.wire.cluster import Cluster
from groupstorm.clients.wire.connection import Connection, ConnectionLost
from groupstorm.clients.wire.group_requests import EXCHANGES
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Request, Response

#: Answers of FindCoordinator after which the client looks again (RetriableException).
RETRIED = frozenset(
    {
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.NOT_COORDINATOR,
        Error.REQUEST_TIMED_OUT,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.LEADER_NOT_AVAILABLE,
    }
)


class Exchanges(Protocol):
    """Is told of everything that a member and its coordinator say to each other."""

    def sent(self, request: Request) -> None: ...

    def answered(self, request: Request, response: Response | Disconnected) -> None: ...


class CoordinatorLink:
    """One client's connection to the coordinator of its group.

    ``on_found`` is called in the moment in which there is a connection, ``on_lost`` when the broker
    has closed it or has not answered in time. While ``running`` is not set the process stands still, and
    no answer is heard. ``exchanges`` is told what is said.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        retry_backoff_ms: int,
        running: asyncio.Event,
        on_found: Callable[[], None],
        on_lost: Callable[[], None],
        exchanges: Exchanges | None = None,
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._retry_backoff_ms = retry_backoff_ms
        self._running = running
        self._on_found = on_found
        self._on_lost = on_lost
        self._exchanges = exchanges
        self._connection: Connection | None = None
        self._lookup: asyncio.Task[Error] | None = None

    async def find(self) -> Error:
        """Look the coordinator up and connect, for as long as it takes; NONE, or an error that is fatal.

        Whoever else wants it meanwhile, application or heartbeats, waits for the same lookup.
        """
        if self._connection is not None:
            return Error.NONE
        if self._lookup is None:
            self._lookup = asyncio.create_task(self._find())
            self._lookup.add_done_callback(self._looked_up)
        return await asyncio.shield(self._lookup)

    async def ask(self, request: Request, timeout_ms: int) -> Response | Disconnected:
        """The answer, or `Disconnected` where there is none. Raises InputError if the broker does not
        serve what is needed.
        """
        connection = self._connection
        if connection is None:
            self._on_lost()
            return Disconnected()
        if self._exchanges is not None:
            self._exchanges.sent(request)
        response = await self._exchange(connection, request, timeout_ms)
        await self._running.wait()
        if self._exchanges is not None:
            self._exchanges.answered(request, response)
        return response

    async def _exchange(
        self, connection: Connection, request: Request, timeout_ms: int
    ) -> Response | Disconnected:
        exchange = EXCHANGES[type(request)]
        api = exchange.api._replace(lowest=min(exchange.api.lowest, request.version))
        try:
            answer = await connection.ask(
                api,
                min(request.version, api.highest),
                lambda types: exchange.write(types, request),
                timeout_ms,
            )
        except ConnectionLost:
            return Disconnected()
        return exchange.read(answer)

    def drop(self) -> None:
        """The coordinator is elsewhere, or not to be believed: whoever waits for it is told Disconnected."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    async def close(self) -> None:
        """Nobody waits any more."""
        lookup = self._lookup
        if lookup is not None:
            lookup.cancel()
            await asyncio.wait({lookup})
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _find(self) -> Error:
        attempts = 0
        while True:
            try:
                found = await self._cluster.find_coordinator(self._group)
                if found.error is Error.NONE:
                    self._connection = await self._cluster.connect(found.endpoint)
                    self._connection.on_lost = self._lost
                    self._on_found()
                    return Error.NONE
                if found.error not in RETRIED:
                    return found.error
            except ConnectionLost:
                pass  # looked up anew below, at whichever broker answers
            await asyncio.sleep(backoff_ms(attempts, self._retry_backoff_ms) / 1000)
            attempts += 1

    def _looked_up(self, lookup: asyncio.Task[Error]) -> None:
        if self._lookup is lookup:
            self._lookup = None

    def _lost(self, connection: Connection) -> None:
        if connection is self._connection:
            self._connection = None
            self._on_lost()
