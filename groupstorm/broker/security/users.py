"""Users and their passwords, from a file and never from the command line."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from groupstorm.broker.security.scram import Credential, make_credential
from groupstorm.problems import InputError

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


class KnownUsers(Protocol):
    """What the mechanisms ask about users."""

    def has(self, name: str, password: str, /) -> bool: ...

    def credential(self, name: str, hash_name: str, /) -> Credential | None: ...


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
