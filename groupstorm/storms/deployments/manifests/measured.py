"""Settings that a trace of the group says: they count where neither the manifest nor the user says others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from groupstorm.storms.scenario.group_protocol_settings import CLASSIC, GROUP_PROTOCOL, UNSUPPORTED
from groupstorm.storms.scenario.knowledge import Known, Measured

_TOPICS: Final = frozenset({"partitions", "topics", "topic_partitions"})
#: More entries of a value than a sentence takes.
_ENTRIES_MAX: Final = 6


def usable(measured: Measured, stated: Mapping[str, Any]) -> dict[str, Known]:
    """The settings of the trace that count beside ``stated``."""
    found = {name: known for name, known in measured.settings.items() if name not in stated}
    if not _TOPICS.isdisjoint(stated):
        found.pop("topic_partitions", None)
        rate = found.get("record_rate")
        if rate is not None and isinstance(rate.value, Mapping):  # of topics that are not those of the trace
            del found["record_rate"]
    return found


class Taken(NamedTuple):
    """Sentences: on settings that a trace has filled in, and on those that the manifest says otherwise."""

    measured: list[str]
    findings: list[str]


def take_measured(
    settings: dict[str, Any], of_trace: Mapping[str, Known], source: str, assumed: Collection[str]
) -> Taken:
    """Add the settings of the trace ``source`` to those of a manifest.

    ``assumed``: those of ``settings`` that the manifest does not say.
    """
    taken = Taken([], [])
    protocol = of_trace.get(GROUP_PROTOCOL)
    refused = {} if protocol is None else UNSUPPORTED.get(protocol.value, {})
    stated = [name for name in refused if name in settings]
    if protocol is not None and stated and GROUP_PROTOCOL not in settings:
        taken.findings.append(
            f"{GROUP_PROTOCOL}: {protocol.value} in {source}, but the manifest has {stated[0]}, which such a "
            f"consumer refuses: the figures are those of {CLASSIC}."
        )
        of_trace = {name: known for name, known in of_trace.items() if name != GROUP_PROTOCOL}
    in_use = settings.get(GROUP_PROTOCOL) or (CLASSIC if stated or protocol is None else protocol.value)
    for name, known in of_trace.items():
        own = settings.get(name)
        if name in UNSUPPORTED.get(in_use, {}):
            continue
        if own is None or name in assumed:
            settings[name] = known.value
            taken.measured.append(f"{name}={written(known.value)} ({known.why})")
        elif not _agree(own, known.value):
            taken.findings.append(
                f"{name}: {written(known.value)} in {source} ({known.why}), {written(own)} in the manifest, "
                "which counts."
            )
    return taken


def _agree(own: Any, measured: Any) -> bool:
    """Of several assignors a trace names the one that its group chose."""
    if isinstance(own, list) and isinstance(measured, list):
        return set(measured) <= set(own)
    return bool(own == measured)


def written(value: Any) -> str:
    """A value in a sentence, as --set takes it."""
    if isinstance(value, Mapping):
        entries = [f"{key}: {written(each)}" for key, each in value.items()]
        more = len(entries) - _ENTRIES_MAX
        if more > 0:
            entries[_ENTRIES_MAX:] = [f"{more:,} more"]
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
