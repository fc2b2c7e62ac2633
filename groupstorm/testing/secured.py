"""What a broker of a test demands of its clients."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from groupstorm.coordinator.server.security.listener import Security, tls_context
from groupstorm.coordinator.server.security.users import Users
from groupstorm.problems import InputError


def secured(
    *,
    tls_cert: str | os.PathLike[str] | None = None,
    tls_key: str | os.PathLike[str] | None = None,
    tls_client_ca: str | os.PathLike[str] | None = None,
    sasl_users: Mapping[str, str] | None = None,
) -> Security:
    """For `groupstorm.broker(security=...)`.

    ``tls_cert``, ``tls_key``: PEM files, in one or in two; clients have to speak TLS. ``tls_client_ca``: and
    to show a certificate that one of these has signed. ``sasl_users``: name -> password; clients have to
    prove who they are (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512). Raises InputError.
    """
    key, client_ca = (None if path is None else Path(path) for path in (tls_key, tls_client_ca))
    if tls_cert is None and (key or client_ca):
        raise InputError(
            f"{'tls_key' if key else 'tls_client_ca'}: {key or client_ca}: expected tls_cert beside it"
        )
    tls = None if tls_cert is None else tls_context(Path(tls_cert), key, client_ca)
    return Security(tls, None if sasl_users is None else Users(sasl_users))
