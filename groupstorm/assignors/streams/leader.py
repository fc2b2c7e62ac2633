"""A whole rebalance of a Streams group by its leader, bytes in, bytes out (StreamsPartitionAssignor).

Members report their tasks; consumers of one process form one client. The task assignor places tasks on
clients, `threads` on their consumers. An active task that another consumer still owns is withheld until
that consumer has revoked it, and the assignment asks the new owner to rebalance at once; a standby that the
new owner has of it stays for now. While warm-ups are under way the leader's own client gets the time of the
next probing rebalance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, changelogs, inputs
from groupstorm.assignors.streams.draft import kip441_draft, watched_standbys
from groupstorm.assignors.streams.highavailability import high_availability
from groupstorm.assignors.streams.model import (
    HIGH_AVAILABILITY_COSTS,
    STICKY_COSTS,
    Config,
    Costs,
    Decision,
    Placement,
    Strategy,
    StreamsClient,
    StreamsConsumer,
    StreamsGroup,
    Task,
    client_of,
)
from groupstorm.assignors.streams.rackaware import Optimisation
from groupstorm.assignors.streams.standbys import standby_assignor
from groupstorm.assignors.streams.sticky import fallback_prior, legacy_sticky, public_sticky
from groupstorm.assignors.streams.threads import ThreadTasks, threads_of
from groupstorm.assignors.userdata import TopicPartition, UserDataError
from groupstorm.assignors.userdata.streams import (
    EARLIEST_PROBEABLE_VERSION,
    LATEST_SUPPORTED_VERSION,
    NO_REBALANCE_MS,
    UNKNOWN_OFFSET_SUM,
    WATCH_LIST_VERSION,
    AssignmentInfo,
    AssignorError,
    HostInfo,
    Hosts,
    SubscriptionInfo,
    TaskId,
    decode_subscription_info,
    encode_assignment_info,
)


class TaskAssignor(NamedTuple):
    assign: Callable[[StreamsGroup, Config], Decision]
    costs: Costs


TASK_ASSIGNORS: dict[str, TaskAssignor] = {
    "ha": TaskAssignor(high_availability, HIGH_AVAILABILITY_COSTS),
    "legacy-sticky": TaskAssignor(legacy_sticky, STICKY_COSTS),
    "fallback-prior": TaskAssignor(fallback_prior, HIGH_AVAILABILITY_COSTS),
    "kip441-draft": TaskAssignor(kip441_draft, HIGH_AVAILABILITY_COSTS),
    "sticky": TaskAssignor(public_sticky, STICKY_COSTS),
}


def price(group: StreamsGroup, config: Config, given: Placement) -> Decision:
    return Decision(given)


def optimize_active(group: StreamsGroup, config: Config, given: Placement) -> Decision:
    """Optimize all active tasks of a placement (RackAwareTaskAssignor.optimizeActiveTasks alone). Standbys do
    not count: assignors place them later."""
    for standbys in given.standby:
        standbys.clear()
    cross_rack = CrossRack(_racks(group, config), inputs)
    costs = HIGH_AVAILABILITY_COSTS.configured(config)
    tasks = set().union(*given.active)
    return Decision(given, optimized_cost=Optimisation.of(cross_rack, costs, config).active(given, tasks))


def optimize_standby(group: StreamsGroup, config: Config, given: Placement) -> Decision:
    """Optimize all standbys of a placement (RackAwareTaskAssignor.optimizeStandbyTasks alone)."""
    cross_rack = CrossRack(_racks(group, config), changelogs)
    costs = HIGH_AVAILABILITY_COSTS.configured(config)
    assignor = standby_assignor(group, config)
    cost = Optimisation.of(cross_rack, costs, config).standby(
        given, lambda source, destination, task: assignor.may_move(source, destination, task, given)
    )
    return Decision(given, optimized_cost=cost)


def _racks(group: StreamsGroup, config: Config) -> TaskRacks:
    if config.strategy is Strategy.NONE:
        raise AssignmentRefused("IllegalArgumentException", "Rack aware assignment is disabled")
    return TaskRacks(group)


ON_A_PLACEMENT: dict[str, Callable[[StreamsGroup, Config, Placement], Decision]] = {
    "price": price,
    "optimize-active": optimize_active,
    "optimize-standby": optimize_standby,
}


#: All consumers with versions that the leader does not know form one client.
_FUTURE_PROCESS = UUID("ffffffff-ffff-4fff-bfff-ffffffffffff")
_HOSTS_SINCE = 2


class StreamsMember(NamedTuple):
    user_data: bytes
    owned: tuple[TopicPartition, ...] = ()
    rack: str | None = None


@dataclass(frozen=True)
class Application:
    """The leader's knowledge besides its members.

    ``end_offset_sums``: records in the changelogs of each stateful task; None if they could not be read.
    ``process``: the leader's own. ``tasks`` None: a source topic does not exist. ``watch_list``: the
    assignments of KIP-441's draft name the standbys to watch. ``latest_version``: the latest version of
    SubscriptionInfo that the leader knows; an older release meets newer ones in a rolling upgrade.
    """

    tasks: Sequence[Task] | None
    assignor: str
    config: Config
    process: UUID
    end_offset_sums: Mapping[TaskId, int] | None
    watch_list: bool = False
    latest_version: int = LATEST_SUPPORTED_VERSION


class StreamsAssignment(NamedTuple):
    """One consumer's partitions in order, and its user data."""

    partitions: tuple[TopicPartition, ...]
    info: AssignmentInfo

    @property
    def user_data(self) -> bytes:
        return encode_assignment_info(self.info)


