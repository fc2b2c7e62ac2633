"""Member ids of a storm: the shape of Kafka's, the numbers from the seed."""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID


class SeededMemberIds:
    """The n-th id of a run is the same in every run of that seed (Kafka: client id, dash, random UUID)."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0

    def __call__(self, prefix: str) -> str:
        self._drawn += 1
        digest = blake2b(f"{self._seed}/member-id/{self._drawn}".encode(), digest_size=16).digest()
        return f"{prefix}-{UUID(bytes=digest, version=4)}"
