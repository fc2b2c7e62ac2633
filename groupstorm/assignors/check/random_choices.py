"""Random choices for histories: the same seed gives the same choices on any machine, in any process."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


class RandomChoices:
    """One sequence of choices; ``seed`` and ``case`` determine it."""

    def __init__(self, seed: int, case: int) -> None:
        self._name = f"{seed}/{case}"
        self._drawn = 0

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit`` - 1."""
        self._drawn += 1
        digest = blake2b(f"{self._name}/{self._drawn}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") * limit >> 64

    def between(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def some_of(self, choices: Sequence[T]) -> list[T]:
        """At least one of the choices, in their order."""
        sure = self.below(len(choices))
        return [choice for place, choice in enumerate(choices) if place == sure or self.below(2)]
