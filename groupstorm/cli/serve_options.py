"""Where `groupstorm serve` listens and what clients have to prove there, from the command's options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groupstorm.problems import InputError

if TYPE_CHECKING:
    from groupstorm.broker.security.listener import ListenerSecurity
    from groupstorm.protocol.endpoints import Endpoint

LAST_PORT = 65_535
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9092
_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\[\]\s]+):(?P<port>[0-9]{1,5})")


class ListenerOptions(NamedTuple):
    """The options as the user gave them; None: the user did not."""

    host: str | None
    port: int | None
    listen: str | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None
    sasl_users: Path | None
    insecure: bool


def read_listener(given: ListenerOptions, brokers: int) -> tuple[Endpoint, str, ListenerSecurity]:
    """The address, the option that names it, and what clients have to prove.

    Raises InputError for options that contradict each other, and for an address that everybody could reach.
    """
    from groupstorm.broker.security.listener import check_exposure
    from groupstorm.protocol.endpoints import Endpoint

    security = _security(given)
    host, port, option = _address(given)
    if not 0 <= port <= LAST_PORT or (port and port + brokers - 1 > LAST_PORT):
        raise InputError(f"{option}: expected a port from 0 to {LAST_PORT}, for every broker")
    if not given.insecure:
        check_exposure(option, host, security)
    return Endpoint(host, port), option, security


def _address(given: ListenerOptions) -> tuple[str, int, str]:
    """Host, port, and the options by which the user has named them."""
    if given.listen is None:
        host = DEFAULT_HOST if given.host is None else given.host
        port = DEFAULT_PORT if given.port is None else given.port
        return host, port, f"--host {host} --port {port}"
    if given.host is not None or given.port is not None:
        raise InputError(
            f"--listen {given.listen}: says what --host and --port say, expected one or the other"
        )
    match = _LISTEN.fullmatch(given.listen)
    if match is None:
        raise InputError(f"--listen {given.listen}: expected HOST:PORT, for example 127.0.0.1:9092")
    return match["host"].strip("[]"), int(match["port"]), f"--listen {given.listen}"


def _security(given: ListenerOptions) -> ListenerSecurity:
    from groupstorm.broker.security.listener import ListenerSecurity, tls_context
    from groupstorm.broker.security.users import read_users

    if given.tls_cert is None:
        for name, path in (("--tls-key", given.tls_key), ("--tls-client-ca", given.tls_client_ca)):
            if path is not None:
                raise InputError(f"{name} {path}: expected --tls-cert beside it, without it there is no TLS")
    users = None if given.sasl_users is None else read_users(given.sasl_users)
    tls = given.tls_cert and tls_context(given.tls_cert, given.tls_key, given.tls_client_ca)
    return ListenerSecurity(tls or None, users)
