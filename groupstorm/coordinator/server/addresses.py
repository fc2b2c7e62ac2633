"""How Kafka prints who is at the other end of a connection."""

from __future__ import annotations

import ipaddress


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
