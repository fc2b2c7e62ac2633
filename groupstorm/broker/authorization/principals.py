"""Who a client is: its principal, ``User:`` and a name.

The name is that of SASL, or the subject of the certificate that the client has shown (RFC 2253, as
X500Principal.getName writes it), or ANONYMOUS. Source: DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

from groupstorm.problems import InputError

ANONYMOUS = "User:ANONYMOUS"


def user(name: str) -> str:
    """The principal of a user of SASL, or of a certificate's subject."""
    return f"User:{name}"


def read_super_users(option: str, text: str) -> tuple[str, ...]:
    """Principals with semicolons between them (StandardAuthorizer, super.users). Raises InputError."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(";") if part.strip()))
    for principal in found:
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise InputError(
                f"option {option}={text}: {principal!r} is no principal, expected User:NAME;User:NAME"
            )
    return found