class Rebalance(NamedTuple):
    """``stable``: no follow-up is needed (onAssignmentComplete); ``processes``: of each member."""

    assignments: dict[str, StreamsAssignment]
    stable: bool
    warmups: tuple[tuple[TaskId, UUID], ...] = ()
    processes: Mapping[str, UUID] = {}


def rebalance(application: Application, members: Mapping[str, StreamsMember], now_ms: int) -> Rebalance:
    """Assign; ``members`` in the order of the leader's table. `UserDataError` if bytes cannot be read."""
    latest = application.latest_version
    infos = {name: _read(member.user_data, latest) for name, member in members.items()}
    if any(info.error_code == AssignorError.SHUTDOWN_REQUESTED for info in infos.values()):
        return _failed(members, AssignorError.SHUTDOWN_REQUESTED, latest)
    if application.tasks is None:
        return _failed(members, AssignorError.INCOMPLETE_SOURCE_TOPIC_METADATA, latest)
    used = min([latest, *(info.version for info in infos.values())])
    if used < EARLIEST_PROBEABLE_VERSION and any(info.version > latest for info in infos.values()):
        return _failed(members, AssignorError.ASSIGNMENT_ERROR, latest)
    try:
        return _Leader(application, application.tasks, members, infos).rebalance(now_ms)
    except AssignmentRefused as refusal:
        if refusal.error != "TaskAssignmentException":
            raise
        return _failed(members, AssignorError.ASSIGNMENT_ERROR, latest)


def _read(user_data: bytes, latest: int) -> SubscriptionInfo:
    """A subscription as a leader reads it that knows versions up to ``latest``."""
    info = decode_subscription_info(user_data)
    return info if info.version <= latest else SubscriptionInfo(info.version, info.latest_supported_version)


def _failed(members: Mapping[str, StreamsMember], code: AssignorError, latest: int) -> Rebalance:
    """errorAssignment: no partitions for any member, and the error code."""
    info = AssignmentInfo(latest, latest, error_code=code)
    return Rebalance({name: StreamsAssignment((), info) for name in members}, stable=False)


