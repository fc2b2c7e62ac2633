"""Draws member ids, and gives them the short names m1, m2, ... of the output."""

from __future__ import annotations

import hashlib
import re
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable

_NAME = re.compile(r"m\d+")


def scenario_uuid(scenario_id: str | int, number: int) -> uuid.UUID:
    """The n-th UUID that a scenario draws: MD5 of "<id>:<n>" with the bits of a random UUID."""
    digest = hashlib.md5(f"{scenario_id}:{number}".encode(), usedforsecurity=False).digest()
    return uuid.UUID(bytes=digest, version=4)


def topic_uuid(name: str) -> uuid.UUID:
    """The id of a script's topic: MD5 of "topic:<name>" with the bits of a random UUID."""
    digest = hashlib.md5(f"topic:{name}".encode(), usedforsecurity=False).digest()
    return uuid.UUID(bytes=digest, version=4)


def is_name(text: str) -> bool:
    """Whether a text has the form of these names."""
    return _NAME.fullmatch(text) is not None


class Names:
    """Draws ids and names them in the order in which they are first seen."""

    def __init__(self, scenario_id: str | int) -> None:
        self._scenario_id = scenario_id
        self._count = 0
        self._drawn: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def draw(self, prefix: str) -> str:
        """A new member id. In a consumer group its UUID alone is the id, in Kafka's base64."""
        self._count += 1
        drawn = scenario_uuid(self._scenario_id, self._count)
        member_id = f"{prefix}-{drawn}"
        self._drawn[member_id] = self._drawn[urlsafe_b64encode(drawn.bytes).decode().rstrip("=")] = (
            self._count
        )
        return member_id

    def see(self, ids: Iterable[str]) -> None:
        """Name the ids that were drawn and have no name yet, in the order of drawing."""
        new = {member_id for member_id in ids if member_id in self._drawn and member_id not in self._names}
        for member_id in sorted(new, key=self._drawn.__getitem__):
            name = f"m{len(self._names) + 1}"
            self._names[member_id] = name
            self._ids[name] = member_id

    def name(self, member_id: str) -> str:
        """The id's name; an id that was not drawn here is its own name."""
        return self._names.get(member_id, member_id)

    def member_id(self, name: str) -> str:
        """The id of a name; "no-m3" if m3 does not exist yet."""
        return self._ids.get(name, f"no-{name}")

    def key(self, name: str) -> tuple[int, int, str]:
        """Sort key: the names first, by number, then other ids as text."""
        return (0, int(name[1:]), "") if name in self._ids else (1, 0, name)

    @property
    def ids(self) -> dict[str, str]:
        """Name -> id, in the order of naming."""
        return dict(self._ids)
