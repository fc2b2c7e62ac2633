"""StreamsGroupHeartbeat: a member joins with its topology, says what it owns, learns its tasks, or leaves.

Version notes
* 1: recovery lag, whether the topology's description is wanted, MISSING_CLIENT_TAGS (Kafka 4.4.0).

Kafka: GroupCoordinatorService.streamsGroupHeartbeat, GroupMetadataManager.streamsGroupHeartbeat.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from groupstorm.assignors.streams.groups import Task
from groupstorm.coordinator.changes import respond, restart_session, watch_revocation
from groupstorm.coordinator.effects import PendingReply, Unwritten, Write
from groupstorm.coordinator.errors import NO_ERROR, CoordinatorFault, Refused
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from groupstorm.coordinator.modern.membership import find_member
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.group import (
    NO_TASKS,
    StreamsGroup,
    StreamsGroupState,
    TaskOffsets,
    endpoints_of,
)
from groupstorm.coordinator.streams.member import (
    StreamsGroupRecord,
    StreamsMember,
    StreamsTopologyRecord,
    Tasks,
    listed,
)
from groupstorm.coordinator.streams.membership import (
    check_heartbeat,
    check_room,
    check_tasks,
    group_of,
    group_to_join,
    invalid,
    leave_group,
)
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat, StreamsGroupHeartbeatResponse
from groupstorm.coordinator.streams.targets import (
    Holders,
    Reconciliation,
    Targets,
    is_delayed,
    reconcile,
    relabel_remembered,
    remember,
    status_of,
    update_targets,
)
from groupstorm.coordinator.streams.topology import ConfiguredTopology, Status, Topology, configure
from groupstorm.coordinator.streams.topology_descriptions import asks_for_description
from groupstorm.coordinator.timers import STREAMS_DELAY
from groupstorm.turns import Turns

#: First version that is told about missing client tags.
_TAGS_SINCE = 1


def handle_streams_heartbeat(
    shard: Shard, request: StreamsGroupHeartbeat, reply: PendingReply
) -> Turns[Write | None]:
    """Answer with the member's epoch, and with its tasks if they are news to the member."""
    check_heartbeat(shard.config.compatibility, request)
    if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        return leave_group(shard, request, reply)
    return (yield from _heartbeat(shard, request, reply))


class _Noticed(NamedTuple):
    """The group after a heartbeat was compared with it."""

    epoch: int
    configured: ConfiguredTopology
    only_epoch: bool


def _heartbeat(shard: Shard, request: StreamsGroupHeartbeat, reply: PendingReply) -> Turns[Write | None]:
    records: list[Record] = []
    joins = request.member_epoch == JOIN_EPOCH
    group = group_to_join(shard, request.group, records) if joins else group_of(shard, request.group)
    remembered = group.remembered
    try:
        response = yield from _answer(shard, group, request, records)
    except (Refused, CoordinatorFault):
        if not shard.config.compatibility.is_to_the_letter:
            group.remembered = remembered
        raise
    if asks_for_description(shard, group, request, response, may_fail=bool(records)):
        response = response._replace(description_required=True)
    work = _work(group.configured, records)
    yield work
    cause = AppendCause.MEMBER_HEARTBEAT
    write = yield from respond(shard, request, reply, records, cause, response, work)
    yield work
    return write


def _work(configured: ConfiguredTopology | None, records: list[Record]) -> int:
    """The work that a change of the group takes at most, at each step."""
    return len(configured.subtopologies or ()) if records and configured is not None else 0


def _answer(
    shard: Shard, group: StreamsGroup, request: StreamsGroupHeartbeat, records: list[Record]
) -> Turns[StreamsGroupHeartbeatResponse]:
    """Compare the member with the group, compute targets, reconcile the member: each only if it is due."""
    if request.member_epoch == JOIN_EPOCH:
        check_room(shard, group, request)
    holder = group.static_member(request.group_instance_id)
    replaced = holder if holder is not None and holder.member_id != request.member_id else None
    if replaced is not None:
        relabel_remembered(shard, group, replaced.member_id, request.member_id)
    owned = (request.active, request.standby, request.warmup)
    before = find_member(
        group, request, request.member_id, lambda member: member.assigned.contains(owned), records
    )
    after = _updated(shard, request, before)
    statuses: list[tuple[int, str]] = []
    noticed = yield from _notice(shard, group, request, before, after, statuses, records)
    yield _work(noticed.configured, records)
    options = shard.group_options.streams(group.name)
    if not group.members and options.initial_rebalance_delay_ms > 0 and not is_delayed(shard, group.name):
        shard.timers.set(STREAMS_DELAY, group.name, "", shard.now_ms + options.initial_rebalance_delay_ms)
    targets = update_targets(
        shard, group, noticed.epoch, noticed.configured, after, records, only_epoch=noticed.only_epoch
    )
    statuses += status_of(targets)
    yield _work(noticed.configured, records)
    wanted = _assignment(shard, group, targets, noticed).get(after.member_id, NO_TASKS)
    after = _reconcile(
        shard, group, request, after, Targets(targets.epoch, {after.member_id: wanted}), records
    )
    restart_session(shard, group.name, after, options.session_timeout_ms)
    yield _work(noticed.configured, records)
    if request.shutdown and group.shutdown_member is None:
        group.shutdown_member = request.member_id
    return _response(shard, group, request, before, after, replaced, noticed.configured, statuses)


