"""Descriptions of topologies: the coordinator asks members for them, and a plugin keeps them (KIP-1331).

The plugin is asked between two records: one says that what it holds is uncertain, the other what it holds.

Kafka: GroupCoordinatorService.streamsGroupTopologyDescriptionUpdate, cleanupTopologyBeforeConversion,
deleteStreamsTopologyDescriptions, runOneStreamsTopologyCleanupCycle; StreamsGroupTopologyDescriptionManager.
"""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.coordinator.changes import write_records
from groupstorm.coordinator.effects import Completion, PendingReply, Unwritten, Write
from groupstorm.coordinator.errors import NO_ERROR, Error, Refused, refuse_blank
from groupstorm.coordinator.modern.membership import group_of_kind, sender
from groupstorm.coordinator.records import AppendCause, operation_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.description_plugin import DescriptionPlugin, Outcome, PluginAnswer
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.member import GroupFacts, StreamsGroupRecord
from groupstorm.coordinator.streams.messages import (
    DescriptionNode,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResponse,
    TopologyDescription,
    UpdateTopologyDescription,
    UpdateTopologyDescriptionResponse,
)
from groupstorm.coordinator.streams.topology import Status
from groupstorm.coordinator.timers import DESCRIPTIONS
from groupstorm.coordinator.writes import then

#: The plugin holds no description, or perhaps one (StreamsGroup.STORED_TOPOLOGY_EPOCH_...).
NONE_STORED = -1
UNCERTAIN = -2

_ASKED_SINCE = 1
_SOURCE, _PROCESSOR, _SINK = 1, 2, 3
_PLUGIN_FAILED = "Topology description plugin failed."
#: Errors of an append after which another coordinator goes on.
_MOVED = (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE)


def asks_for_description(
    shard: Shard,
    group: StreamsGroup,
    request: StreamsGroupHeartbeat,
    response: StreamsGroupHeartbeatResponse,
    *,
    may_fail: bool,
) -> bool:
    """Whether the answer asks the member for the topology's description; then a wait begins.

    ``may_fail``: the answer waits for records; if they fail, nobody was asked.
    """
    sent = -1 if request.topology is None else request.topology.epoch
    epoch = sent if group.topology is None else group.topology.epoch
    waits = shard.description_waits
    if (
        shard.description_plugin is None
        or request.version < _ASKED_SINCE
        or epoch in (-1, group.facts.stored_epoch, group.facts.failed_epoch)
        or any(code == Status.STALE_TOPOLOGY for code, _ in response.statuses)
        or waits.is_running(group.name, epoch, shard.now_ms)
    ):
        return False
    before = waits.get(group.name)
    waits.begin(group.name, epoch, shard.now_ms)
    if may_fail:
        shard.since_written.append(Unwritten(lambda _: waits.restore(group.name, before)))
    return True


def handle_update_description(
    shard: Shard, request: UpdateTopologyDescription, reply: PendingReply
) -> Write | None:
    """Give the description to the plugin, and answer when a record says what has become of it."""
    plugin, description = _check(shard, request)

    def ask() -> Write | None:
        answer = plugin.set_topology(request.group, request.topology_epoch, description)
        return _conclude(shard, request, reply, answer)

    group = shard.groups.get(request.group)
    if isinstance(group, StreamsGroup) and group.facts.stored_epoch != UNCERTAIN:
        return _note(shard, group, UNCERTAIN, then(shard, ask))
    return ask()


def _note(
    shard: Shard, group: StreamsGroup, stored_epoch: int, on_written: Completion | None = None
) -> Write:
    """Write which topology's description the plugin holds."""
    return _write_facts(shard, group, group.facts._replace(stored_epoch=stored_epoch), on_written)


def _write_facts(
    shard: Shard, group: StreamsGroup, facts: GroupFacts, on_written: Completion | None
) -> Write:
    record = StreamsGroupRecord(group.name, facts)
    return write_records(shard, group.name, [record], AppendCause.DESCRIPTION, on_written)


def _check(shard: Shard, request: UpdateTopologyDescription) -> tuple[DescriptionPlugin, TopologyDescription]:
    plugin = shard.description_plugin
    if plugin is None:
        raise Refused(
            Error.UNSUPPORTED_VERSION,
            "The broker has no streams group topology description plugin configured.",
        )
    refuse_blank(request.member_id, "MemberId")
    refuse_blank(request.group, "GroupId")
    if request.description is None:
        raise Refused(Error.INVALID_REQUEST, "TopologyDescription can't be null.")
    group = group_of_kind(shard.committed_group(request.group), request.group, StreamsGroup)
    sender(group, request.member_id)
    if request.topology_epoch != group.topology_epoch:
        raise Refused(
            Error.INVALID_REQUEST,
            f"Topology epoch {request.topology_epoch} does not match the group's current topology epoch "
            f"{group.topology_epoch}.",
        )
    _check_nodes(request.description)
    return plugin, request.description


