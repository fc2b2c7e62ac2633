"""The base of the random scripts of all kinds of groups: chance, steps and virtual time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

#: Kafka looks for expired offsets and empty groups every 600 s (offsets.retention.check.interval.ms):
#: scripts end before that.
TIME_MAX_MS = 590_000
#: Why a failed append is refused: each is answered in its own way.
APPEND_ERRORS = ("NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE", "NETWORK_EXCEPTION")


class Steps:
    """``random`` is the only source of chance: the same generator gives the same script."""

    def __init__(self, generator: random.Random) -> None:
        self.random = generator
        self.steps: list[dict[str, Any]] = []
        self.elapsed_ms = 0

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, *values: Any) -> Any:
        return self.random.choice(values)

    def advance(self, duration_ms: int) -> None:
        """Let time pass, as far as there is any left."""
        duration_ms = min(duration_ms, TIME_MAX_MS - self.elapsed_ms)
        if duration_ms > 0:
            self.elapsed_ms += duration_ms
            self.steps.append({"op": "advance", "ms": duration_ms})


def draw_options(generator: random.Random, options: Mapping[str, tuple[float, Any]]) -> dict[str, Any]:
    """Draw some options: each has the share of scripts that have it, and its value or a list of values."""
    drawn = {}
    for name, (share, values) in options.items():
        if generator.random() < share:
            drawn[name] = generator.choice(values) if isinstance(values, list) else values
    return drawn
