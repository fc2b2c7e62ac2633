"""The demands of a test on the brokers' listeners, and how its clients pass them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from groupstorm.clients.wire.security import ClientSecurity
from tests.certificates import make_certificates
from tests.client_libraries.secured import Access
from tests.conformance.programs.building import ProgramUnavailable

#: The user of all clients with SASL. No sign of them is special in the suites' files and variables.
USER, PASSWORD = "suite", "suite-secret"


class Security(NamedTuple):
    """``protocol``: of the listeners, by Kafka's name. ``mechanism``: the clients' one of SASL, or empty."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""


def access_by(security: Security, folder: Path) -> Access:
    """The configuration of clients; with TLS they show a certificate. ``folder`` receives certificates.

    Raises ProgramUnavailable if certificates cannot be made.
    """
    certificates = None
    if security.protocol.endswith("SSL"):
        if find_spec("trustme") is None:
            raise ProgramUnavailable("trustme makes the certificates: pip install trustme")
        folder.mkdir(exist_ok=True)
        certificates = make_certificates(folder.resolve())
    user = (USER, PASSWORD) if security.mechanism else ("", "")
    return Access(*security, *user, certificates, shows_certificate=certificates is not None)


def client_security(access: Access) -> ClientSecurity:
    """Return the security settings for a client of our own."""
    tls = access.certificates and access.certificates.client_context(access.shows_certificate)
    return ClientSecurity(tls, access.mechanism or None, access.username, access.password)
