"""A coordinator whose groups are checked after every call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Any

from groupstorm.coordinator.coordinator import GroupCoordinator


class CheckedCoordinator(GroupCoordinator, ABC):
    """A room says in ``check_group`` what holds of a group at any time."""

    def handle(self, *arguments: Any) -> Any:
        effects = super().handle(*arguments)
        self._check()
        return effects

    def fire_one(self, now_ms: int) -> Any:
        effects = super().fire_one(now_ms)
        self._check()
        return effects

    def _check(self) -> None:
        for name in self.groups:
            self.check_group(self.group(name))

    @abstractmethod
    def check_group(self, group: Any) -> None:
        """Fail if the group breaks one of the room's rules."""


def held_once(held: Iterable[object]) -> set[object]:
    """Return what is held; fail if something has several holders."""
    counts = Counter(held)
    assert not [one for one, count in counts.items() if count > 1]
    return set(counts)
