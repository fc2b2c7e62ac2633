"""What a scenario has set: values of the table's settings, read, and resolved per member and release.

`groupstorm run PRESET --set NAME=VALUE` and the `settings` of a scenario file take the names of
`settings_table`, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from groupstorm.clients.profiles import PROFILES
from groupstorm.problems import InputError
from groupstorm.storms.scenario import distributions
from groupstorm.storms.scenario.distributions import Distribution
from groupstorm.storms.scenario.machines import Machines, read_machines
from groupstorm.storms.scenario.member_rules import MemberRules, Releases, read_member_rules, read_releases
from groupstorm.storms.scenario.pod_counts import PodCount, parse_pod_count
from groupstorm.storms.scenario.record_rate_settings import (
    RateChanges,
    RecordRate,
    RecordSkew,
    read_rate_changes,
    read_record_rate,
    read_record_skew,
)
from groupstorm.storms.scenario.setting_types import Setting
from groupstorm.storms.scenario.settings_table import SETTINGS
from groupstorm.storms.scenario.slow_record_settings import SlowRecordList, read_slow_records
from groupstorm.storms.scenario.topic_names import TOPIC_NAME_EXPECTED, is_topic_name
from groupstorm.units import UNITS_US, duration_us

MAX_PATTERN = 200

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}

#: Settings that are gone, and what to use.
_GONE = {
    "process_rate": "a member processes as fast as it can: set process_ms, max.poll.records and concurrency"
}


def setting(name: str, where: str) -> Setting:
    """The row of a name. Raises InputError with the nearest names."""
    if name in _GONE:
        raise InputError(f"{where}{name}: no such setting any more; {_GONE[name]}")
    if name not in BY_NAME:
        near = get_close_matches(name, BY_NAME, n=2)
        hint = (
            f": did you mean {' or '.join(near)}?" if near else "; `groupstorm list --settings` has them all"
        )
        raise InputError(f"{where}{name}: no such setting{hint}")
    return BY_NAME[name]


def read(name: str, written: Any, where: str = "") -> Any:
    """The value of a setting as a file or --set has it. Raises InputError with its name."""
    row = setting(name, where)
    return _READERS[row.kind](row, written, where)


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
    def names_members(self) -> bool:
        """Whether a rule of `member_settings` names a process."""
        return any(rule.name is not None for rule in self._rules().rules)

    def _rules(self) -> MemberRules:
        rules = self._values["member_settings"]
        assert isinstance(rules, MemberRules)
        return rules

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
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def optional_integer(self, name: str) -> int | None:
        value = self._values[name]
        assert value is None or isinstance(value, int)
        return value

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool)
        return value

    def optional_flag(self, name: str) -> bool | None:
        value = self._values[name]
        assert value is None or isinstance(value, bool)
        return value

    def choice(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def names(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        assert isinstance(value, tuple)
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        value = self._values[name]
        assert isinstance(value, tuple)
        return value

    def decimal(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, float)
        return value

    def distribution(self, name: str) -> Distribution:
        value = self._values[name]
        assert isinstance(value, Distribution)
        return value

    def optional_text(self, name: str) -> str | None:
        value = self._values[name]
        assert value is None or isinstance(value, str)
        return value

    def value(self, name: str) -> object:
        """The value of a setting that has a type of its own (`record_rate`, `record_skew` ...)."""
        return self._values[name]

    def pods(self, name: str) -> PodCount:
        value = self._values[name]
        assert isinstance(value, PodCount)
        return value

    def written(self) -> Iterator[tuple[str, Any]]:
        """Every setting as a file would have it, in the table's order.

        If members have several clients, defaults that differ between these are left out. So are defaults of
        rows that are not ``in_files``.
        """
        own = {name for profile in self._profiles[1:] for name in PROFILES[profile].defaults}
        own |= set(PROFILES[self._profiles[0]].defaults) if own else set()
        for name, value in self._written.items():
            if name in own - self._given:
                continue
            resolved = self._values[name]
            row = BY_NAME[name]
            if not row.in_files and resolved == row.default:
                continue
            yield name, list(resolved) if isinstance(resolved, tuple) else _plain(value, resolved)


#: Types of values that keep what a file must have to give them.
_OF_THEIR_OWN = (
    Distribution,
    PodCount,
    RecordRate,
    RecordSkew,
    RateChanges,
    MemberRules,
    Releases,
    SlowRecordList,
    Machines,
)


def _plain(written: Any, resolved: Any) -> Any:
    return (
        resolved.as_written
        if isinstance(resolved, _OF_THEIR_OWN)
        else resolved
        if written is not None
        else None
    )


def duration_unit_us(name: str) -> int:
    """Microseconds that 1 means in a setting of this name; 0 if it is no duration."""
    return next((UNITS_US[unit] for unit in ("ms", "us") if name.endswith((f".{unit}", f"_{unit}"))), 0)


def _integer(row: Setting, written: Any, where: str) -> int:
    bare_us = duration_unit_us(row.name)
    if bare_us and isinstance(written, str):
        in_us = duration_us(f"{where}{row.name}", written, bare_us)
        if in_us % bare_us:
            raise InputError(f"{where}{row.name}: {written!r} is no whole number of {row.name[-2:]}")
        written = in_us // bare_us
    if isinstance(written, bool) or not isinstance(written, int):
        raise InputError(f"{where}{row.name}: {written!r} is no whole number ({row.meaning})")
    if not row.least <= written <= row.most:
        raise InputError(f"{where}{row.name}: {written} lies outside {row.least} to {row.most}")
    return written


def _optional_integer(row: Setting, written: Any, where: str) -> int | None:
    return None if written is None else _integer(row, written, where)


def _flag(row: Setting, written: Any, where: str) -> bool:
    if not isinstance(written, bool):
        raise InputError(f"{where}{row.name}: {written!r} is neither true nor false")
    return written


def _optional_flag(row: Setting, written: Any, where: str) -> bool | None:
    return None if written is None else _flag(row, written, where)


def _choice(row: Setting, written: Any, where: str) -> str:
    if not isinstance(written, str) or written not in row.allowed:
        raise InputError(f"{where}{row.name}: {written!r} is not one of {', '.join(row.allowed)}")
    return written


def _names(row: Setting, written: Any, where: str) -> tuple[str, ...]:
    items = [part.strip() for part in written.split(",")] if isinstance(written, str) else written
    if not isinstance(items, list | tuple) or not items or not all(isinstance(i, str) and i for i in items):
        raise InputError(f"{where}{row.name}: {written!r}: expected one or more names ({row.meaning})")
    if row.allowed and not set(items) <= set(row.allowed):
        raise InputError(f"{where}{row.name}: {written!r}: expected some of {', '.join(row.allowed)}")
    if len(set(items)) != len(items):
        raise InputError(f"{where}{row.name}: {written!r}: a name stands twice")
    return tuple(items)


def _integers(row: Setting, written: Any, where: str) -> tuple[int, ...]:
    if not isinstance(written, list | tuple):
        raise InputError(f"{where}{row.name}: {written!r}: expected a list of whole numbers ({row.meaning})")
    return tuple(_integer(row, one, where) for one in written)


def _decimal(row: Setting, written: Any, where: str) -> float:
    if isinstance(written, bool) or not isinstance(written, int | float):
        raise InputError(f"{where}{row.name}: {written!r} is no number ({row.meaning})")
    if not row.least <= written <= row.most:
        raise InputError(f"{where}{row.name}: {written} lies outside {row.least} to {row.most}")
    return float(written)


def _distribution(row: Setting, written: Any, where: str) -> Distribution:
    return distributions.parse(f"{where}{row.name}", written)


def _pattern(row: Setting, written: Any, where: str) -> str | None:
    if written is None:
        return None
    if not isinstance(written, str) or len(written) > MAX_PATTERN:
        raise InputError(f"{where}{row.name}: {written!r}: expected a regular expression, or null")
    try:
        re.compile(written)
    except re.error as error:
        raise InputError(f"{where}{row.name}: {written!r}: no regular expression: {error}") from error
    return written


def _member_rules(row: Setting, written: Any, where: str) -> MemberRules:
    return read_member_rules(f"{where}{row.name}", written)


def _releases(row: Setting, written: Any, where: str) -> Releases:
    return read_releases(f"{where}{row.name}", written)


def _slow_records(row: Setting, written: Any, where: str) -> SlowRecordList:
    return read_slow_records(f"{where}{row.name}", written)


def _machines(row: Setting, written: Any, where: str) -> Machines:
    return read_machines(f"{where}{row.name}", written)


def _topic_partitions(row: Setting, written: Any, where: str) -> Mapping[str, int] | None:
    if written is None:
        return None
    if not isinstance(written, Mapping) or not written:
        raise InputError(f"{where}{row.name}: {written!r}: expected topics with partitions, or null")
    for topic in written:
        if not isinstance(topic, str) or not is_topic_name(topic):
            raise InputError(f"{where}{row.name}: {topic!r}: {TOPIC_NAME_EXPECTED}")
    return {topic: _integer(row, count, where) for topic, count in written.items()}


def _rates(row: Setting, written: Any, where: str) -> RecordRate:
    return read_record_rate(f"{where}{row.name}", written)


def _skew(row: Setting, written: Any, where: str) -> RecordSkew | None:
    return read_record_skew(f"{where}{row.name}", written)


def _rate_changes(row: Setting, written: Any, where: str) -> RateChanges | None:
    return read_rate_changes(f"{where}{row.name}", written)


def _pods(row: Setting, written: Any, where: str) -> PodCount:
    count = parse_pod_count(written)
    if count is None:
        raise InputError(
            f"{where}{row.name}: {written!r}: expected a number of pods or a percentage like 25%"
        )
    return count


_READERS: Mapping[str, Callable[[Setting, Any, str], Any]] = {
    "integer": _integer,
    "flag": _flag,
    "optional flag": _optional_flag,
    "choice": _choice,
    "optional integer": _optional_integer,
    "names": _names,
    "integers": _integers,
    "decimal": _decimal,
    "distribution": _distribution,
    "pattern": _pattern,
    "member rules": _member_rules,
    "releases": _releases,
    "slow records": _slow_records,
    "machines": _machines,
    "topic partitions": _topic_partitions,
    "rates": _rates,
    "skew": _skew,
    "rate changes": _rate_changes,
    "pods": _pods,
}
