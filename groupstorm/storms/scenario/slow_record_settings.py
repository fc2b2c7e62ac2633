"""`slow_records`: single records on which an application works for long, or on which it fails.

An entry is one record, `{partition: 3, offset: 5000, takes: 6m}` (or `at: 10m`: the first one that arrives
then), or every so many of all partitions, `{every: 1000, takes: 2s}`. The application works on such a record
for `takes`. If it fails, it tries `retries` more times, with `pause` before each. Then it goes on with the
next record (`then: skip`; a dead-letter topic costs `takes` once more: `then: dead-letter`), or the process
dies (`then: crash`): its successor, who reads from the last commit, meets the record again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import whole
from groupstorm.storms.scenario.setting_types import MAX_PARTITIONS
from groupstorm.units import duration_us

SKIP, DEAD_LETTER, CRASH = "skip", "dead-letter", "crash"
OUTCOMES: Final = (SKIP, DEAD_LETTER, CRASH)

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
    crashes: bool


@dataclass(frozen=True, slots=True)
class SlowRecordList:
    """All entries, and what a file must have to give them."""

    records: tuple[SlowRecord, ...] = ()
    as_written: tuple[Mapping[str, Any], ...] | list[Mapping[str, Any]] = ()


def read_slow_records(where: str, written: Any) -> SlowRecordList:
    """Raises InputError that names the entry and the field."""
    if not isinstance(written, list):
        raise InputError(f"{where}: {written!r}: expected a list of {_FORM}")
    records = tuple(_read(f"{where}: {number}", one) for number, one in enumerate(written, start=1))
    return SlowRecordList(records, [dict(one) for one in written])


def _read(where: str, written: Any) -> SlowRecord:
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
        then == CRASH,
    )
