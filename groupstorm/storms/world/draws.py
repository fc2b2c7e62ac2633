"""The draws of a process: how long its application works, by the instant at which that begins; its id."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import Final

from groupstorm.storms.scenario.randomness import Distribution, Stream
from groupstorm.storms.world.clock import Clock

# What a process draws at one instant: each purpose has a number of its own.
ASSIGN: Final = 0
CALLBACK: Final = 1
_PURPOSES: Final = 2


class ApplicationDraws:
    """The draws of one process: they depend on its name, its incarnation, the time and the purpose alone."""

    def __init__(self, clock: Clock, seed: int, name: str, incarnation: int) -> None:
        self._clock = clock
        self._stream = Stream(seed, "application", name, incarnation)

    def draw(self, purpose: int) -> int:
        return self._stream.at(_PURPOSES * self._clock.now_us + purpose)

    def duration_us(self, distribution: Distribution, purpose: int) -> int:
        """A duration that begins now."""
        if distribution.is_constant:
            return distribution.largest_us
        return distribution.at(self.draw(purpose))


def drawn_member_id(seed: int, name: str, incarnation: int) -> str:
    """A UUID as Kafka prints it (Uuid.randomUuid): the same in every run of that seed."""
    attempt = 0
    while True:
        content = f"{seed}/consumer-group-member/{name}/{incarnation}/{attempt}".encode()
        drawn = urlsafe_b64encode(blake2b(content, digest_size=16).digest()).decode().rstrip("=")
        if not drawn.startswith("-"):
            return drawn
        attempt += 1
