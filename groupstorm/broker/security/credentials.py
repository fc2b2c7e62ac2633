"""The SCRAM credentials that a cluster keeps (KIP-554), and the users that its brokers were started with.

A user of the file has a credential of each mechanism until an administrator replaces or deletes it. PLAIN
knows the users of the file alone, as Kafka's PLAIN knows those of its configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from groupstorm.broker.security.scram import ITERATIONS, Credential
from groupstorm.broker.security.users import Users

#: ScramMechanism's number -> the hash.
SCRAM_MECHANISMS: Mapping[int, str] = {1: "sha256", 2: "sha512"}


class Credentials:
    """``users``: those of the file."""

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

    def names(self) -> list[str]:
        """Every user with a credential."""
        names = dict.fromkeys((*self.users.names, *(name for name, _ in self._altered)))
        return [name for name in names if self.iterations_of(name)]

    def iterations_of(self, name: str) -> dict[int, int]:
        """How many iterations each of the user's credentials has, by mechanism."""
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