def _check_nodes(description: TopologyDescription) -> None:
    for _, nodes in description.subtopologies:
        for node in nodes:
            _check_kind(node)
    for source, processor in description.global_stores:
        _check_kind(source)
        _check_kind(processor)
        if source.kind != _SOURCE or processor.kind != _PROCESSOR:
            raise Refused(
                Error.INVALID_REQUEST, "Global store must be composed of a source and a processor node."
            )


def _check_kind(node: DescriptionNode) -> None:
    if node.kind not in (_SOURCE, _PROCESSOR, _SINK):
        raise Refused(Error.INVALID_REQUEST, f"Unknown topology node type: {node.kind}")


def _conclude(
    shard: Shard, request: UpdateTopologyDescription, reply: PendingReply, answer: PluginAnswer
) -> Write | None:
    """Write what the plugin says; a failure for now is no record, and the next wait begins."""
    name, epoch = request.group, request.topology_epoch
    waits = shard.description_waits
    if answer.outcome is Outcome.LOST:
        return None
    message = _PLUGIN_FAILED if answer.outcome is Outcome.RAISED else answer.message
    failed = UpdateTopologyDescriptionResponse(Error.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, message)
    if answer.outcome is Outcome.TRANSIENT:
        waits.begin_after_failure(name, epoch, shard.now_ms)
        shard.answer(reply, failed)
        return None
    group = shard.groups.get(name)
    if not isinstance(group, StreamsGroup):
        waits.end(name)
        message = f"Group {name} not found."
        shard.answer(reply, UpdateTopologyDescriptionResponse(Error.GROUP_ID_NOT_FOUND, message))
        return None
    facts, response = group.facts, failed
    if answer.outcome is Outcome.DONE:
        stored = UNCERTAIN if facts.stored_epoch == NONE_STORED else max(facts.stored_epoch, epoch)
        facts, response = facts._replace(stored_epoch=stored), UpdateTopologyDescriptionResponse(NO_ERROR)
    else:
        facts = facts._replace(failed_epoch=max(facts.failed_epoch, epoch))

    def on_written(error: Error | None) -> None:
        if error is None:
            waits.end(name, epoch)
            shard.answer(reply, response)
            return
        if error not in _MOVED:
            waits.begin_after_failure(name, epoch, shard.now_ms)
        shard.answer(reply, UpdateTopologyDescriptionResponse(operation_error(error)))

    return _write_facts(shard, group, facts, on_written)


def must_be_forgotten(shard: Shard, group: object) -> bool:
    """Whether the plugin may hold a description of this group's topology."""
    if shard.description_plugin is None or not isinstance(group, StreamsGroup):
        return False
    return group.facts.stored_epoch != NONE_STORED


def forget_description(
    shard: Shard,
    group: StreamsGroup,
    on_forgotten: Callable[[], Write | None],
    on_failed: Callable[[], None],
) -> Write | None:
    """Let the plugin delete the description of the group, which is empty, and go on."""

    def ask() -> Write | None:
        plugin = shard.description_plugin
        answer = None if plugin is None else plugin.delete_topology(group.name)
        if answer is None or answer.outcome is Outcome.LOST:
            return None
        if answer.outcome is not Outcome.DONE:
            on_failed()
            return None
        shard.description_waits.end(group.name)
        return on_forgotten()

    if group.facts.stored_epoch == UNCERTAIN:
        return ask()
    return _note(shard, group, UNCERTAIN, then(shard, ask))


def schedule_cleaning(shard: Shard) -> None:
    """Set the timer of the next cleaning, which is as often as that of expired offsets."""
    if shard.description_plugin is not None:
        deadline_ms = shard.now_ms + shard.config.offsets_retention_check_interval_ms
        shard.timers.set(DESCRIPTIONS, "", "", deadline_ms)


def on_cleaning_timer(shard: Shard) -> list[Write]:
    """Let the plugin delete the descriptions of empty groups without offsets, which may then expire."""
    schedule_cleaning(shard)
    found = [
        group
        for group in shard.groups.values()
        if isinstance(group, StreamsGroup)
        and not group.members
        and must_be_forgotten(shard, group)
        and group.name not in shard.offsets
        and not shard.pending_offsets.of_group(group.name)
    ]
    writes = [_clean(shard, group.name, group) for group in found]
    return [write for write in writes if write is not None]


def _clean(shard: Shard, name: str, group: StreamsGroup) -> Write | None:
    def forgotten() -> Write | None:
        """A description that was stored meanwhile is uncertain, and goes the next time."""
        group = shard.groups.get(name)
        if not isinstance(group, StreamsGroup) or group.facts.stored_epoch == NONE_STORED:
            return None
        return _note(shard, group, NONE_STORED if group.facts.stored_epoch == UNCERTAIN else UNCERTAIN)

    return forget_description(shard, group, forgotten, lambda: None)
