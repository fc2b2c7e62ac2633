"""The credentials that clients have to prove to the broker of a test."""

from __future__ import annotations

import os
from collections.abc import Mapping

from groupstorm.broker.security.listener import ListenerSecurity, tls_context
from groupstorm.broker.security.users import Users, is_name, is_password
from groupstorm.problems import InputError
from groupstorm.testing.arguments import optional_path


def secured(
    *,
    tls_cert: str | os.PathLike[str] | None = None,
    tls_key: str | os.PathLike[str] | None = None,
    tls_client_ca: str | os.PathLike[str] | None = None,
    sasl_users: Mapping[str, str] | None = None,
) -> ListenerSecurity:
    """For `groupstorm.broker(security=...)`.

    ``tls_cert``, ``tls_key``: PEM, in one file or in two; clients must use TLS. ``tls_client_ca``: clients
    must also show a certificate that one of these has signed. ``sasl_users``: name -> password; clients must
    authenticate (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512). Raises InputError.
    """
    certificate = optional_path("tls_cert", tls_cert)
    key, client_ca = optional_path("tls_key", tls_key), optional_path("tls_client_ca", tls_client_ca)
    if certificate is None and (key or client_ca):
        raise InputError(
            f"{'tls_key' if key else 'tls_client_ca'}: {key or client_ca}: expected tls_cert beside it"
        )
    tls = None if certificate is None else tls_context(certificate, key, client_ca)
    return ListenerSecurity(tls, None if sasl_users is None else _users(sasl_users))


def _users(passwords: object) -> Users:
    if not isinstance(passwords, Mapping) or not passwords:
        raise InputError("sasl_users: expected {'alice': 'her password'}")
    for name, password in passwords.items():
        if not isinstance(name, str) or not is_name(name):
            raise InputError(f"sasl_users: {name!r}: expected a name in printable ASCII")
        if not isinstance(password, str) or not is_password(password):
            raise InputError(f"sasl_users: {name}: expected a password, a text that is not empty")
    return Users(passwords)
