"""Options of consumer groups (KIP-848), and the options that single groups of any kind have of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Self

from groupstorm.coordinator.modern.config import ModernConfig
from groupstorm.coordinator.share_config import ShareConfig
from groupstorm.coordinator.streams_config import STREAMS_GROUP_TEXTS, StreamsConfig
from groupstorm.problems import InputError


class MigrationPolicy(StrEnum):
    """`group.consumer.migration.policy`: which live groups may change their protocol."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        """Whether a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True)
class ConsumerConfig(ModernConfig):
    """The options that have an effect on consumer groups."""

    kind: ClassVar[str] = "consumer"

    #: The first one is the default.
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_refresh_interval_ms: int = 600_000

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        assignors, policy = "group.consumer.assignors", "group.consumer.migration.policy"
        typed = {assignors: tuple(options[assignors]), policy: MigrationPolicy(options[policy])}
        return super(ConsumerConfig, cls).from_options({**options, **typed})


#: The options of one group that are numbers, and their least and greatest values.
GROUP_OPTIONS = {
    **ConsumerConfig.own_options(),
    **StreamsConfig.own_options(),
    **ShareConfig.own_options(),
}


class GroupOptions:
    """The options that single groups have of their own; the broker's options hold for the others."""

    def __init__(
        self, broker: ConsumerConfig, streams: StreamsConfig | None = None, share: ShareConfig | None = None
    ) -> None:
        self._broker = broker
        self._streams = streams or StreamsConfig()
        self._share = share or ShareConfig()
        self._own: dict[str, dict[str, int | str]] = {}

    def set(self, group: str, options: Mapping[str, int | str]) -> None:
        """Give the group exactly these options of its own; `InputError` names the option that is wrong."""
        for name, value in options.items():
            if name in STREAMS_GROUP_TEXTS and isinstance(value, str):
                continue
            if name not in GROUP_OPTIONS:
                raise InputError(f"{name}: no kind of group has such an option")
            least, most = GROUP_OPTIONS[name]
            if isinstance(value, str) or not least <= value <= most:
                raise InputError(f"{name}: {value} is not between {least} and {most}")
        if options:
            self._own[group] = dict(options)
        else:
            self._own.pop(group, None)

    def own(self, group: str) -> Mapping[str, int | str]:
        """The options that were set for this group."""
        return self._own.get(group, {})

    def consumer(self, group: str) -> ConsumerConfig:
        """The options of a consumer group."""
        own = self._own.get(group)
        return self._broker if own is None else self._broker.of_group(own)

    def streams(self, group: str) -> StreamsConfig:
        """The options of a streams group."""
        return self._streams.of_group(self.own(group))

    def share(self, group: str) -> ShareConfig:
        """The options of a share group."""
        return self._share.of_group(self.own(group))

    def modern(self, kind: str, group: str) -> ModernConfig:
        """The options of a group of this kind."""
        of_kind = {"consumer": self.consumer, "share": self.share, "streams": self.streams}
        return of_kind[kind](group)
