"""A member goes from what it owns to what the broker assigns: commit, revoke, assign.

Kafka has it in AbstractMembershipManager (maybeReconcile) and ConsumerMembershipManager, and for a thread of
Kafka Streams in StreamsMembershipManager.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Generic, NamedTuple, TypeVar

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
    ReportError,
    RunCallback,
    StopProcessing,
)
from groupstorm.coordinator.errors import Error

#: In a commit: the member is not in the group.
NO_EPOCH = -1
#: The type of an assignment by the broker: partitions by topic id, or tasks.
Assigned = TypeVar("Assigned")


class LocalAssignment(NamedTuple, Generic[Assigned]):
    """The assignment, and how often the member's target has changed (LocalAssignment of both managers).

    The count makes the member acknowledge an assignment that has changed and changed back. It is -1 for a
    member that is not in a group, or that has reconciled nothing yet.
    """

    local_epoch: int
    assigned: Assigned

    @property
    def is_none(self) -> bool:
        return self.local_epoch < 0

    def updated_with(self, assigned: Assigned) -> LocalAssignment[Assigned]:
        """The next target: the same if what is assigned has not changed."""
        if not self.is_none and assigned == self.assigned:
            return self
        return LocalAssignment(self.local_epoch + 1, assigned)


class Reconciliation(NamedTuple, Generic[Assigned]):
    """The way from what the member owns to ``assigned``: commit, revoke, assign."""

    target: LocalAssignment[Assigned]
    assigned: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    revoked: tuple[TopicPartition, ...]


def reconciliation(
    target: LocalAssignment[Assigned],
    assigned: tuple[TopicPartition, ...],
    owned: tuple[TopicPartition, ...],
) -> Reconciliation[Assigned]:
    """``assigned``: the partitions of ``target``, in order."""
    before, after = set(owned), set(assigned)
    return Reconciliation(
        target,
        assigned,
        tuple([partition for partition in assigned if partition not in before]),
        tuple([partition for partition in owned if partition not in after]),
    )


class Subscription(NamedTuple):
    """A member's subscription: names of topics, or a regular expression that the broker resolves.

    ``any``: whether it has subscribed. A pattern that the client itself resolves may match no topic.
    """

    topics: frozenset[str] = frozenset()
    regex: str | None = None
    any: bool = True


class _Callback(NamedTuple):
    """A callback that the application has to run. ``then`` takes whether it failed.

    ``assigned``: what the member owns from the moment at which the callback begins; None: as before.
    """

    then: Callable[[bool], None]
    assigned: tuple[TopicPartition, ...] | None = None


class ReconcilingMember(ABC, Generic[Assigned]):
    """State, epoch and assignment of one member, and what its driver has to do."""

    __slots__ = (
        "_backoff",
        "_callbacks",
        "_commit",
        "_config",
        "_current",
        "_has_positions",
        "_nothing",
        "_operations",
        "_reconciliation",
        "_rejoined_meanwhile",
        "_stopped",
        "_subscription",
        "_target",
        "epoch",
        "owned",
        "state",
    )

    def __init__(
        self,
        config: ConsumerConfig,
        nothing: Assigned,
        has_positions: Callable[[], bool],
        backoff: Backoff,
    ) -> None:
        """``nothing``: what a member has that is assigned nothing."""
        self._config = config
        self._has_positions = has_positions
        self._backoff = backoff
        self._operations: list[GroupOperation] = []
        self.state = MemberState.UNSUBSCRIBED
        #: In the next heartbeat, and in commits and fetches of offsets if it is above 0.
        self.epoch = 0
        self._subscription = Subscription(any=False)
        #: The partitions that the application may read, in order.
        self.owned: tuple[TopicPartition, ...] = ()
        #: The commit that a reconciliation waits for.
        self._commit: CommitAttempts | None = None
        self._nothing = LocalAssignment(-1, nothing)
        self._current = self._nothing
        self._target = self._nothing
        self._reconciliation: Reconciliation[Assigned] | None = None
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
        """Begin to reconcile the target, if there is one and no other reconciliation is under way."""
        if self.state is not MemberState.RECONCILING or self._current == self._target:
            return
        if self._reconciliation is not None:
            return
        self._begin(in_poll, now_ms)

    @abstractmethod
    def _begin(self, in_poll: bool, now_ms: int) -> None:
        """Begin to reconcile the target, if that can begin now."""

    def _follow(self, plan: Reconciliation[Assigned]) -> None:
        """The reconciliation begins: what is to be revoked is handed out no more."""
        self._reconciliation, self._rejoined_meanwhile = plan, False
        self._stop(plan.revoked)

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

    def _revoked(self, plan: Reconciliation[Assigned], failed: bool) -> None:
        if failed:
            self._reconciliation = None
        elif not self._aborts():
            then = _Callback(partial(self._reconciled, plan), plan.assigned)
            self._callbacks.append(then)
            self._operations.append(RunCallback(CallbackKind.ASSIGNED, plan.added, "assignment"))

    def _reconciled(self, plan: Reconciliation[Assigned], failed: bool) -> None:
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

    def _assigned(self, assigned: Assigned) -> None:
        """processAssignmentReceived."""
        self._target = self._target.updated_with(assigned)
        if self._current != self._target:
            self._go(MemberState.RECONCILING)
        elif self.state in (MemberState.RECONCILING, MemberState.JOINING):
            self._go(MemberState.STABLE)

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
        self._current = self._nothing
        self._forget_target()

    def _forget_target(self) -> None:
        self._target = self._nothing

    def _own(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.owned = partitions
        self._stopped.intersection_update(partitions)

    def _stop(self, partitions: tuple[TopicPartition, ...]) -> None:
        stops = tuple([partition for partition in partitions if partition not in self._stopped])
        if stops:
            self._stopped.update(stops)
            self._operations.append(StopProcessing(stops))
