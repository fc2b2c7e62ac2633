"""Endpoints: where a broker is reached, and how Kafka prints the address of a peer."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The host and port at which a client reaches a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def java_address(host: str) -> str:
    """An address as java.net.InetAddress prints one: /127.0.0.1, /0:0:0:0:0:0:0:1."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return f"/{host}"
    if isinstance(address, ipaddress.IPv4Address):
        return f"/{address}"
    if address.ipv4_mapped is not None:
        return f"/{address.ipv4_mapped}"
    return "/" + ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