def _updated(shard: Shard, request: StreamsGroupHeartbeat, member: StreamsMember) -> StreamsMember:
    """The member with what the request says; what it leaves out stays, but for the endpoint of a join."""
    forgets = request.member_epoch == JOIN_EPOCH and shard.config.compatibility.is_4_4
    return member.told(
        request,
        "rack",
        "process",
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        endpoint=member.endpoint if request.endpoint is None and not forgets else request.endpoint,
        tags=member.tags if request.tags is None else tuple(sorted(request.tags)),
    )


def _notice(
    shard: Shard,
    group: StreamsGroup,
    request: StreamsGroupHeartbeat,
    before: StreamsMember,
    after: StreamsMember,
    statuses: list[tuple[int, str]],
    records: list[Record],
) -> Turns[_Noticed]:
    """Count the group epoch up if member, topology, topics or options are not as they were."""
    bumps = False
    if after != before:
        records.append(group.member_record(after))
        bumps = request.group_instance_id is None or _differs(before, after)
    topology = _topology(group, request.topology, records)
    yield 0 if request.topology is None else len(topology.subtopologies)
    if group.topology is not None and after.topology_epoch < group.topology.epoch:
        detail = (
            f"The member's topology epoch {after.topology_epoch} is behind the group's topology epoch "
            f"{group.topology.epoch}."
        )
        statuses.append((Status.STALE_TOPOLOGY, detail))
    facts, configured = group.facts, group.configured
    metadata_hash = facts.metadata_hash
    if group.topology is None or configured is None or group.needs_refresh():
        metadata_hash = shard.topics.hash_of(
            {topic for one in topology.subtopologies for topic in one.required}
        )
        yield len(topology.subtopologies)
        bumps = bumps or metadata_hash != facts.metadata_hash
        if group.topology is None or configured is None or metadata_hash != facts.metadata_hash:
            configured = yield from configure(topology, shard.topics)
            _set_configured(shard, group, configured)
    validated_epoch = -1
    if configured.problem is None:
        validated_epoch = topology.epoch
        for tasks in (request.active, request.standby, request.warmup):
            check_tasks(configured, tasks or ())
    _take_offsets(group, request)
    configs = shard.group_options.streams(group.name).assignment_configs
    if not shard.config.compatibility.is_4_4:
        configs = configs[:1]
    bumps = bumps or validated_epoch != facts.validated_epoch or configs != facts.configs
    only_epoch = not bumps and shard.config.compatibility.is_4_4 and _has_strayed(group, after)
    epoch = facts.epoch
    if bumps or only_epoch:
        epoch += 1
        news = facts._replace(
            epoch=epoch, metadata_hash=metadata_hash, validated_epoch=validated_epoch, configs=configs
        )
        records.append(StreamsGroupRecord(group.name, news))
        group.refresh_is_due, group.refresh_epoch = False, epoch
    return _Noticed(epoch, configured, only_epoch)


def _differs(before: StreamsMember, after: StreamsMember) -> bool:
    """Whether a member with an instance id has changed in a way that counts."""
    facts = [(one.topology_epoch, one.rack, one.tags, one.process) for one in (before, after)]
    return facts[0] != facts[1]


def _topology(group: StreamsGroup, sent: Topology | None, records: list[Record]) -> Topology:
    """The group's topology; the first one that is sent becomes it."""
    if sent is not None:
        sent.check()
        if group.topology is None:
            records.append(StreamsTopologyRecord(group.name, sent))
            return sent
        if group.topology.epoch <= sent.epoch and not group.topology.is_same_as(sent):
            raise invalid("Topology updates are not supported yet.")
    if group.topology is None:
        raise CoordinatorFault("The topology is null and the group topology is also null.")
    return group.topology


def _set_configured(shard: Shard, group: StreamsGroup, configured: ConfiguredTopology) -> None:
    """The configured topology is no record, but goes back if the next append fails, and is read after it."""
    before = group.configured
    keep = partial(setattr, group, "read_configured", configured)
    shard.since_written.append(Unwritten(lambda _: setattr(group, "configured", before), keep))
    group.configured = configured
    group.endpoints.clear()


def _take_offsets(group: StreamsGroup, request: StreamsGroupHeartbeat) -> None:
    """Keep the offsets that the member reports; they are no records, and stay if the request fails later."""
    known = group.task_offsets.get(request.member_id, TaskOffsets())
    offsets = known.offsets if request.task_offsets is None else _by_task(request.task_offsets)
    ends = known.end_offsets if request.task_end_offsets is None else _by_task(request.task_end_offsets)
    if request.task_offsets is not None or request.task_end_offsets is not None:
        group.task_offsets[request.member_id] = TaskOffsets(offsets, ends)


