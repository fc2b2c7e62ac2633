"""A client's connections to leaders, for fetches alone: a parked fetch delays all later requests of its
connection."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import BrokerConnection, ConnectionLost


class LeaderConnections:
    """One connection to each leader, made on demand. ``on_lost`` gets the id of a broker that is gone."""

    def __init__(self, cluster: ClusterClient, on_lost: Callable[[int], None] = lambda _: None) -> None:
        self._cluster = cluster
        self._on_lost = on_lost
        self._open: dict[int, BrokerConnection] = {}

    async def to(self, node_id: int) -> BrokerConnection:
        """Raises ConnectionLost. One task at a time may ask for a broker's connection."""
        connection = self._open.get(node_id)
        if connection is None:
            endpoint = self._cluster.endpoint(node_id)
            if endpoint is None:
                raise ConnectionLost(f"broker {node_id} is not in the cluster any more")
            connection = await self._cluster.connect(endpoint)
            self._open[node_id] = connection
            connection.on_lost = lambda lost: self._forget(node_id, lost)
        return connection

    def abort(self) -> None:
        for connection in tuple(self._open.values()):
            connection.abort()

    def _forget(self, node_id: int, lost: BrokerConnection) -> None:
        if self._open.get(node_id) is lost:
            del self._open[node_id]
            self._on_lost(node_id)