class _Leader:
    """One rebalance: clients from members, tasks to clients, tasks to consumers, assignments."""

    def __init__(
        self,
        application: Application,
        tasks: Sequence[Task],
        members: Mapping[str, StreamsMember],
        infos: Mapping[str, SubscriptionInfo],
    ) -> None:
        self._application = application
        self._tasks = sorted(tasks, key=lambda task: task.id)
        self._members = members
        latest = application.latest_version
        self._future = any(info.version > latest for info in infos.values())
        self._version = min([latest, *(info.version for info in infos.values())])
        self._supported = min([latest, *(info.latest_supported_version for info in infos.values())])
        self._task_of = {
            (part.topic, part.partition): number
            for number, task in enumerate(self._tasks)
            for part in task.inputs
        }
        self._numbers = {task.id: number for number, task in enumerate(self._tasks)}
        self._owned = {part for member in members.values() for part in member.owned}
        #: Per owned partition of a client the consumer that owns it; of two consumers the later one.
        self._owners: dict[UUID, dict[TopicPartition, str]] = {}
        self._hosts: dict[UUID, HostInfo] = {}
        self._group = self._make_group(infos)

    def _make_group(self, infos: Mapping[str, SubscriptionInfo]) -> StreamsGroup:
        processes: dict[UUID, list[str]] = {}
        for name, info in infos.items():
            future = info.version > self._application.latest_version
            process = _FUTURE_PROCESS if future else info.process
            host = None if process in processes else _host_of(info.endpoint)
            if host is not None:
                self._hosts[process] = host
            processes.setdefault(process, []).append(name)
            self._owners.setdefault(process, {}).update(dict.fromkeys(self._members[name].owned, name))
        known = self._application.end_offset_sums
        ends = {
            number: UNKNOWN_OFFSET_SUM if known is None else known.get(task.id, 0)
            for number, task in enumerate(self._tasks)
            if task.stateful
        }
        clients = [self._client(process, names, infos, ends) for process, names in processes.items()]
        return StreamsGroup.of(self._tasks, clients, ends)

    def _client(
        self,
        process: UUID,
        names: Sequence[str],
        infos: Mapping[str, SubscriptionInfo],
        ends: Mapping[int, int],
    ) -> StreamsClient:
        consumers = [self._consumer(name, infos[name]) for name in names]
        racks = {self._members[name].rack for name in names}
        rack = racks.pop() if len(racks) == 1 else None  # two racks in one process count as none
        return client_of(process, consumers, ends, rack, infos[names[0]].client_tags)

    def _consumer(self, name: str, info: SubscriptionInfo) -> StreamsConsumer:
        owned = (self._task_of.get(part) for part in self._members[name].owned)
        sums = {
            self._numbers[task]: offset for task, offset in info.offset_sums.items() if task in self._numbers
        }
        return StreamsConsumer(name, frozenset(task for task in owned if task is not None), sums)

    def rebalance(self, now_ms: int) -> Rebalance:
        decision = self._decide()
        shared = AssignmentInfo(
            self._version,
            self._supported,
            hosts=self._partitions_by_host(decision.placement.active),
            standby_hosts=self._partitions_by_host(decision.placement.standby),
        )
        assignments: dict[str, StreamsAssignment] = {}
        stable = not self._future
        for client in self._group.clients_as_hashed:
            state = self._group.clients[client]
            due = NO_REBALANCE_MS
            if decision.probing and state.id == self._application.process:
                stable = False
                if not (decision.imbalanced and self._can_tell_imbalance):
                    due = now_ms + self._application.config.probing_rebalance_interval_ms
            watched = watched_standbys(decision, client) if decision.imbalanced else []
            threads = threads_of(self._group, client, decision)
            for consumer, tasks in threads.items():
                given = self._give(client, consumer, tasks, set(watched), shared)
                if given.info.next_rebalance_ms == 0:
                    stable, due = False, NO_REBALANCE_MS
                elif due != NO_REBALANCE_MS:
                    given = given._replace(info=given.info._replace(next_rebalance_ms=due))
                    due = NO_REBALANCE_MS
                assignments[consumer] = given
        processes = {
            consumer.id: client.id for client in self._group.clients for consumer in client.consumers
        }
        return Rebalance(assignments, stable, self._warmups(decision), processes)

    @property
    def _can_tell_imbalance(self) -> bool:
        """Whether all members know the error code for imbalance (KIP-441's draft)."""
        return self._version == LATEST_SUPPORTED_VERSION

    def _warmups(self, decision: Decision) -> tuple[tuple[TaskId, UUID], ...]:
        return tuple(
            (self._tasks[task].id, client.id)
            for kind in (decision.warmups, decision.standby_warmups)
            for client, held in zip(self._group.clients, kind or (), strict=False)
            for task in sorted(held)
        )

    def _decide(self) -> Decision:
        """Without lags `fallback_prior` replaces every assignor of Kafka's except the sticky ones."""
        name = self._application.assignor
        if self._application.end_offset_sums is None and name not in {"legacy-sticky", "sticky"}:
            name = "fallback-prior"
        return TASK_ASSIGNORS[name].assign(self._group, self._application.config)

    def _partitions_by_host(self, held: Sequence[set[int]]) -> Hosts:
        if self._version < _HOSTS_SINCE:
            return {}
        return {
            self._hosts[client.id]: [part for task in sorted(held[number]) for part in self._inputs(task)]
            for number, client in enumerate(self._group.clients)
            if client.id in self._hosts
        }

    def _inputs(self, task: int) -> list[TopicPartition]:
        return [TopicPartition(part.topic, part.partition) for part in self._tasks[task].inputs]

    def _give(
        self, client: int, consumer: str, tasks: ThreadTasks, watched: set[int], shared: AssignmentInfo
    ) -> StreamsAssignment:
        """Active tasks without another owner, standbys, and as standbys the tasks that it has to wait for."""
        withheld = [task for task in tasks.active if self._is_owned_elsewhere(client, task, consumer)]
        running = sorted(
            (part, task) for task in tasks.active if task not in withheld for part in self._inputs(task)
        )
        waiting = [
            task
            for task in sorted(withheld)
            if task in self._group.clients[client].prev_standby and self._tasks[task].stateful
        ]
        standby = [*tasks.standby, *waiting]
        info = shared._replace(
            active=[self._tasks[task].id for _, task in running],
            standby={self._tasks[task].id: self._inputs(task) for task in standby},
            next_rebalance_ms=0 if withheld else NO_REBALANCE_MS,
        )
        watching = [self._tasks[task].id for task in tasks.standby if task in watched]
        if watching and self._can_tell_imbalance:
            info = info._replace(
                version=WATCH_LIST_VERSION,
                error_code=AssignorError.IMBALANCED_ASSIGNMENT,
                watch=watching if self._application.watch_list else (),
            )
        return StreamsAssignment(tuple(part for part, _ in running), info)

    def _is_owned_elsewhere(self, client: int, task: int, consumer: str) -> bool:
        owners = self._owners[self._group.clients[client].id]
        return any(part in self._owned and owners.get(part) != consumer for part in self._inputs(task))


def _host_of(endpoint: str | None) -> HostInfo | None:
    """HostInfo.buildFromEndpoint: ``host:port``; `UserDataError` for anything else."""
    if not endpoint:
        return None
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isascii() or not port.isdigit():
        raise UserDataError(f"endpoint {endpoint!r}: expected host:port")
    return HostInfo(host.strip("[]"), int(port))
