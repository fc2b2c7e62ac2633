"""`slow_records` and `machines`: single records, and machines, that an application works on for long.

An entry of `slow_records` is one record, `{partition: 3, offset: 5000, takes: 6m}` (or `at: 10m`: the first
one that arrives then), or every so many of all partitions, `{every: 1000, takes: 2s}`. The application works
on such a record for `takes`. If it fails, it tries `retries` more times, with `pause` before each. Then it
goes on with the next record (`then: skip`; a dead-letter topic costs `takes` once more: `then: dead-letter`),
or the process dies (`then: crash`): its successor, who reads from the last commit, meets the record again.
A share consumer may also give the record back (`then: release`) or refuse it (`then: reject`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import is_member_list, plain, read_list, thousandths, whole
from groupstorm.storms.scenario.setting_names import MAX_PARTITIONS
from groupstorm.units import duration_us

SKIP, DEAD_LETTER, CRASH = "skip", "dead-letter", "crash"
RELEASE, REJECT = "release", "reject"
#: Acknowledgements of share consumers.
OF_SHARE_GROUPS: Final = (RELEASE, REJECT)
OUTCOMES: Final = (SKIP, DEAD_LETTER, CRASH, *OF_SHARE_GROUPS)

MAX_FACTOR: Final = 1_000
_FIELDS: Final = ("topic", "partition", "offset", "at", "every", "takes", "retries", "pause", "then")
_FORM: Final = "{partition: 3, offset: 5000, takes: 6m} or {every: 1000, takes: 2s}"


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
    records = read_list(where, written, _FORM, _slow_record)
    return SlowRecordList(records, [dict(one) for one in written])


def _slow_record(where: str, written: Any) -> SlowRecord:
    if not isinstance(written, Mapping):
        raise InputError(f"{where}: {written!r}: expected {_FORM}")
    unknown = [str(name) for name in written if name not in _FIELDS]
    if unknown:
        raise InputError(f"{where}: {unknown[0]}: no such field: expected {', '.join(_FIELDS)}")
    places = [name for name in ("offset", "at", "every") if name in written]
    if len(places) != 1 or "takes" not in written or ("partition" in written) == ("every" in written):
        raise InputError(f"{where}: {dict(written)!r}: expected {_FORM}")
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