def _by_task(reported: tuple[tuple[str, int, int], ...]) -> dict[Task, int]:
    offsets: dict[Task, int] = {}
    for subtopology, number, offset in reported:
        if (subtopology, number) in offsets:
            raise invalid(
                "Task offsets contain a duplicate entry for "
                f"subtopology {subtopology} and partition {number}."
            )
        offsets[subtopology, number] = offset
    return offsets


def _has_strayed(group: StreamsGroup, member: StreamsMember) -> bool:
    """Whether the group is stable and the member has not what its target says."""
    is_stable = group.state is StreamsGroupState.STABLE
    return is_stable and group.target(member.member_id) != member.assigned.without_epochs()


def _assignment(shard: Shard, group: StreamsGroup, targets: Targets, noticed: _Noticed) -> dict[str, Tasks]:
    """The assignment to which members are brought: what is remembered of the epoch, else the targets."""
    if not shard.config.compatibility.is_4_4:
        return dict(targets.by_member)
    is_looked_at = group.state is StreamsGroupState.STABLE and (
        noticed.only_epoch or noticed.epoch == group.epoch
    )
    if is_looked_at:
        assignment = dict(group.targets.items())
    elif group.remembered.epoch == targets.epoch:
        return dict(group.remembered.assignment)
    else:
        assignment = dict(targets.by_member)
    remember(shard, group, targets.epoch, assignment)
    return assignment


def _reconcile(
    shard: Shard,
    group: StreamsGroup,
    request: StreamsGroupHeartbeat,
    member: StreamsMember,
    target: Targets,
    records: list[Record],
) -> StreamsMember:
    """Bring the member towards its target, and write it if that changes the member.

    While the member has tasks to give up, its rebalance timeout runs. It starts again at each change.
    """
    if member.is_reconciled_to(target.epoch):
        return member
    owned = None
    if request.active is not None and request.standby is not None and request.warmup is not None:
        owned = Tasks.of_request(request.active, request.standby, request.warmup)
    holders = Holders(group.active_process, group.standby_processes, group.warmup_processes)
    wanted = target.by_member[member.member_id]
    question = Reconciliation(wanted, target.epoch, holders, owned, shard.config.compatibility.is_4_4)
    reconciled = reconcile(member, question)
    if reconciled == member:
        return reconciled
    records.append(group.current_record(reconciled))
    watch_revocation(shard, group.name, reconciled)
    return reconciled


def _response(
    shard: Shard,
    group: StreamsGroup,
    request: StreamsGroupHeartbeat,
    before: StreamsMember,
    after: StreamsMember,
    replaced: StreamsMember | None,
    configured: ConfiguredTopology,
    statuses: list[tuple[int, str]],
) -> StreamsGroupHeartbeatResponse:
    is_4_4 = shard.config.compatibility.is_4_4
    options = shard.group_options.streams(group.name)
    news = request.member_epoch == JOIN_EPOCH or after.assigned != before.assigned
    _count_endpoints(group, before, after, replaced, news, is_4_4)
    endpoints = None
    if group.endpoint_epoch != request.endpoint_epoch:
        endpoints = endpoints_of(shard, group, after, replaced if is_4_4 else None)
    if configured.problem is not None:
        statuses.append(configured.problem)
    if group.shutdown_member is not None:
        detail = (
            f"Streams group member {group.shutdown_member} encountered a fatal error and requested a "
            "shutdown for the entire application."
        )
        statuses.append((Status.SHUTDOWN_APPLICATION, detail))
    if is_4_4 and request.version >= _TAGS_SINCE:
        statuses += _missing_tags(options.rack_aware_assignment_tags, after)
    active, standby, warmup = (listed(kind) if news else None for kind in after.assigned)
    return StreamsGroupHeartbeatResponse(
        NO_ERROR,
        after.member_id,
        after.epoch,
        options.heartbeat_interval_ms,
        tuple(statuses),
        active,
        standby,
        warmup,
        group.endpoint_epoch if group.name in shard.groups else 0,
        endpoints,
        configured.to_create,
        options.acceptable_recovery_lag if is_4_4 else -1,
        options.task_offset_interval_ms if is_4_4 else 0,
    )


def _count_endpoints(
    group: StreamsGroup,
    before: StreamsMember,
    after: StreamsMember,
    replaced: StreamsMember | None,
    news: bool,
    is_4_4: bool,
) -> None:
    """Count the endpoint epoch up if the list of endpoints has changed. Kafka 4.3.1 counts every answer that
    has tasks."""
    moved = after.endpoint != before.endpoint
    if news or moved or replaced is not None:
        group.endpoints.pop(after.member_id, None)
        if replaced is not None:
            group.endpoints.pop(replaced.member_id, None)
    counts = news and after.endpoint is not None
    if is_4_4:
        counts = moved or (after.assigned != before.assigned and after.endpoint is not None)
    group.endpoint_epoch += counts


def _missing_tags(tags: tuple[str, ...], member: StreamsMember) -> list[tuple[int, str]]:
    known = dict(member.tags)
    missing = [tag for tag in tags if tag not in known]
    if not missing:
        return []
    detail = (
        f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. "
        "Configure them via 'client.tag.<tagKey>' in your Streams config."
    )
    return [(Status.MISSING_CLIENT_TAGS, detail)]
