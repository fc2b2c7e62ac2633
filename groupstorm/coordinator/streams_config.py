"""Options of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from groupstorm.coordinator.modern.config import INT_MAX, LONG_MAX, ModernConfig

#: The name of the assignor that Kafka brings along, and any other that is configured falls back to.
STICKY = "sticky"

_RACK_AWARE_TAGS = "streams.rack.aware.assignment.tags"
#: Options of one group that are texts. An assignor that the broker does not have is replaced by `STICKY`.
STREAMS_GROUP_TEXTS = (_RACK_AWARE_TAGS, "streams.assignor.name")


@dataclass(frozen=True, slots=True)
class StreamsConfig(ModernConfig):
    """The options that have an effect on streams groups."""

    kind: ClassVar[str] = "streams"
    own_numbers: ClassVar[Mapping[str, tuple[int, int]]] = {
        **ModernConfig.own_numbers,
        "initial_rebalance_delay_ms": (0, INT_MAX),
        "num_standby_replicas": (0, INT_MAX),
        "num_warmup_replicas": (0, INT_MAX),
        "task_offset_interval_ms": (1, INT_MAX),
        "acceptable_recovery_lag": (0, LONG_MAX),
    }

    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0
    max_standby_replicas: int = 2
    num_warmup_replicas: int = 2
    max_warmup_replicas: int = 20
    task_offset_interval_ms: int = 60_000
    min_task_offset_interval_ms: int = 15_000
    acceptable_recovery_lag: int = 10_000
    rack_aware_assignment_tags: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        tags = f"group.{_RACK_AWARE_TAGS}"
        return super(StreamsConfig, cls).from_options({**options, tags: tuple(options[tags])})

    def of_group(self, own: Mapping[str, int | str]) -> Self:
        found = super(StreamsConfig, self).of_group(own)
        if _RACK_AWARE_TAGS not in own:
            return found
        return replace(found, rack_aware_assignment_tags=split_names(str(own[_RACK_AWARE_TAGS])))

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """The configuration of the assignor, by name: a change counts the group epoch up."""
        configs = (("num.standby.replicas", str(self.num_standby_replicas)),)
        tags = self.rack_aware_assignment_tags
        return (*configs, ("rack.aware.assignment.tags", ",".join(tags))) if tags else configs


def split_names(text: str) -> tuple[str, ...]:
    """Names with commas between them, as Kafka reads a list."""
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()
