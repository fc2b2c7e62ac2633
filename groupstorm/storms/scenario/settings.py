"""The settings of a scenario: values of the table's rows, read, and resolved per member and release."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from groupstorm.assignors import protocol_name
from groupstorm.clients.profiles import PROFILES
from groupstorm.problems import InputError, did_you_mean, not_one_of
from groupstorm.storms.scenario.member_rules import (
    STRATEGY,
    MemberRules,
    read_machines,
    read_member_rules,
    read_releases,
    read_slow_records,
)
from groupstorm.storms.scenario.quantities import (
    TOPIC_NAME_EXPECTED,
    PodCount,
    is_topic_name,
    parse_pod_count,
    read_scaling_behavior,
)
from groupstorm.storms.scenario.randomness import Distribution, parse_distribution, parse_varying
from groupstorm.storms.scenario.record_rate_settings import (
    read_rate_changes,
    read_record_rate,
    read_record_skew,
)
from groupstorm.storms.scenario.setting_names import SETTINGS, Setting
from groupstorm.units import UNITS_US, bytes_of, duration_us

MAX_PATTERN = 200

_Value = TypeVar("_Value")

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}


def setting(name: str, where: str) -> Setting:
    """The row of a name. Raises InputError with the nearest names."""
    if name not in BY_NAME:
        hint = did_you_mean(name, BY_NAME, ": ", "; `groupstorm list --settings` has them all")
        raise InputError(f"{where}{name}: no such setting{hint}")
    return BY_NAME[name]


def read(name: str, written: Any, where: str = "") -> Any:
    """The value of a setting as a file or --set has it. Raises InputError with its name."""
    row = setting(name, where)
    kind = row.kind.removeprefix("optional ")
    if written is None and kind != row.kind:
        return None
    if kind in _READERS_WITHOUT_ROW:
        return _READERS_WITHOUT_ROW[kind](f"{where}{name}", written)
    return _READERS[kind](row, f"{where}{name}", written)


class Settings:
    """All settings of a run, resolved. The defaults of the members' client override the table's defaults.
    Each overlay overrides those, and the overlays before it.

    If members have several clients, these are the settings of the first client; see `of_member`.
    A release that a step rolls out has its own; see `release`.
    """

    def __init__(
        self,
        *overlays: tuple[str, Mapping[str, Any]],
        profile: str | None = None,
        releases: Sequence[tuple[str, Mapping[str, Any]]] = (),
    ) -> None:
        """``profile``: the client, if it is not the one that the overlays name. ``releases``: the settings
        that steps roll out one after the other, each on top of those before it."""
        self._overlays = overlays
        #: The group.instance.id and the name that rules of `member_settings` give.
        self.instance: str | None = None
        self.name: str | None = None
        self._of_rules: dict[tuple[int, ...], Settings] = {}
        chosen = {"client_profile": [profile]} if profile else {}
        overlays = (*overlays, ("", chosen))
        self._written: dict[str, Any] = {row.name: row.default for row in SETTINGS}
        self._values = {row.name: read(row.name, row.default) for row in SETTINGS}
        for where, overlay in overlays:
            if "client_profile" in overlay:
                self._take("client_profile", overlay["client_profile"], where)
        self._profiles = self.names("client_profile")
        for name, default in PROFILES[self._profiles[0]].defaults.items():
            self._take(name, default, "")
        for where, overlay in overlays:
            for name, written in overlay.items():
                self._take(name, written, where)
        self._given = {name for _, overlay in overlays for name in overlay}
        self._of_profile = {self._profiles[0]: self}
        for other in self._profiles[1:]:
            self._of_profile[other] = Settings(*overlays, profile=other)
        self._releases = tuple(
            Settings(*self._overlays, *releases[:number]) for number in range(1, len(releases) + 1)
        )

    def _take(self, name: str, written: Any, where: str) -> None:
        self._values[name] = read(name, written, where)
        self._written[name] = written

    def release(self, number: int) -> Settings:
        """The settings after ``number`` releases."""
        return self if number == 0 else self._releases[number - 1]

    def of_member(self, index: int) -> Settings:
        """The settings of the member in this place: members take several clients in turn, and
        `member_settings` gives some of them others."""
        own = self if len(self._profiles) == 1 else self._clients()[index % len(self._profiles)]
        return own._with_rules(self._rules().of(index))

    def of_profiles(self) -> tuple[Settings, ...]:
        """The settings that members have: of each client, of each of their rules, of each release."""
        later = [own for release in self._releases for own in release.at_start()]
        return (*self.at_start(), *later)

    def at_start(self) -> tuple[Settings, ...]:
        """The settings that members have before a step rolls out others."""
        found = [*self._clients()]
        for number, rule in enumerate(self._rules().rules):
            clients = {index % len(self._profiles) for index in rule.members}
            found += [self._clients()[client]._with_rules((number,)) for client in sorted(clients)]
        return tuple(found)

    def _clients(self) -> tuple[Settings, ...]:
        return (self,) if len(self._profiles) == 1 else tuple(self._of_profile[p] for p in self._profiles)

    @property
    def processes(self) -> int:
        """The processes that run when all members do."""
        return self.integer("members") // self.integer("members_per_pod")

    def member_name(self, index: int, kind: str = "member") -> str:
        """The name of the process in this place: as a rule of `member_settings` says, or member-07."""
        return self.of_member(index).name or f"{kind}-{index:0{len(str(self.integer('members')))}d}"

    @property
    def names_members(self) -> bool:
        """Whether a rule of `member_settings` names a process."""
        return any(rule.name is not None for rule in self._rules().rules)

    def _rules(self) -> MemberRules:
        return self.of_type("member_settings", MemberRules)

    def _with_rules(self, numbers: tuple[int, ...]) -> Settings:
        if not numbers:
            return self
        if numbers not in self._of_rules:
            rules = [self._rules().rules[number] for number in numbers]
            overlays = [("member_settings: ", rule.settings) for rule in rules]
            client = [rule.settings["client_profile"] for rule in rules if "client_profile" in rule.settings]
            profile = self._profiles[0] if not client else None
            own = Settings(*self._overlays, *overlays, profile=profile)
            own.instance = next((rule.instance for rule in reversed(rules) if rule.instance), None)
            own.name = next((rule.name for rule in reversed(rules) if rule.name), None)
            self._of_rules[numbers] = own
        return self._of_rules[numbers]

    def integer(self, name: str) -> int:
        return self.of_type(name, int)

    def optional_integer(self, name: str) -> int | None:
        return self.optional(name, int)

    def flag(self, name: str) -> bool:
        return self.of_type(name, bool)

    def optional_flag(self, name: str) -> bool | None:
        return self.optional(name, bool)

    def choice(self, name: str) -> str:
        return self.of_type(name, str)

    def optional_text(self, name: str) -> str | None:
        return self.optional(name, str)

    def names(self, name: str) -> tuple[str, ...]:
        return self.of_type(name, tuple)

    def integers(self, name: str) -> tuple[int, ...]:
        return self.of_type(name, tuple)

    def decimal(self, name: str) -> float:
        return self.of_type(name, float)

    def distribution(self, name: str) -> Distribution:
        return self.of_type(name, Distribution)

    def pods(self, name: str) -> PodCount:
        return self.of_type(name, PodCount)

    def of_type(self, name: str, kind: type[_Value]) -> _Value:
        """The value of a setting that has a type of its own (`record_rate`, `record_skew` ...)."""
        value = self._values[name]
        assert isinstance(value, kind)
        return value

    def optional(self, name: str, kind: type[_Value]) -> _Value | None:
        return None if self._values[name] is None else self.of_type(name, kind)

    def gives(self, name: str) -> bool:
        """Whether the setting is more than a default."""
        return name in self._given

    def changed(self, names: Container[str]) -> Iterator[tuple[str, Any]]:
        """Yield the settings of ``names`` that differ from the defaults, as a file would have them."""
        defaults = dict(Settings().written())
        for name, written in self.written():
            if name in names and written != defaults.get(name):
                yield name, written

    def written(self) -> Iterator[tuple[str, Any]]:
        """Every setting as a file would have it, in the table's order.

        If members have several clients, from the start or after a release, defaults that differ between these
        are left out. So are defaults of rows that are not ``in_files``.
        """
        clients = {own._profiles[0] for own in self.of_profiles()}
        of_clients = {name for client in clients for name in PROFILES[client].defaults}
        for name, value in self._written.items():
            if len(clients) > 1 and name in of_clients - self._given:
                continue
            resolved = self._values[name]
            row = BY_NAME[name]
            if not row.in_files and resolved == row.default:
                continue
            yield name, list(resolved) if isinstance(resolved, tuple) else _plain(value, resolved)


def _plain(written: Any, resolved: Any) -> Any:
    """A value as a file has it: values of types of their own keep that themselves."""
    if hasattr(resolved, "as_written"):
        return resolved.as_written
    return None if written is None else resolved


def duration_unit_us(name: str) -> int:
    """Microseconds that 1 means in a setting of this name; 0 if it is no duration."""
    return next((UNITS_US[unit] for unit in ("ms", "us") if name.endswith((f".{unit}", f"_{unit}"))), 0)


def _integer(row: Setting, where: str, written: Any) -> int:
    bare_us = duration_unit_us(row.name)
    if bare_us and isinstance(written, str):
        in_us = duration_us(where, written, bare_us)
        if in_us % bare_us:
            raise InputError(f"{where}: {written!r} is no whole number of {row.name[-2:]}")
        written = in_us // bare_us
    elif isinstance(written, str) and row.name.endswith(("_bytes", ".bytes")):
        written = bytes_of(where, written)
    if isinstance(written, bool) or not isinstance(written, int):
        raise InputError(f"{where}: {written!r} is no whole number ({row.meaning})")
    if not row.least <= written <= row.most:
        raise InputError(f"{where}: {written} lies outside {row.least} to {row.most}")
    return written


def _flag(row: Setting, where: str, written: Any) -> bool:
    if not isinstance(written, bool):
        raise InputError(f"{where}: {written!r}, a {type(written).__name__}, is neither true nor false")
    return written


def _choice(row: Setting, where: str, written: Any) -> str:
    if not isinstance(written, str) or written not in row.allowed:
        raise InputError(f"{where}: {not_one_of(written, row.allowed)}")
    return written


def _names(row: Setting, where: str, written: Any) -> tuple[str, ...]:
    items = [part.strip() for part in written.split(",")] if isinstance(written, str) else written
    if not isinstance(items, list | tuple) or not items or not all(isinstance(i, str) and i for i in items):
        raise InputError(f"{where}: {written!r}: expected one or more names ({row.meaning})")
    if row.allowed and not set(items) <= set(row.allowed):
        raise InputError(f"{where}: {written!r}: expected some of {', '.join(row.allowed)}")
    names = tuple(map(protocol_name, items)) if row.name == STRATEGY else tuple(items)
    if len(set(names)) != len(names):
        raise InputError(f"{where}: {written!r}: a name stands twice")
    return names


def _integers(row: Setting, where: str, written: Any) -> tuple[int, ...]:
    if not isinstance(written, list | tuple):
        raise InputError(f"{where}: {written!r}: expected a list of whole numbers ({row.meaning})")
    return tuple(_integer(row, where, one) for one in written)


def _decimal(row: Setting, where: str, written: Any) -> float:
    if isinstance(written, bool) or not isinstance(written, int | float):
        raise InputError(f"{where}: {written!r} is no number ({row.meaning})")
    if not row.least <= written <= row.most:
        raise InputError(f"{where}: {written} lies outside {row.least} to {row.most}")
    return float(written)


def _pattern(row: Setting, where: str, written: Any) -> str | None:
    if written is None:
        return None
    if not isinstance(written, str) or len(written) > MAX_PATTERN:
        raise InputError(f"{where}: {written!r}: expected a regular expression, or null")
    try:
        re.compile(written)
    except re.error as error:
        raise InputError(f"{where}: {written!r}: no regular expression: {error}") from error
    return written


def _topic_name(_: Setting, where: str, written: Any) -> str:
    if written != "" and not (isinstance(written, str) and is_topic_name(written)):
        raise InputError(f"{where}: {written!r}: {TOPIC_NAME_EXPECTED}, or nothing")
    return str(written)


def _topic_partitions(row: Setting, where: str, written: Any) -> Mapping[str, int] | None:
    if written is None:
        return None
    if not isinstance(written, Mapping) or not written:
        raise InputError(f"{where}: {written!r}: expected topics with partitions, or null")
    for topic in written:
        if not isinstance(topic, str) or not is_topic_name(topic):
            raise InputError(f"{where}: {topic!r}: {TOPIC_NAME_EXPECTED}")
    return {topic: _integer(row, where, count) for topic, count in written.items()}


def _pods(row: Setting, where: str, written: Any) -> PodCount:
    count = parse_pod_count(written)
    if count is None:
        raise InputError(f"{where}: {written!r}: expected a number of pods or a percentage like 25%")
    return count


#: The readers of values by the kind of the setting: those that need its row, and the others. An optional
#: kind may be null.
_READERS: Mapping[str, Callable[[Setting, str, Any], Any]] = {
    "integer": _integer,
    "flag": _flag,
    "choice": _choice,
    "names": _names,
    "integers": _integers,
    "decimal": _decimal,
    "pattern": _pattern,
    "topic name": _topic_name,
    "topic partitions": _topic_partitions,
    "pods": _pods,
}
_READERS_WITHOUT_ROW: Mapping[str, Callable[[str, Any], Any]] = {
    "distribution": parse_distribution,
    "varying duration": parse_varying,
    "member rules": read_member_rules,
    "releases": read_releases,
    "scaling behavior": read_scaling_behavior,
    "slow records": read_slow_records,
    "machines": read_machines,
    "rates": read_record_rate,
    "skew": read_record_skew,
    "rate changes": read_rate_changes,
}
