"""The client configuration file of Kafka's own tools (--command-config): its TLS and SASL settings."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from pathlib import Path

from groupstorm.clients.wire.security import MECHANISMS, PLAINTEXT, SECURITY_PROTOCOLS, ClientSecurity
from groupstorm.java_properties import parse_java_properties
from groupstorm.problems import InputError

_KNOWN = frozenset(
    {
        "security.protocol",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.endpoint.identification.algorithm",
        "sasl.mechanism",
        "sasl.jaas.config",
    }
)
_JAAS = re.compile(r"""(?P<name>\w+)\s*=\s*(?:"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<bare>[^\s;"]+))""")
_FILE_BYTES_MAX = 1_000_000


def read_client_properties(path: Path) -> ClientSecurity:
    """Read the security settings of the file; other settings are ignored.

    Raises InputError for a setting of TLS or SASL that is not supported. No message contains a password.
    """
    options = _properties(path)
    where = f"--client-config {path}: "
    for name in options:
        if name.startswith(("ssl.", "sasl.", "security.")) and name not in _KNOWN:
            raise InputError(f"{where}{name}: not known here, expected some of {', '.join(sorted(_KNOWN))}")
    protocol = options.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in SECURITY_PROTOCOLS:
        expected = ", ".join(SECURITY_PROTOCOLS)
        raise InputError(f"{where}security.protocol: {protocol!r}, expected one of {expected}")
    with_tls, with_sasl = SECURITY_PROTOCOLS[protocol]
    security = PLAINTEXT
    if with_tls:
        security = security._replace(tls=_tls(where, options))
    if with_sasl:
        mechanism = options.get("sasl.mechanism", "")
        if mechanism not in MECHANISMS:
            expected = ", ".join(MECHANISMS)
            raise InputError(f"{where}sasl.mechanism: {mechanism!r}, expected one of {expected}")
        username, password = _credentials(where, options.get("sasl.jaas.config", ""))
        security = security._replace(sasl_mechanism=mechanism, username=username, password=password)
    return security


def _tls(where: str, options: Mapping[str, str]) -> ssl.SSLContext:
    authority = _pem(where, options, "ssl.truststore")
    try:
        context = ssl.create_default_context(cafile=authority)
    except (OSError, ssl.SSLError) as problem:
        reason = f"ssl.truststore.location: {authority}: {problem}"
        raise InputError(f"{where}{reason}, expected certificates in PEM") from problem
    if not options.get("ssl.endpoint.identification.algorithm", "https"):
        context.check_hostname = False
    own = _pem(where, options, "ssl.keystore")
    if own is not None:
        try:
            context.load_cert_chain(own, password=lambda: "")
        except (OSError, ssl.SSLError) as problem:
            reason = f"ssl.keystore.location: {own}: {problem}"
            raise InputError(f"{where}{reason}, expected certificate and key in PEM") from problem
    return context


def _pem(where: str, options: Mapping[str, str], store: str) -> str | None:
    location = options.get(f"{store}.location")
    if location is not None and options.get(f"{store}.type", "JKS").upper() != "PEM":
        raise InputError(f"{where}{store}.type: expected PEM, no other kind of store is read")
    return location


def _credentials(where: str, jaas: str) -> tuple[str, str]:
    found = {
        match["name"]: match["bare"] or re.sub(r"\\(.)", r"\1", match["quoted"] or "")
        for match in _JAAS.finditer(jaas)
    }
    if not (found.get("username") and found.get("password")):
        raise InputError(f'{where}sasl.jaas.config: expected ... required username="..." password="...";')
    return found["username"], found["password"]


def _properties(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES_MAX).decode("utf-8")
    except OSError as problem:
        raise InputError(
            f"--client-config {path}: cannot be read: {problem.strerror or problem}"
        ) from problem
    except UnicodeDecodeError as problem:
        raise InputError(f"--client-config {path}: expected text in UTF-8") from problem
    return parse_java_properties(text)
