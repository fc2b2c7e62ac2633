"""The options of consumer and streams groups: the broker's, and those that one group may have of its own.

Kafka: GroupCoordinatorConfig, GroupConfig (dynamic configuration of a GROUP resource).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ModernConfig:
    """The options that both kinds have, under Kafka's names; times are in milliseconds."""

    kind: ClassVar[str]
    #: The fields that one group may have of its own, and the least and greatest values that may be set.
    own_numbers: ClassVar[Mapping[str, tuple[int, int]]] = {
        "session_timeout_ms": (1, INT_MAX),
        "heartbeat_interval_ms": (1, INT_MAX),
        "assignment_interval_ms": (0, INT_MAX),
    }

    session_timeout_ms: int = 45_000
    min_session_timeout_ms: int = 45_000
    max_session_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 5_000
    min_heartbeat_interval_ms: int = 5_000
    max_heartbeat_interval_ms: int = 15_000
    assignment_interval_ms: int = 1_000
    min_assignment_interval_ms: int = 0
    max_assignment_interval_ms: int = 15_000
    max_size: int = INT_MAX

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """From Kafka's options by name, each parsed and checked."""
        return cls(**{field: options[f"group.{_name(cls, field)}"] for field in cls.__match_args__})

    @classmethod
    def own_options(cls) -> dict[str, tuple[int, int]]:
        """The options of one group that are numbers, and their least and greatest values (GroupConfig)."""
        return {_name(cls, field): bounds for field, bounds in cls.own_numbers.items()}

    def of_group(self, own: Mapping[str, int | str]) -> Self:
        """The options of one group: its own, else the broker's. A value beyond the broker's bounds counts as
        the nearest bound (GroupConfig.evaluate)."""
        if not own:
            return self
        set_fields = [field for field in self.own_numbers if _name(type(self), field) in own]
        values: dict[str, Any] = {
            field: self._held(field, int(own[_name(type(self), field)])) for field in set_fields
        }
        return replace(self, **values) if values else self

    def bounds(self, field: str) -> tuple[int | None, int | None]:
        """The least and greatest values that the broker lets one group have; None: no bound."""
        bounded = field.removeprefix("num_")
        return getattr(self, f"min_{bounded}", None), getattr(self, f"max_{bounded}", None)

    def _held(self, field: str, value: int) -> int:
        least, most = self.bounds(field)
        at_least = value if least is None else max(value, least)
        return at_least if most is None else min(at_least, most)


def _name(kind: type[ModernConfig], field: str) -> str:
    return f"{kind.kind}.{field.replace('_', '.')}"
