"""Settings that a manifest does not have: those that a trace of the group says, and questions for the others.

Settings of a trace count where neither the manifest nor the user says others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.objects import Workload
from groupstorm.storms.scenario.setting_names import (
    CLASSIC,
    STREAMS_PROTOCOL,
    UNSUPPORTED,
    How,
    Known,
    Measured,
)

#: More entries of a value than a sentence takes.
_ENTRIES_MAX: Final = 6


def take_measured(
    settings: dict[str, Any], of_trace: Mapping[str, Known], source: str, taken: list[str], other: list[str]
) -> None:
    """Add the settings of the trace ``source`` to those of a manifest.

    A sentence on each that is added goes to ``taken``; to ``other`` if the manifest says another value.
    """
    own = dict(settings)
    protocol = of_trace.get("group.protocol")
    refused = {} if protocol is None else UNSUPPORTED.get(protocol.value, {})
    if refused is not UNSUPPORTED[STREAMS_PROTOCOL] and not refused.keys().isdisjoint(settings):
        own.setdefault("group.protocol", CLASSIC)  # whose settings the manifest has
    in_use = own.get("group.protocol", CLASSIC if protocol is None else protocol.value)
    for name, known in of_trace.items():
        if name in UNSUPPORTED.get(in_use, {}):
            continue
        if name not in own and known.how == How.ASSUMED:
            continue
        if name not in own:
            settings[name] = known.value
            taken.append(f"{name}={written(known.value)} ({known.why})")
        elif not _agree(own[name], known.value):
            there = f"{written(known.value)} in {source} ({known.why})"
            other.append(f"{name}: {there}, {written(own[name])} in the manifest, which counts.")


def _agree(own: Any, measured: Any) -> bool:
    """Whether both say the same; of several assignors a trace names the one that its group chose."""
    if isinstance(own, list) and isinstance(measured, list):
        return set(measured) <= set(own)
    return bool(own == measured)


def written(value: Any) -> str:
    """A value in a sentence, as --set takes it."""
    if isinstance(value, Mapping):
        entries = [f"{key}: {written(each)}" for key, each in value.items()]
        if len(entries) > _ENTRIES_MAX:
            entries[_ENTRIES_MAX:] = [f"{len(entries) - _ENTRIES_MAX:,} more"]
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Question(NamedTuple):
    """A setting that no manifest has: ``meaning`` says what it is, ``example`` how to give it."""

    name: str
    meaning: str
    example: str


#: Settings that no manifest has and for which no client has a default.
_QUESTIONS = (
    _Question("partitions", "partitions of the topic", "partitions=240"),
    _Question("record_rate", "records a second into each partition", "record_rate=100"),
    _Question("start_ms", "from a container's start to its first poll()", "start_ms=25s"),
)
_STATE = _Question(
    "state_bytes",
    "state of a task of Kafka Streams; 0 if it keeps none; if it is no such application, --set "
    "application=consumer",
    "state_bytes=4GB",
)
_MEMBERS = _Question("members", "pods: the manifest gives {} replicas", "members=10")


def ask(
    workload: Workload,
    of_streams: bool,
    replicas: int,
    each: int,
    given: Mapping[str, Any],
    measured: Measured,
) -> None:
    """Raise InputError that asks for all settings that are missing, in one line.

    ``replicas``: of the manifest, 0 if it does not say; ``each``: the consumers of a pod; ``given``: all
    answers, those of the trace ``measured`` too.
    """
    questions = (*_QUESTIONS, *[_STATE] * of_streams)
    missing = [question for question in questions if question.name not in given]
    if "topic_partitions" in given:
        missing = [question for question in missing if question.name != "partitions"]
    if not replicas and "members" not in given:
        meaning = _MEMBERS.meaning.format("no" if workload.replicas is None else workload.replicas)
        meaning += f", each with {each} consumers, which members counts" if each > 1 else ""
        missing.insert(0, _MEMBERS._replace(meaning=meaning, example=f"members={10 * each}"))
    if missing:
        asked = "; ".join(
            f"{one.name} ({': '.join([one.meaning, *filter(None, [measured.unknown.get(one.name)])])})"
            for one in missing
        )
        options = " ".join(f"--set {one.example}" for one in missing)
        silent = f"neither it nor {measured.source} says" if measured.source else "a manifest does not say"
        raise InputError(f"{workload}: {silent} {asked}: give {options}")
