"""Settings that a trace of the group says: they count where neither the manifest nor the user says others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from groupstorm.storms.scenario.group_protocol_settings import (
    CLASSIC,
    GROUP_PROTOCOL,
    STREAMS_PROTOCOL,
    UNSUPPORTED,
)
from groupstorm.storms.scenario.knowledge import Known

#: More entries of a value than a sentence takes.
_ENTRIES_MAX: Final = 6


def take_measured(
    settings: dict[str, Any], of_trace: Mapping[str, Known], source: str, taken: list[str], other: list[str]
) -> None:
    """Add the settings of the trace ``source`` to those of a manifest.

    A sentence on each that is added goes to ``taken``; to ``other`` if the manifest says another value.
    """
    own = dict(settings)
    protocol = of_trace.get(GROUP_PROTOCOL)
    refused = {} if protocol is None else UNSUPPORTED.get(protocol.value, {})
    if refused is not UNSUPPORTED[STREAMS_PROTOCOL] and not refused.keys().isdisjoint(settings):
        own.setdefault(GROUP_PROTOCOL, CLASSIC)  # whose settings the manifest has
    in_use = own.get(GROUP_PROTOCOL, CLASSIC if protocol is None else protocol.value)
    for name, known in of_trace.items():
        if name in UNSUPPORTED.get(in_use, {}):
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
