"""`member_settings`: some members have settings of their own.

A rule names members by number and gives them settings, as a variant does for all of them:
`[{members: [0, 1], settings: {process_ms: 20}}, {members: [3], instance: member-2}]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import is_member_list, read_list
from groupstorm.storms.scenario.setting_names import (
    COMMIT_INTERVAL,
    COMMITS,
    OFFSET_RESET,
    refuse_unsupported,
)

STRATEGY: Final = "partition.assignment.strategy"
_FORM: Final = "{members: [0, 1], settings: {...}}"

OF_ONE_MEMBER: Final = frozenset(
    {
        STRATEGY,
        "client_profile",
        "group.protocol",
        "group.remote.assignor",
        "group.instance.id",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "max.partition.fetch.bytes",
        "request.timeout.ms",
        "retry.backoff.ms",
        "metadata.max.age.ms",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        COMMITS,
        COMMIT_INTERVAL,
        OFFSET_RESET,
        "leave_on_close",
        "topic_pattern",
        "process_ms",
        "concurrency",
        "poll_interval_ms",
        "revoke_callback_ms",
        "assign_callback_ms",
        "restore_ms",
        "assign_ms",
        "assign_ns_per_member_partition",
        "clock_drift_ppm",
        "gc_interval_ms",
        "gc_pause_ms",
    }
)
"""Settings that a single process can have. The others belong to the broker, the topics or the scenario."""


@dataclass(frozen=True, slots=True)
class MemberRule:
    """Settings of the members in these places. ``instance``: their group.instance.id, all the same one.

    ``name``: the client id of the only member that the rule names.
    """

    members: frozenset[int]
    settings: Mapping[str, Any] = field(hash=False)
    instance: str | None = None
    name: str | None = None

    def written(self) -> dict[str, Any]:
        """The rule as a file has it: without fields that say nothing."""
        fields = ("settings", dict(self.settings)), ("instance", self.instance), ("name", self.name)
        return {"members": sorted(self.members), **{name: value for name, value in fields if value}}


@dataclass(frozen=True, slots=True)
class MemberRules:
    """All rules, in their order: a later one overrides an earlier one."""

    rules: tuple[MemberRule, ...] = ()

    @property
    def as_written(self) -> list[dict[str, Any]]:
        return [rule.written() for rule in self.rules]

    def of(self, index: int) -> tuple[int, ...]:
        """The numbers of the rules for the member in this place."""
        return tuple(number for number, rule in enumerate(self.rules) if index in rule.members)


@dataclass(frozen=True, slots=True)
class Releases:
    """The settings that the rolling restarts of a scenario roll out, in their order; {}: nothing new."""

    overlays: tuple[Mapping[str, Any], ...] = ()

    @property
    def as_written(self) -> list[dict[str, Any]]:
        return [dict(overlay) for overlay in self.overlays]


def read_releases(where: str, written: Any) -> Releases:
    """Raises InputError that names the release and the field."""
    return Releases(read_list(where, written, "settings, one for each rolling-restart", check_overlay))


def read_member_rules(where: str, written: Any) -> MemberRules:
    """Raises InputError that names the rule and the field."""
    return MemberRules(read_list(where, written, _FORM, _rule))


def _rule(where: str, written: Any) -> MemberRule:
    keys = set(written) if isinstance(written, Mapping) else set()
    if not {"members"} < keys <= {"members", "settings", "instance", "name"}:
        raise InputError(f"{where}: {written!r}: expected {_FORM}")
    members, instance = written["members"], written.get("instance")
    if not members or not is_member_list(members):
        raise InputError(f"{where}: members: {members!r}: expected a list of numbers of members")
    if instance is not None and (not isinstance(instance, str) or not instance):
        raise InputError(f"{where}: instance: {instance!r}: expected a group.instance.id")
    name = written.get("name")
    if name is not None and (not isinstance(name, str) or not name or len(members) > 1):
        raise InputError(f"{where}: name: {name!r}: expected a client id, and one member that has it")
    settings = check_overlay(f"{where}: settings", written.get("settings", {}))
    return MemberRule(frozenset(members), settings, instance, name)


def check_overlay(where: str, written: Any) -> Mapping[str, Any]:
    """Settings of single processes, not read yet. Raises InputError for the name of another setting."""
    if not isinstance(written, Mapping):
        raise InputError(f"{where}: {written!r}: expected names of settings with values")
    for name in written:
        if name not in OF_ONE_MEMBER:
            raise InputError(f"{where}: {name}: not a setting that single members can have")
    if (name := named_code(written)) is not None:
        raise InputError(f"{where}: {STRATEGY}: {name!r}: cannot name code here")
    refuse_unsupported(f"{where}: ", written)
    return dict(written)


def named_code(overlay: Mapping[str, Any]) -> str | None:
    """An assignor of the user's own (module:attribute) that these settings name."""
    names = overlay.get(STRATEGY, ())
    for name in names.split(",") if isinstance(names, str) else names if isinstance(names, list) else ():
        if isinstance(name, str) and ":" in name:
            return name
    return None
