"""A member of a consumer group goes from what it owns to what the broker assigns: commit, revoke, assign.

Kafka 4.3.1 has it in AbstractMembershipManager (maybeReconcile) and ConsumerMembershipManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.states import (
    REACHED_FROM,
    InvalidTransition,
    MemberState,
)
from groupstorm.clients.consumer_group.timing import FOREVER_MS, Backoff, CommitAttempts
from groupstorm.clients.operations import (
    CallbackKind,
    CommitWithEpoch,
    Disconnected,
    GroupOperation,
    RefreshTopics,
    ReportError,
    RunCallback,
    StopProcessing,
)
from groupstorm.coordinator.errors import Error

#: In a commit: the member is not in the group.
NO_EPOCH = -1
#: Topic id -> its partitions, in order.
Partitions = Mapping[UUID, tuple[int, ...]]


class LocalAssignment(NamedTuple):
    """Partitions, and how often the member's target has changed (AbstractMembershipManager.LocalAssignment).

    The count makes the member acknowledge an assignment that has changed and changed back.
    """

    local_epoch: int
    partitions: Partitions

    def updated_with(self, partitions: Partitions) -> LocalAssignment:
        """The next target: the same if the partitions have not changed."""
        if self is not NO_ASSIGNMENT and partitions == self.partitions:
            return self
        return LocalAssignment(self.local_epoch + 1, partitions)


#: The assignment of a member that is not in a group, or that has reconciled nothing yet.
NO_ASSIGNMENT: Final = LocalAssignment(-1, {})


class Reconciliation(NamedTuple):
    """The way from what the member owns to ``assigned``: commit, revoke, assign."""

    target: LocalAssignment
    assigned: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    revoked: tuple[TopicPartition, ...]


def reconciliation(
    target: LocalAssignment, names: Mapping[UUID, str], owned: tuple[TopicPartition, ...]
) -> Reconciliation:
    """``names``: of every topic of ``target``."""
    assigned = sorted(
        TopicPartition(names[topic], number)
        for topic, numbers in target.partitions.items()
        for number in numbers
    )
    before, after = set(owned), set(assigned)
    return Reconciliation(
        target,
        tuple(assigned),
        tuple([partition for partition in assigned if partition not in before]),
        tuple([partition for partition in owned if partition not in after]),
    )


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's subscription: names of topics, or a regular expression that the broker resolves."""

    topics: frozenset[str] = frozenset()
    regex: str | None = None

    @property
    def any(self) -> bool:
        return bool(self.topics) or self.regex is not None


class _Callback(NamedTuple):
    """A callback that the application has to run. ``then`` takes whether it failed.

    ``assigned``: what the member owns from the moment at which the callback begins; None: as before.
    """

    then: Callable[[bool], None]
    assigned: tuple[TopicPartition, ...] | None = None


class ReconcilingMember:
    """State, epoch and assignment of one member, and what its driver has to do."""

    __slots__ = (
        "_backoff",
        "_callbacks",
        "_commit",
        "_config",
        "_current",
        "_has_positions",
        "_names",
        "_operations",
        "_reconciliation",
        "_rejoined_meanwhile",
        "_stopped",
        "_subscription",
        "_target",
        "_topic_names",
        "epoch",
        "owned",
        "state",
    )

    def __init__(
        self,
        config: ConsumerConfig,
        topic_names: Callable[[], Mapping[UUID, str]],
        has_positions: Callable[[], bool],
        backoff: Backoff,
    ) -> None:
        self._config = config
        self._topic_names = topic_names
        self._has_positions = has_positions
        self._backoff = backoff
        self._operations: list[GroupOperation] = []
        self.state = MemberState.UNSUBSCRIBED
        #: In the next heartbeat, and in commits and fetches of offsets if it is above 0.
        self.epoch = 0
        self._subscription = Subscription()
        #: The partitions that the application may read, in order.
        self.owned: tuple[TopicPartition, ...] = ()
        #: The commit that a reconciliation waits for.
        self._commit: CommitAttempts | None = None
        self._current = NO_ASSIGNMENT
        self._target = NO_ASSIGNMENT
        self._names: dict[UUID, str] = {}
        self._reconciliation: Reconciliation | None = None
        self._rejoined_meanwhile = False
        self._callbacks: deque[_Callback] = deque()
        self._stopped: set[TopicPartition] = set()

    def operations(self) -> list[GroupOperation]:
        """The operations that the driver has to carry out, oldest first; each is handed out once."""
        taken = self._operations[:]
        self._operations.clear()
        return taken

    @property
    def waits_for_poll(self) -> bool:
        """Whether the next poll() brings the member further: it begins a reconciliation, or joins again."""
        waits = self.state is MemberState.RECONCILING and self._reconciliation is None
        return (waits and self._current != self._target) or self.state is MemberState.STALE

    @property
    def assigned_topic_ids(self) -> frozenset[UUID]:
        """The topics of the assignment that the broker sent last."""
        return frozenset(self._target.partitions)

    def callback_begins(self) -> bool:
        """The application begins the oldest callback: onPartitionsAssigned finds the new partitions owned.

        False: the member has unsubscribed meanwhile, and poll() throws in place of onPartitionsAssigned.
        """
        assigned = self._callbacks[0].assigned
        if assigned is not None:
            if not self._subscription.any:
                self._operations.append(ReportError("IllegalArgumentException"))
                self.callback_ended(failed=True)
                return False
            self._own(assigned)
        return True

    def callback_ended(self, failed: bool = False) -> None:
        """The oldest callback has returned. ``failed``: the listener has thrown.

        A member that has joined again, while the callback of an unsubscribe() still ran, cannot leave:
        Kafka's client drops its exception.
        """
        with suppress(InvalidTransition):
            self._callbacks.popleft().then(failed)

    def _reconcile(self, in_poll: bool, now_ms: int) -> None:
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
            self._commit = CommitAttempts(now_ms, deadline_ms, self._backoff)
        else:
            self._commit_ended()

    def _send_commit(self, now_ms: int) -> int:
        """Ask for a commit if it is time. Returns how long until the next attempt."""
        commit = self._commit
        if commit is None:
            return FOREVER_MS
        if commit.expired(now_ms):
            self._commit = None
            self._commit_ended()
            return FOREVER_MS
        if commit.wait_ms(now_ms) == 0:
            commit.in_flight = True
            self._operations.append(CommitWithEpoch(self.epoch if self.epoch > 0 else NO_EPOCH))
        return commit.wait_ms(now_ms)

    def committed(self, result: Error | Disconnected, now_ms: int) -> None:
        """The result of `CommitWithEpoch`: the first error of its response."""
        commit = self._commit
        assert commit is not None
        if not commit.goes_on(result, self.epoch, now_ms) or not self._has_positions():
            self._commit = None
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
    def _has_nothing_to_acknowledge(self) -> bool:
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
