"""Records that the coordinator wrote to `__consumer_offsets` during a recording, as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupstorm.imports.lines import Log
from groupstorm.imports.offsets_topic.meaning import CURRENT, EPOCH, GENERATION, MEMBER, MEMBER_GONE
from groupstorm.imports.offsets_topic.segments import OffsetsSegments
from groupstorm.imports.source import with_topic_names

_SEGMENT = Path("__consumer_offsets-0", "00000000000000000000.log")
#: The fields of a record that a recording keeps, by the kind of the record.
_KEPT = {
    EPOCH: ("epoch",),
    MEMBER: ("member_id", "client", "instance"),
    MEMBER_GONE: ("member_id",),
    CURRENT: ("member_id", "epoch", "state", "partitions", "revoking"),
}
_OF_MEMBER = ("member_id", "client", "instance", "host", "partitions")


def written(data: Path) -> dict[str, list[dict[str, Any]]]:
    """Group -> its records in the broker's data folder, with times in milliseconds since 1970."""
    source = OffsetsSegments(Log("written", (data / _SEGMENT,)), 0)
    observations = [*source.observations()]
    assert not source.damage, source.damage
    groups: dict[str, list[dict[str, Any]]] = {}
    for unnamed in observations:
        one = with_topic_names(unnamed, source.topic_names)
        if one.kind == GENERATION:
            fields = {"generation": one.fields["generation"], "leader": one.fields["leader"]}
            fields["members"] = [
                {name: member[name] for name in _OF_MEMBER} for member in one.fields["members"]
            ]
        elif one.kind in _KEPT:
            fields = {name: one.fields[name] for name in _KEPT[one.kind]}
        else:
            continue
        row = {"time_ms": one.time_us // 1000, "kind": one.kind, **fields}
        groups.setdefault(one.group, []).append(row)
    return groups
