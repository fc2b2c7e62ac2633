"""`member_settings`: some members have settings of their own; `slow_records` and `machines`: single records,
and machines, that an application works on for long.

A rule names members by number and gives them settings, as a variant does for all of them:
`[{members: [0, 1], settings: {process_ms: 20}}, {members: [3], instance: member-2}]`.

An entry of `slow_records` is one record, `{partition: 3, offset: 5000, takes: 6m}` (or `at: 10m`: the first
one that arrives then), or every so many of all partitions, `{every: 1000, takes: 2s}`. The application works
on such a record for `takes`. If it fails, it tries `retries` more times, with `pause` before each. Then it
goes on with the next record (`then: skip`; a dead-letter topic costs `takes` once more: `then: dead-letter`),
or the process dies (`then: crash`): its successor, who reads from the last commit, meets the record again.
A share consumer may also give the record back (`then: release`) or refuse it (`then: reject`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import is_member_list, plain, read_list, thousandths, whole
from groupstorm.storms.scenario.setting_names import MAX_PARTITIONS, refuse_unsupported
from groupstorm.units import duration_us

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
        "commits",
        "commit_interval_ms",
        "auto.offset.reset",
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


SKIP, DEAD_LETTER, CRASH = "skip", "dead-letter", "crash"
RELEASE, REJECT = "release", "reject"
#: Acknowledgements of share consumers.
OF_SHARE_GROUPS: Final = (RELEASE, REJECT)
OUTCOMES: Final = (SKIP, DEAD_LETTER, CRASH, *OF_SHARE_GROUPS)

MAX_FACTOR: Final = 1_000
_FIELDS: Final = ("topic", "partition", "offset", "at", "every", "takes", "retries", "pause", "then")
_SLOW_RECORD_FORM: Final = "{partition: 3, offset: 5000, takes: 6m} or {every: 1000, takes: 2s}"


@dataclass(frozen=True, slots=True)
class SlowRecord:
    """One entry. ``work_us``: from the first attempt until the application gives up or has done it."""

    topic: str
    partition: int
    offset: int | None
    at_us: int | None
    every: int | None
    work_us: int
    outcome: str = SKIP

    @property
    def crashes(self) -> bool:
        return self.outcome == CRASH


@dataclass(frozen=True, slots=True)
class SlowRecordList:
    """All entries, and what a file must have to give them."""

    records: tuple[SlowRecord, ...] = ()
    as_written: tuple[Mapping[str, Any], ...] | list[Mapping[str, Any]] = ()


def read_slow_records(where: str, written: Any) -> SlowRecordList:
    """Raises InputError that names the entry and the field."""
    records = read_list(where, written, _SLOW_RECORD_FORM, _slow_record)
    return SlowRecordList(records, [dict(one) for one in written])


def _slow_record(where: str, written: Any) -> SlowRecord:
    if not isinstance(written, Mapping):
        raise InputError(f"{where}: {written!r}: expected {_SLOW_RECORD_FORM}")
    unknown = [str(name) for name in written if name not in _FIELDS]
    if unknown:
        raise InputError(f"{where}: {unknown[0]}: no such field: expected {', '.join(_FIELDS)}")
    places = [name for name in ("offset", "at", "every") if name in written]
    if len(places) != 1 or "takes" not in written or ("partition" in written) == ("every" in written):
        raise InputError(f"{where}: {dict(written)!r}: expected {_SLOW_RECORD_FORM}")
    takes_us = duration_us(f"{where}: takes", written["takes"])
    pause_us = duration_us(f"{where}: pause", written.get("pause", 0))
    retries = whole(f"{where}: retries", written.get("retries", 0), 0, 1_000_000)
    then = written.get("then", SKIP)
    if then not in OUTCOMES:
        raise InputError(f"{where}: then: {then!r} is not one of {', '.join(OUTCOMES)}")
    if then == CRASH and "every" in written:
        raise InputError(f"{where}: then: crash: name one record, by partition and offset or at")
    topic = written.get("topic", "topic-0")
    if not isinstance(topic, str):
        raise InputError(f"{where}: topic: {topic!r}: expected a name")
    attempts_us = takes_us + retries * (pause_us + takes_us)
    return SlowRecord(
        topic,
        whole(f"{where}: partition", written.get("partition", 0), 0, MAX_PARTITIONS),
        whole(f"{where}: offset", written["offset"], 0, 2**62) if "offset" in written else None,
        duration_us(f"{where}: at", written["at"]) if "at" in written else None,
        whole(f"{where}: every", written["every"], 1, 2**62) if "every" in written else None,
        attempts_us + (takes_us if then == DEAD_LETTER else 0),
        then,
    )


@dataclass(frozen=True, slots=True)
class Machine:
    """``factor``, in thousandths: how many times longer work on records takes here."""

    members: frozenset[int]
    factor: int


@dataclass(frozen=True, slots=True)
class Machines:
    """All machines; a member is on one of them at most."""

    machines: tuple[Machine, ...] = ()

    @property
    def as_written(self) -> list[dict[str, Any]]:
        return [{"members": sorted(one.members), "factor": plain(one.factor)} for one in self.machines]

    def factor(self, index: int) -> int:
        """The factor of this member's machine, in thousandths; 1,000 if none is named."""
        return next((one.factor for one in self.machines if index in one.members), 1_000)


def read_machines(where: str, written: Any) -> Machines:
    """Raises InputError that names the machine and the field."""
    if not isinstance(written, list):
        raise InputError(f"{where}: {written!r}: expected a list of {{members: [0, 1], factor: 3}}")
    machines: list[Machine] = []
    for number, one in enumerate(written, start=1):
        place = f"{where}: {number}"
        if not isinstance(one, Mapping) or set(one) != {"members", "factor"}:
            raise InputError(f"{place}: {one!r}: expected {{members: [0, 1], factor: 3}}")
        members = one["members"]
        if not is_member_list(members):
            raise InputError(f"{place}: members: {members!r}: expected a list of numbers of members")
        twice = [m for m in members if any(m in other.members for other in machines)]
        if twice:
            raise InputError(f"{place}: members: {twice[0]} is on another machine already")
        factor = thousandths(f"{place}: factor", one["factor"], MAX_FACTOR)
        if factor == 0:
            raise InputError(f"{place}: factor: 0: expected more than 0")
        machines.append(Machine(frozenset(members), factor))
    return Machines(tuple(machines))
