"""Users: their passwords, from a file and never from the command line, and their SCRAM credentials (KIP-554).

A user of the file has a credential of each SCRAM mechanism until an administrator replaces or deletes it.
PLAIN knows the users of the file alone, as Kafka's PLAIN knows those of its configuration. A credential has
the parts of a password that RFC 5802 lets a server keep.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from groupstorm.problems import InputError

#: The fewest that Kafka takes (ScramMechanism); our credentials are made with as many.
ITERATIONS = 4096
_SALT_BYTES = 16
#: SCRAM's messages carry printable ASCII (RFC 5802), and Kafka takes no other names.
_NAME = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_FILE_BYTES_MAX = 10_000_000


def is_name(name: str) -> bool:
    """Whether SCRAM can carry the name."""
    return _NAME.fullmatch(name) is not None


def is_password(password: str) -> bool:
    """Whether PLAIN can carry the password, whose parts end with a NUL."""
    return bool(password) and "\0" not in password


class Credential(NamedTuple):
    """The parts of a password that a server keeps; ``hash_name`` as hashlib calls it."""

    hash_name: str
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def make_credential(hash_name: str, password: str, salt: bytes, iterations: int = ITERATIONS) -> Credential:
    """As ScramFormatter.generateCredential. Passwords are used as they are, without SASLprep."""
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    return credential_of_salted(hash_name, salt, iterations, salted)


def credential_of_salted(hash_name: str, salt: bytes, iterations: int, salted: bytes) -> Credential:
    """The credential of a password that a client has salted."""
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    return Credential(hash_name, salt, iterations, stored_key, hmac.digest(salted, b"Server Key", hash_name))


class Users:
    """Names and passwords. SCRAM's credentials are made when they are first asked for, with a salt each."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = dict(passwords)
        self._credentials: dict[tuple[str, str], Credential] = {}

    def __len__(self) -> int:
        return len(self._passwords)

    @property
    def names(self) -> Collection[str]:
        return self._passwords.keys()

    def has(self, name: str, password: str) -> bool:
        """Whether that is the user's password. A wrong password and an unknown user take as long."""
        known = self._passwords.get(name)
        expected = password + " " if known is None else known
        return hmac.compare_digest(expected.encode(), password.encode()) and known is not None

    def credential(self, name: str, hash_name: str) -> Credential | None:
        """The user's credential for SCRAM; None for an unknown user."""
        password = self._passwords.get(name)
        if password is None:
            return None
        key = (name, hash_name)
        if key not in self._credentials:
            self._credentials[key] = make_credential(hash_name, password, os.urandom(_SALT_BYTES))
        return self._credentials[key]


def read_users(path: Path) -> Users:
    """One ``NAME=PASSWORD`` a line; empty lines and those that begin with # do not count.

    Raises InputError, which names the line and never shows its contents.
    """
    passwords: dict[str, str] = {}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, password = line.partition("=")
        name = name.strip()
        where = f"--sasl-users {path}, line {number}"
        if not (equals and is_name(name) and password):
            raise InputError(f"{where}: expected NAME=PASSWORD, the name in printable ASCII")
        if not is_password(password):
            raise InputError(f"{where}: a password cannot have a NUL in it")
        if name in passwords:
            raise InputError(f"{where}: this user was named before")
        passwords[name] = password
    if not passwords:
        raise InputError(f"--sasl-users {path}: no users in it, expected lines of NAME=PASSWORD")
    return Users(passwords)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
    except OSError as problem:
        raise InputError(f"--sasl-users {path}: cannot be read: {problem.strerror or problem}") from problem
    if len(data) > _FILE_BYTES_MAX:
        raise InputError(f"--sasl-users {path}: expected at most {_FILE_BYTES_MAX} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise InputError(f"--sasl-users {path}: expected text in UTF-8") from problem


#: ScramMechanism's number -> the hash.
SCRAM_MECHANISMS: Mapping[int, str] = {1: "sha256", 2: "sha512"}


class Credentials:
    """The credentials that a cluster keeps. ``users``: those of the file."""

    def __init__(self, users: Users | None = None) -> None:
        self.users = users or Users({})
        self._altered: dict[tuple[str, int], Credential | None] = {}

    def has(self, name: str, password: str) -> bool:
        """Whether that is the user's password for PLAIN."""
        return self.users.has(name, password)

    def credential(self, name: str, hash_name: str) -> Credential | None:
        """The user's credential for SCRAM; None if there is none."""
        mechanism = next(number for number, one in SCRAM_MECHANISMS.items() if one == hash_name)
        if (name, mechanism) in self._altered:
            return self._altered[name, mechanism]
        return self.users.credential(name, hash_name)

    def alter(self, name: str, mechanism: int, credential: Credential | None) -> None:
        """Replace a credential; None: delete it."""
        self._altered[name, mechanism] = credential

    @property
    def altered(self) -> Iterator[tuple[str, int, Credential | None]]:
        """All changes to the users of the file."""
        for (name, mechanism), credential in self._altered.items():
            yield name, mechanism, credential

    def known_names(self) -> list[str]:
        """Every user that has a credential, or had one that was deleted."""
        return [*dict.fromkeys((*self.users.names, *(name for name, _ in self._altered)))]

    def iterations_of(self, name: str) -> dict[int, int]:
        """The iterations of each of the user's credentials, by mechanism."""
        found = {}
        for mechanism in SCRAM_MECHANISMS:
            if (name, mechanism) not in self._altered:
                known = ITERATIONS if name in self.users.names else None
            else:
                credential = self._altered[name, mechanism]
                known = None if credential is None else credential.iterations
            if known is not None:
                found[mechanism] = known
        return found
