"""How a member of a consumer group goes from what it owns to what the broker assigns: commit, revoke, assign.

Kafka 4.3.1 has it in AbstractMembershipManager (maybeReconcile) and ConsumerMembershipManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.assignment import (
    NO_ASSIGNMENT,
    LocalAssignment,
    Partitions,
    Reconciliation,
    reconciliation,
)
from groupstorm.clients.consumer_group.commits import CommitAttempts
from groupstorm.clients.consumer_group.heartbeat_fields import Subscription
from groupstorm.clients.consumer_group.operations import (
    CommitWithEpoch,
    Operation,
    RefreshTopics,
)
from groupstorm.clients.consumer_group.states import (
    REACHED_FROM,
    InvalidTransition,
    MemberState,
)
from groupstorm.clients.consumer_group.timing import FOREVER_MS, Backoff
from groupstorm.clients.operations import (
    CallbackKind,
    Disconnected,
    RunCallback,
    StopProcessing,
)
from groupstorm.coordinator.errors import Error

#: In a commit: the member is not in the group.
NO_EPOCH = -1


class _Callback(NamedTuple):
    """A callback that the application has to run. ``then`` takes whether it failed.

    ``assigned``: what the member owns from the moment at which the callback begins; None: as before.
    """

    then: Callable[[bool], None]
    assigned: tuple[TopicPartition, ...] | None = None


class ReconcilingMember:
    """State, epoch and assignment of one member. ``operations`` takes what the driver has to do."""

    __slots__ = (
        "_backoff",
        "_callbacks",
        "_config",
        "_current",
        "_has_positions",
        "_names",
        "_operations",
        "_reconciliation",
        "_rejoined_meanwhile",
        "_stopped",
        "_target",
        "_topic_names",
        "commit",
        "epoch",
        "owned",
        "state",
        "subscription",
    )

    def __init__(
        self,
        config: ConsumerConfig,
        topic_names: Callable[[], Mapping[UUID, str]],
        has_positions: Callable[[], bool],
        backoff: Backoff,
        operations: list[Operation],
    ) -> None:
        self._config = config
        self._topic_names = topic_names
        self._has_positions = has_positions
        self._backoff = backoff
        self._operations = operations
        self.state = MemberState.UNSUBSCRIBED
        #: In the next heartbeat.
        self.epoch = 0
        self.subscription = Subscription()
        #: What the application may read, in order.
        self.owned: tuple[TopicPartition, ...] = ()
        #: The commit that a reconciliation waits for.
        self.commit: CommitAttempts | None = None
        self._current = NO_ASSIGNMENT
        self._target = NO_ASSIGNMENT
        self._names: dict[UUID, str] = {}
        self._reconciliation: Reconciliation | None = None
        self._rejoined_meanwhile = False
        self._callbacks: deque[_Callback] = deque()
        self._stopped: set[TopicPartition] = set()

    @property
    def acknowledged(self) -> LocalAssignment:
        """The assignment that the next heartbeat tells."""
        return self._current

    @property
    def reconciliation_due(self) -> bool:
        """Whether there is a target to reconcile, and no reconciliation is under way."""
        waits = self.state is MemberState.RECONCILING and self._reconciliation is None
        return waits and self._current != self._target

    @property
    def target_topics(self) -> frozenset[UUID]:
        """The topics of the assignment that the broker sent last."""
        return frozenset(self._target.partitions)

    def callback_begins(self) -> None:
        """The application runs the oldest callback: onPartitionsAssigned finds the new partitions owned."""
        assigned = self._callbacks[0].assigned
        if assigned is not None:
            if not self.subscription.any:
                raise InvalidTransition("the member has unsubscribed")
            self._own(assigned)

    def callback_ended(self, failed: bool) -> None:
        self._callbacks.popleft().then(failed)

    def reconcile(self, in_poll: bool, now_ms: int) -> None:
        """Begin to reconcile the target, if there is one and no other reconciliation is under way.

        Commits and revocations begin in a poll(): only there are the application's positions final.
        """
        if self.state is not MemberState.RECONCILING or self._current == self._target:
            return
        if self._reconciliation is not None:
            return
        known = self._resolve()
        target = LocalAssignment(self._target.local_epoch, known)
        if self._current is not NO_ASSIGNMENT and known == self._current.partitions:
            # the topics that are new have no name yet: the member acknowledges what it has
            self._current = target
            self._go(MemberState.ACKNOWLEDGING)
            return
        plan = reconciliation(target, self._names, self.owned)
        commits = self._config.enable_auto_commit
        if not in_poll and (commits or plan.revoked):
            return
        self._reconciliation, self._rejoined_meanwhile = plan, False
        self._stop(plan.revoked)
        if commits and self._has_positions():
            deadline_ms = now_ms + self._config.rebalance_timeout_ms
            self.commit = CommitAttempts(now_ms, deadline_ms, self._backoff)
        else:
            self._commit_ended()

    def send_commit(self, now_ms: int) -> int:
        """Ask for a commit if it is time. Returns how long until the next attempt."""
        commit = self.commit
        if commit is None:
            return FOREVER_MS
        if commit.expired(now_ms):
            self.commit = None
            self._commit_ended()
            return FOREVER_MS
        if commit.wait_ms(now_ms) == 0:
            commit.in_flight = True
            self._operations.append(CommitWithEpoch(self.epoch if self.epoch > 0 else NO_EPOCH))
        return commit.wait_ms(now_ms)

    def committed(self, result: Error | Disconnected, now_ms: int) -> None:
        commit = self.commit
        assert commit is not None
        if not commit.goes_on(result, self.epoch, now_ms) or not self._has_positions():
            self.commit = None
            self._commit_ended()

    def _commit_ended(self) -> None:
        """The commit has succeeded, or has failed for good: the reconciliation goes on in either case."""
        plan = self._reconciliation
        if plan is None or self._aborts():
            return
        revoked = tuple([one for one in plan.revoked if one in self.owned])
        if revoked:
            self._call(CallbackKind.REVOKED, revoked, "assignment", partial(self._revoked, plan))
        else:
            self._revoked(plan, False)

    def _revoked(self, plan: Reconciliation, failed: bool) -> None:
        if failed:
            self._reconciliation = None
        elif not self._aborts():
            then = _Callback(partial(self._reconciled, plan), plan.assigned)
            self._callbacks.append(then)
            self._operations.append(RunCallback(CallbackKind.ASSIGNED, plan.added, "assignment"))
            topics = {partition.topic for partition in plan.assigned}
            self._names = {topic: name for topic, name in self._names.items() if name in topics}

    def _reconciled(self, plan: Reconciliation, failed: bool) -> None:
        """If the listener has failed, the member stays RECONCILING and begins anew."""
        if failed:
            self._reconciliation = None
        elif not self._aborts():
            self._current = plan.target
            self._go(MemberState.ACKNOWLEDGING)
            self._reconciliation = None

    def _aborts(self) -> bool:
        """The member has left, was fenced or has joined again since the reconciliation began."""
        aborts = self.state is not MemberState.RECONCILING or self._rejoined_meanwhile
        if aborts:
            self._reconciliation = None
            self._rejoined_meanwhile = False
        return aborts

    def _assigned(self, partitions: Partitions) -> None:
        """processAssignmentReceived."""
        if self._is_nothing_new(partitions):
            self._go(MemberState.STABLE)
            return
        self._target = self._target.updated_with(partitions)
        if self._current != self._target:
            self._go(MemberState.RECONCILING)
        elif self.state in (MemberState.RECONCILING, MemberState.JOINING):
            self._go(MemberState.STABLE)

    @property
    def has_nothing_to_acknowledge(self) -> bool:
        """The member has joined and got no partitions, which its client library does not acknowledge."""
        return self.state is MemberState.STABLE and self._is_nothing_new({})

    def _is_nothing_new(self, partitions: Partitions) -> bool:
        silent = not self._config.profile.acknowledges_nothing
        return silent and not partitions and self._current is NO_ASSIGNMENT

    def _resolve(self) -> Partitions:
        """The part of the target whose topics have a name. Names of owned topics stay known."""
        names = self._topic_names()
        for topic in self._target.partitions:
            if topic in names:
                self._names[topic] = names[topic]
        known = {topic: numbers for topic, numbers in self._target.partitions.items() if topic in self._names}
        if len(known) < len(self._target.partitions):
            self._operations.append(RefreshTopics())
        return known

    def _go(self, state: MemberState) -> None:
        if state is not self.state and self.state not in REACHED_FROM[state]:
            raise InvalidTransition(f"from {self.state.value} to {state.value}")
        self.state = state

    def _call(
        self,
        kind: CallbackKind,
        partitions: tuple[TopicPartition, ...],
        cause: str,
        then: Callable[[bool], None],
    ) -> None:
        self._callbacks.append(_Callback(then))
        self._operations.append(RunCallback(kind, partitions, cause))

    def _clear_assignment(self) -> None:
        self._own(())
        self._current = NO_ASSIGNMENT
        self._forget_target()

    def _forget_target(self) -> None:
        self._target = NO_ASSIGNMENT
        self._names.clear()

    def _own(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.owned = partitions
        self._stopped.intersection_update(partitions)

    def _stop(self, partitions: tuple[TopicPartition, ...]) -> None:
        stops = tuple([partition for partition in partitions if partition not in self._stopped])
        if stops:
            self._stopped.update(stops)
            self._operations.append(StopProcessing(stops))
