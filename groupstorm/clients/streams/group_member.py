"""One thread of Kafka Streams as a member of a streams group (KIP-1071): what a driver talks to.

Kafka 4.4.0 has it in StreamsMembershipManager and StreamsGroupHeartbeatRequestManager. A thread begins to
reconcile as soon as it has another assignment, not in a poll(); it commits in onTasksRevoked, so that the
member itself commits nothing; and it tells its listener whether the group is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from groupstorm.assignors.streams.groups import Task
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.reconciling import Reconciliation, reconciliation
from groupstorm.clients.consumer_group.states import NOT_IN_GROUP, MemberState
from groupstorm.clients.consumer_group.timing import FOREVER_MS
from groupstorm.clients.error_tables import Reaction, reaction
from groupstorm.clients.operations import (
    CallbackKind,
    Disconnected,
    HeartbeatResponse,
    ReportError,
    SendHeartbeat,
)
from groupstorm.clients.streams.topology import Topology
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.streams.member import Tasks, listed
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat, StreamsGroupHeartbeatResponse
from groupstorm.coordinator.streams.topology import Status

#: With one of these the group is not ready: threads hold still (StreamsMembershipManager.isGroupReady).
NOT_READY: Final = frozenset(
    {
        Status.MISSING_SOURCE_TOPICS,
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        Status.MISSING_INTERNAL_TOPICS,
        Status.ASSIGNMENT_DELAYED,
    }
)

Offsets = Mapping[Task, int]
#: The offset of a task whose offset nobody knows yet (Long.MAX_VALUE).
_UNKNOWN: Final = (1 << 63) - 1


class TaskAssignment(NamedTuple):
    """A member's tasks, and whether its group is ready (StreamsRebalanceData.Assignment)."""

    tasks: Tasks = Tasks()
    ready: bool = False


NO_TASKS: Final = TaskAssignment()


class ThreadFacts(NamedTuple):
    """The facts that a thread tells of itself when it joins (StreamsRebalanceData).

    ``process``: the id of its instance; ``endpoint``: application.server; ``offsets`` and ``end_offsets``: of
    the tasks whose state lies on its host, and of those that it restores or follows.
    """

    process: str
    topology: Topology
    offsets: Callable[[], Offsets]
    end_offsets: Callable[[], Offsets]
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] = ()


