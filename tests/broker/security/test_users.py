"""The file of users: its format and its refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.broker.security.users import Users, read_users
from groupstorm.problems import InputError


def users(folder: Path, content: bytes) -> Users:
    path = folder / "users"
    path.write_bytes(content)
    return read_users(path)


def test_names_and_passwords(tmp_path: Path) -> None:
    content = "# who may connect\n\nalice=secret\n bob = with = and spaces \ncarol=Größe\n"
    read = users(tmp_path, content.encode())
    assert len(read) == 3
    assert read.has("alice", "secret")
    assert read.has("bob", " with = and spaces ")
    assert read.has("carol", "Größe")
    assert not read.has("alice", "secret ")
    assert not read.has("alice", "")
    assert not read.has("# who may connect", "")


def test_credentials_have_a_salt_each_and_stay() -> None:
    pair = Users({"alice": "secret", "bob": "secret"})
    alice, bob = pair.credential("alice", "sha256"), pair.credential("bob", "sha256")
    assert alice is not None
    assert bob is not None
    assert alice.salt != bob.salt
    assert alice.iterations >= 4096
    assert pair.credential("alice", "sha256") is alice
    assert pair.credential("alice", "sha512") != alice


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "no users in it"),
        (b"# alice=secret\n", "no users in it"),
        (b"alice=secret\nbob\n", "line 2: expected NAME=PASSWORD"),
        (b"alice=\n", "line 1: expected NAME=PASSWORD"),
        (b"=secret\n", "line 1: expected NAME=PASSWORD"),
        ("älice=secret\n".encode(), "line 1: expected NAME=PASSWORD, the name in printable ASCII"),
        (b"alice=se\0cret\n", "line 1: a password cannot have a NUL"),
        (b"alice=secret\nalice=other\n", "line 2: this user was named before"),
        (b"alice=\xff\n", "expected text in UTF-8"),
    ],
)
def test_a_refused_line_is_named_and_not_shown(tmp_path: Path, content: bytes, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as refused:
        users(tmp_path, content)
    assert str(refused.value).startswith(f"--sasl-users {tmp_path / 'users'}")
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_users(tmp_path / "none")
