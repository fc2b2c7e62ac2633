"""A member of a group of the newer protocols, as a value: every change makes a new one. Its states, and
the steps that bring it towards its target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Self, TypeVar

#: Member epochs with a meaning of their own (ConsumerGroupHeartbeatRequest, StreamsGroupHeartbeatRequest).
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


class MemberState(StrEnum):
    """A member is at its target or on the way to it (Kafka: MemberState)."""

    #: The member has all that it may have at its epoch.
    STABLE = "STABLE"
    #: The member has to give partitions up and has not said yet that it did.
    UNREVOKED_PARTITIONS = "UNREVOKED_PARTITIONS"
    #: The member waits for partitions that others have not given up yet.
    UNRELEASED_PARTITIONS = "UNRELEASED_PARTITIONS"


class TaskState(StrEnum):
    """A member of a streams group is at its target or on the way to it (Kafka: streams.MemberState)."""

    STABLE = "STABLE"
    UNREVOKED_TASKS = "UNREVOKED_TASKS"
    UNRELEASED_TASKS = "UNRELEASED_TASKS"


#: Looked up on the class, a member costs as much as a call before Python 3.12.
_STABLE: Final = (MemberState.STABLE, TaskState.STABLE)

#: The states in which a member's rebalance timeout runs.
UNREVOKED = (MemberState.UNREVOKED_PARTITIONS, TaskState.UNREVOKED_TASKS)

S = TypeVar("S", bound=StrEnum)


def state_after(states: type[S], must_revoke: bool, others_hold: bool) -> S:
    """The state of a member after it has advanced towards its target (CurrentAssignmentBuilder).

    ``must_revoke``: it still owns some of what it has to give up; ``others_hold``: others have some of what
    its target gives it.
    """
    stable, unrevoked, unreleased = states
    if must_revoke:
        return unrevoked
    return unreleased if others_hold else stable


@dataclass(frozen=True, slots=True)
class ModernMember:
    """The facts about a member that do not depend on what is assigned."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState | TaskState = MemberState.STABLE
    instance: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    assigned: Any = None
    revoking: Any = None

    @property
    def subscription(self) -> tuple[object, ...]:
        """The facts that the member tells of itself and that may change the targets."""
        return ()

    @property
    def speaks_classic(self) -> bool:
        """Whether the member speaks the classic protocol."""
        return False

    def told(self, request: Any, *fields: str, **others: Any) -> Self:
        """The member with what its request says of it; None, and -1 for a time, say nothing.

        ``fields``: those that request and member have under one name. ``others``: what else is new.
        """
        instance = getattr(request, "group_instance_id", None)
        said = {"instance": instance, **{name: getattr(request, name) for name in fields}}
        news = {name: value for name, value in said.items() if value is not None}
        if getattr(request, "rebalance_timeout_ms", -1) != -1:
            news["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        return replace(self, client_id=request.client_id, client_host=request.client_host, **news, **others)

    def gone_for_a_while(self) -> Self:
        """The static member that has left and keeps what is assigned to it."""
        return replace(self, epoch=LEAVE_STATIC_EPOCH)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether the member has everything of the target with this epoch."""
        return self.state in _STABLE and self.epoch == epoch

    def advances(self, target_epoch: int, still_owns: bool) -> bool:
        """Whether a heartbeat brings the member further towards its target (CurrentAssignmentBuilder).

        ``still_owns``: it may own some of what it has to give up. Kafka's state UNKNOWN, for records of newer
        brokers, cannot occur here.
        """
        if self.state in UNREVOKED:
            return not still_owns
        return self.state not in _STABLE or self.epoch != target_epoch

    def with_current(self, current: Any) -> Self:
        """The member with what a record says that reconciliation has determined."""
        return replace(self, **current._asdict())
