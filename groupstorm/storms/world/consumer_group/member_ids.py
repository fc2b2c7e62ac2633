"""The ids that members of consumer groups draw themselves."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import blake2b


def drawn_member_id(seed: int, name: str, incarnation: int) -> str:
    """A UUID as Kafka prints it (Uuid.randomUuid): the same in every run of that seed."""
    attempt = 0
    while True:
        content = f"{seed}/consumer-group-member/{name}/{incarnation}/{attempt}".encode()
        drawn = urlsafe_b64encode(blake2b(content, digest_size=16).digest()).decode().rstrip("=")
        if not drawn.startswith("-"):
            return drawn
        attempt += 1