class StreamsGroupMember(HeartbeatingMember[TaskAssignment]):
    """One thread's membership in a streams group."""

    __slots__ = (
        "_endpoint_epoch",
        "_facts",
        "_offsets_interval_ms",
        "_offsets_sent_ms",
        "_reconciled_tasks",
        "_recovery_lag",
        "_told",
        "_told_ends",
        "_told_offsets",
    )

    def __init__(self, config: ConsumerConfig, member_id: str, facts: ThreadFacts, now_ms: int) -> None:
        super().__init__(config, member_id, NO_TASKS, lambda: False, now_ms)
        self._facts = facts
        #: The tasks that the listener has taken over last.
        self._reconciled_tasks = NO_TASKS
        self._endpoint_epoch = -1
        self._offsets_interval_ms = 0
        self._recovery_lag = 0
        self._forget()

    @property
    def assignment(self) -> TaskAssignment:
        """The tasks that the listener takes over in onTasksAssigned."""
        return self._target.assigned if self._reconciliation is None else self._reconciliation.target.assigned

    @property
    def missed_an_answer(self) -> bool:
        return self._told is None

    # -- heartbeats ------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._told: TaskAssignment | None = None
        self._told_offsets: Offsets | None = None
        self._told_ends: Offsets | None = None
        self._offsets_sent_ms = -1

    def _heartbeat(self, now_ms: int) -> int:
        """A member that is to stay in the group when it closes says nothing (shouldSkipLeaveHeartbeat)."""
        remains = self.state is MemberState.LEAVING and self._remains_silently()
        if remains and not self._poll_timer.expires(now_ms):
            self._heartbeat_skipped()
            return FOREVER_MS
        return super()._heartbeat(now_ms)

    def poll_wait_ms(self, now_ms: int) -> int:
        """A member that cannot send a heartbeat looks again as often as it would try one again."""
        if self.coordinator_known and self.state not in NOT_IN_GROUP:
            return super().poll_wait_ms(now_ms)
        return 0 if self._poll_timer.expires(now_ms) else self._config.retry_backoff_ms

    def _may_send(self, now_ms: int, at_once: bool) -> bool:
        """A heartbeat that leaves at once does not look at the clock.

        Its interval begins at the last look, and the next heartbeat comes so much earlier
        (shouldHeartbeatBeforeIntervalExpires stands before canSendRequest).
        """
        return at_once or self._timing.may_send(now_ms)

    def _heartbeat_fields(self, epoch: int, joins: bool) -> StreamsGroupHeartbeat:
        """HeartbeatState.buildRequestData: a join tells everything, later heartbeats what has changed."""
        config, facts = self._config, self._facts
        request = StreamsGroupHeartbeat(
            config.group_id,
            self.member_id,
            epoch,
            config.group_instance_id,
            endpoint_epoch=self._endpoint_epoch,
            client_id=config.client_id,
        )
        if joins:
            request = request._replace(
                rack=config.client_rack,
                rebalance_timeout_ms=config.rebalance_timeout_ms,
                process=facts.process,
                endpoint=facts.endpoint,
                tags=facts.tags,
                topology=facts.topology.for_group,
                active=(),
                standby=(),
                warmup=(),
            )
            return self._with_offsets(request, everything=True)
        tasks = self._reconciled_tasks
        if tasks == self._told:
            return self._with_offsets(request) if self._offsets_are_due else request
        self._told = tasks
        active, standby, warmup = map(listed, tasks.tasks)
        return self._with_offsets(request._replace(active=active, standby=standby, warmup=warmup))

    @property
    def _offsets_are_due(self) -> bool:
        """The interval is over, or a warm-up task has caught up (hasAtLeastOneHotWarmupTask)."""
        if self._offsets_sent_ms + self._offsets_interval_ms <= self._poll_timer.now_ms:
            return True
        warmups = self._reconciled_tasks.tasks.warmup
        offsets, ends = (self._facts.offsets(), self._facts.end_offsets()) if warmups else ({}, {})
        return any(
            _UNKNOWN not in (offset, end) and end - offset <= self._recovery_lag
            for offset, end in ((offsets.get(task, _UNKNOWN), ends.get(task, _UNKNOWN)) for task in warmups)
        )

    def _with_offsets(
        self, request: StreamsGroupHeartbeat, everything: bool = False
    ) -> StreamsGroupHeartbeat:
        """Add the offsets that the coordinator does not know yet."""
        offsets, ends = self._facts.offsets(), self._facts.end_offsets()
        if everything or offsets != self._told_offsets:
            request = request._replace(task_offsets=_reported(offsets))
            self._told_offsets, self._offsets_sent_ms = offsets, self._poll_timer.now_ms
        if everything or ends != self._told_ends:
            request = request._replace(task_end_offsets=_reported(ends))
            self._told_ends, self._offsets_sent_ms = ends, self._poll_timer.now_ms
        return request

    def answered(self, sent: SendHeartbeat, response: HeartbeatResponse | Disconnected, now_ms: int) -> None:
        if (
            sent.awaited
            and isinstance(response, StreamsGroupHeartbeatResponse)
            and response.error is NO_ERROR
        ):
            self._endpoint_epoch = response.endpoint_epoch
            if response.member_epoch >= 0:
                self._offsets_interval_ms = response.task_offset_interval_ms
                self._recovery_lag = response.acceptable_recovery_lag
        super().answered(sent, response, now_ms)

    def _take(self, response: HeartbeatResponse) -> None:
        assert isinstance(response, StreamsGroupHeartbeatResponse)
        ready = NOT_READY.isdisjoint(code for code, _ in response.statuses)
        active, standby, warmup = response.active, response.standby, response.warmup
        if active is not None and standby is not None and warmup is not None:
            self._assigned(TaskAssignment(Tasks.of_request(active, standby, warmup), ready))
        elif ready != self._target.assigned.ready:
            self._assigned(self._target.assigned._replace(ready=ready))

    # -- reconciliation --------------------------------------------------------------------------

    def _begin(self, in_poll: bool, now_ms: int) -> None:
        """The callbacks alone wait for a poll() (StreamsMembershipManager.maybeReconcile)."""
        if in_poll:
            return
        self._follow(reconciliation(self._target, self._inputs(self._target.assigned.tasks), self.owned))
        self._commit_ended()

    def _inputs(self, tasks: Tasks) -> tuple[TopicPartition, ...]:
        """The partitions that the active tasks read, in order."""
        topology = self._facts.topology
        numbers = topology.of_group(tasks.active)
        return tuple(sorted([part for number in numbers for part in topology.inputs[number]]))

    def _reconciled(self, plan: Reconciliation[TaskAssignment], failed: bool) -> None:
        if not failed:
            self._reconciled_tasks = plan.target.assigned
        super()._reconciled(plan, failed)

    def _join(self) -> None:
        """A target that was not taken over stays, and an answer without tasks goes on with it."""
        target = self._target
        super()._join()
        if self.state is MemberState.JOINING:
            self._current, self._target = self._nothing, target

    def _release(self, then: Callable[[bool], None]) -> None:
        """releaseActiveTasks: a thread out of the group is told that it has lost all, whatever it has."""
        if self.epoch <= 0:
            self._lose("unsubscribe", then)
        elif revoked := self._inputs(self._current.assigned.tasks):
            self._stop(revoked)
            self._call(CallbackKind.REVOKED, revoked, "unsubscribe", then)
        else:
            then(False)

    def _refused(self, error: Error) -> None:
        """A group that is gone is no reason to end for a consumer that leaves it, but for a thread it is."""
        if reaction(error) is Reaction.LEFT:
            self._operations.append(ReportError(error.name))
            self._fail(error.name)
        else:
            super()._refused(error)

    def _fail(self, cause: str) -> None:
        """A leave that is refused for good is never over: close() waits for it until its timeout."""
        if self.state is MemberState.UNSUBSCRIBED:
            self._go(MemberState.FATAL)
        else:
            super()._fail(cause)

    def _lose(self, cause: str, then: Callable[[bool], None]) -> None:
        """onAllTasksLost is called whatever the thread has: it may have standbys alone."""
        self._stop(self.owned)
        self._call(CallbackKind.LOST, self.owned, cause, partial(self._lost, then))

    def _lost(self, then: Callable[[bool], None], failed: bool) -> None:
        if not failed:
            self._reconciled_tasks = NO_TASKS
        then(failed)


def _reported(offsets: Offsets) -> tuple[tuple[str, int, int], ...]:
    return tuple(sorted((subtopology, number, offset) for (subtopology, number), offset in offsets.items()))
