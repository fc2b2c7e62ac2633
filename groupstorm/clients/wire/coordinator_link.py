"""The connection to the group's coordinator: lookup, loss, another lookup (AbstractCoordinator)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import BrokerConnection, ConnectionLost
from groupstorm.clients.wire.group_requests import REQUEST_CODECS
from groupstorm.clients.wire.waiting import Retries
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Request, Response

#: Errors of FindCoordinator after which the client asks again (RetriableException).
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


class RequestObserver(Protocol):
    """Gets every request of a member to its coordinator, and every response."""

    def request_sent(self, request: Request) -> None: ...

    def response_received(self, request: Request, response: Response | Disconnected) -> None: ...


class CoordinatorLink:
    """One client's connection to the coordinator of its group.

    ``on_found`` is called as soon as the connection is open, ``on_lost`` when the broker has closed it or a
    response was late. While ``running`` is not set the process is paused and receives no response.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        group: str,
        retry_backoff_ms: int,
        running: asyncio.Event,
        observer: RequestObserver | None = None,
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._retry_backoff_ms = retry_backoff_ms
        self._running = running
        self.on_found: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None
        self._observer = observer
        self._connection: BrokerConnection | None = None
        self._lookup: asyncio.Task[Error] | None = None

    async def find(self) -> Error:
        """Look the coordinator up and connect, without a time limit. Returns NONE or a fatal error.

        Application and heartbeats wait for the same lookup.
        """
        if self._connection is not None:
            return Error.NONE
        if self._lookup is None:
            self._lookup = asyncio.create_task(self._find())
            self._lookup.add_done_callback(self._looked_up)
        return await asyncio.shield(self._lookup)

    async def ask(self, request: Request, timeout_ms: int) -> Response | Disconnected:
        """The response, or `Disconnected`. Raises InputError if the broker does not serve the API."""
        connection = self._connection
        if connection is None:
            self.on_lost()
            return Disconnected()
        if self._observer is not None:
            self._observer.request_sent(request)
        response = await self._exchange(connection, request, timeout_ms)
        await self._running.wait()
        if self._observer is not None:
            self._observer.response_received(request, response)
        return response

    async def _exchange(
        self, connection: BrokerConnection, request: Request, timeout_ms: int
    ) -> Response | Disconnected:
        codec = REQUEST_CODECS[type(request)]
        api = codec.api._replace(lowest=min(codec.api.lowest, request.version))
        try:
            response = await connection.ask(
                api, min(request.version, api.highest), codec.build(request), timeout_ms
            )
        except ConnectionLost:
            return Disconnected()
        return codec.read(response)

    def drop(self) -> None:
        """Give the coordinator up: it has moved or does not respond. Waiting tasks get `Disconnected`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    async def close(self) -> None:
        """Close the connection; no task waits for a response any more."""
        lookup = self._lookup
        if lookup is not None:
            lookup.cancel()
            await asyncio.wait({lookup})
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _find(self) -> Error:
        retries = Retries(self._retry_backoff_ms)
        while True:
            try:
                found = await self._cluster.find_coordinator(self._group)
                if found.error is Error.NONE:
                    self._connection = await self._cluster.connect(found.endpoint)
                    self._connection.on_lost = self._lost
                    self.on_found()
                    return Error.NONE
                if found.error not in RETRIED:
                    return found.error
            except ConnectionLost:
                pass  # the next attempt asks whichever broker answers
            await retries.pause()

    def _looked_up(self, lookup: asyncio.Task[Error]) -> None:
        if self._lookup is lookup:
            self._lookup = None

    def _lost(self, connection: BrokerConnection) -> None:
        if connection is self._connection:
            self._connection = None
            self.on_lost()
