"""Regular expressions of a group are resolved after the request that asked for it, as Kafka does in the
background (GroupMetadataManager.handleRegularExpressionsResult). Other requests may come in between."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.coordinator.consumer.changes import write_records
from groupstorm.coordinator.consumer.regexes import resolve
from groupstorm.coordinator.consumer.subscriptions import take_resolved
from groupstorm.coordinator.pending_writes import Write
from groupstorm.coordinator.records import AppendCause
from groupstorm.coordinator.shard import Shard
from groupstorm.trace.events.group_states import Cause
from groupstorm.turns import Turns


def resolve_regexes(
    shard: Shard, name: str, regexes: tuple[str, ...], may_match: Callable[[str], bool] | None
) -> Turns[Write | None]:
    """The write of the topics that the expressions match; None if the group is gone or nothing is new."""
    resolved = yield from resolve(shard.topics, regexes, shard.now_ms, may_match)
    group = shard.consumer_group(name)
    if group is None:
        return None
    records = take_resolved(shard, group, resolved)
    return (
        write_records(shard, name, records, AppendCause.REGEXES_RESOLVED, why=Cause.RESOLVED)
        if records
        else None
    )
