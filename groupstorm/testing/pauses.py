"""Paused brokers: they accept connections, read nothing and answer nothing."""

from __future__ import annotations

from groupstorm.broker.connection import Connection
from groupstorm.broker.shell import Server


class PausedBrokers:
    """The paused brokers of one server. Time goes on: sessions may end meanwhile."""

    def __init__(self, server: Server) -> None:
        self._server = server
        #: The ids of the brokers that are paused.
        self.nodes: set[int] = set()
        server.on_connection = self._pause_new

    def pause(self, node: int) -> None:
        self.nodes.add(node)
        for connection in self._connections(node):
            connection.pause()

    def resume(self, node: int) -> None:
        """The broker sends the responses that it has held back, then reads again."""
        self.nodes.discard(node)
        for connection in self._connections(node):
            connection.resume()

    def _connections(self, node: int) -> list[Connection]:
        return [connection for connection in self._server.connections.values() if connection.node == node]

    def _pause_new(self, connection: Connection) -> None:
        if connection.node in self.nodes:
            connection.pause()
