"""The proofs that a listener wants of its clients, and the addresses on which it may want none."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from groupstorm.broker.config import BrokerConfig
from groupstorm.broker.security.users import Users
from groupstorm.broker.state import BrokerState
from groupstorm.problems import InputError


class ListenerSecurity(NamedTuple):
    """``tls``: None: connections are plain. ``users``: those who may connect, None: everybody."""

    tls: ssl.SSLContext | None = None
    users: Users | None = None

    @property
    def protocol(self) -> str:
        """Kafka's name: the value of the clients' security.protocol."""
        kinds = {(False, False): "PLAINTEXT", (True, False): "SSL", (False, True): "SASL_PLAINTEXT"}
        return kinds.get((self.tls is not None, self.users is not None), "SASL_SSL")


PLAINTEXT = ListenerSecurity()


def tls_context(certificate: Path, key: Path | None = None, client_ca: Path | None = None) -> ssl.SSLContext:
    """TLS 1.2 or newer with this certificate (PEM, the chain behind it) and its key, maybe in one file.

    ``client_ca``: clients must show a certificate that one of these has signed (Kafka's
    ssl.client.auth=required). Raises InputError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    files = f"--tls-cert {certificate}" + (f" --tls-key {key}" if key is not None else "")

    def refuse_password(*_: Any) -> NoReturn:
        raise InputError(f"{files}: the key has a password, expected one without")

    try:
        context.load_cert_chain(certificate, key, refuse_password)
    except ssl.SSLError as problem:
        raise InputError(
            f"{files}: expected a certificate and the key that belongs to it, in PEM ({tls_reason(problem)})"
        ) from problem
    except OSError as problem:
        raise InputError(f"{files}: cannot be read: {problem.strerror or problem}") from problem
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except ssl.SSLError as problem:
            raise InputError(f"--tls-client-ca {client_ca}: expected certificates in PEM") from problem
        except OSError as problem:
            reason = problem.strerror or problem
            raise InputError(f"--tls-client-ca {client_ca}: cannot be read: {reason}") from problem
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def tls_reason(problem: OSError) -> str:
    """OpenSSL's reason, or the system's."""
    reason = getattr(problem, "reason", None)
    return reason.lower().replace("_", " ") if reason else str(problem) or type(problem).__name__


def check_exposure(option: str, host: str, security: ListenerSecurity) -> None:
    """Other machines may connect with encryption only. ``option``: as the user wrote it.

    Raises InputError for an address beyond the loopback interface without TLS.
    """
    if security.tls is None and not is_loopback(host):
        raise InputError(
            f"{option}: {host or 'every address'} can be reached from other machines; give --tls-cert and "
            f"--tls-key, or --insecure if everybody there may read and write"
        )


def is_loopback(host: str) -> bool:
    """Whether all addresses of that name are this machine's own; False for an unknown name."""
    try:
        found = socket.getaddrinfo(host or None, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return False
    addresses = [ipaddress.ip_address(str(address[0]).partition("%")[0]) for *_, address in found]
    return all(address.is_loopback for address in addresses)


def secure(state: BrokerState, security: ListenerSecurity) -> None:
    """Let the brokers of this state know the protocol and the users of their listeners.

    Raises InputError if advertised.listeners names another protocol than the listener's.
    """
    check_advertised(state.config, security)
    state.cluster.protocol = security.protocol
    state.credentials.users = security.users or Users({})


def check_advertised(config: BrokerConfig, security: ListenerSecurity) -> None:
    """Raises InputError if advertised.listeners names another protocol than the listener's."""
    advertised = config.advertised_listeners
    if advertised is not None and advertised.protocol not in (None, security.protocol):
        raise InputError(
            f"option advertised.listeners={advertised.protocol}://...: {security.protocol} is spoken here, "
            f"expected {security.protocol}://HOST:PORT"
        )
