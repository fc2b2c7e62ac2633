"""Ports of the loopback interface for servers that have to be told theirs before they start."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_LOOPBACK = "127.0.0.1"


@contextmanager
def held_ports(count: int) -> Iterator[list[int]]:
    """Ports that are kept for whoever is told of them, as long as the context lasts.

    A socket is bound to each and never listens. Linux then gives the port to nobody who asks for a free one,
    and a server that sets SO_REUSEADDR, as Java's, Go's and asyncio's do, may listen there, end and start
    again. Other systems refuse the server while the socket is there: with them the ports are only free when
    the context begins.
    """
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((_LOOPBACK, 0))
        ports = [int(one.getsockname()[1]) for one in sockets]
        if sys.platform != "linux":
            held.close()
        yield ports
