"""Where `groupstorm serve` listens and what it demands there, from its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groupstorm.problems import InputError

if TYPE_CHECKING:
    from groupstorm.coordinator.server.config import Endpoint
    from groupstorm.coordinator.server.security.listener import Security

LAST_PORT = 65_535
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9092
_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\[\]\s]+):(?P<port>[0-9]{1,5})")


class Wanted(NamedTuple):
    """The options as they were given; None: not at all."""

    host: str | None
    port: int | None
    listen: str | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None
    sasl_users: Path | None
    insecure: bool


def read_place(wanted: Wanted, brokers: int) -> tuple[Endpoint, str, Security]:
    """Where to listen, by which option, and what to demand there.

    Raises InputError for what does not go together, and for an address that would be open to everybody.
    """
    from groupstorm.coordinator.server.config import Endpoint
    from groupstorm.coordinator.server.security.listener import check_exposure

    security = _security(wanted)
    host, port, option = _address(wanted)
    if not 0 <= port <= LAST_PORT or (port and port + brokers - 1 > LAST_PORT):
        raise InputError(f"{option}: expected a port from 0 to {LAST_PORT}, for every broker")
    if not wanted.insecure:
        check_exposure(option, host, security)
    return Endpoint(host, port), option, security


def _address(wanted: Wanted) -> tuple[str, int, str]:
    """Host, port, and how the user has named them."""
    if wanted.listen is None:
        host = DEFAULT_HOST if wanted.host is None else wanted.host
        port = DEFAULT_PORT if wanted.port is None else wanted.port
        return host, port, f"--host {host} --port {port}"
    if wanted.host is not None or wanted.port is not None:
        raise InputError(
            f"--listen {wanted.listen}: says what --host and --port say, expected one or the other"
        )
    match = _LISTEN.fullmatch(wanted.listen)
    if match is None:
        raise InputError(f"--listen {wanted.listen}: expected HOST:PORT, for example 127.0.0.1:9092")
    return match["host"].strip("[]"), int(match["port"]), f"--listen {wanted.listen}"


def _security(wanted: Wanted) -> Security:
    from groupstorm.coordinator.server.security.listener import Security, tls_context
    from groupstorm.coordinator.server.security.users import read_users

    if wanted.tls_cert is None:
        for name, path in (("--tls-key", wanted.tls_key), ("--tls-client-ca", wanted.tls_client_ca)):
            if path is not None:
                raise InputError(f"{name} {path}: expected --tls-cert beside it, without it there is no TLS")
    users = None if wanted.sasl_users is None else read_users(wanted.sasl_users)
    tls = wanted.tls_cert and tls_context(wanted.tls_cert, wanted.tls_key, wanted.tls_client_ca)
    return Security(tls or None, users)
