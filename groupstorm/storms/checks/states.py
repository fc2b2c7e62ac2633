"""The group's states, generations, epochs and holders, by the rows of the coordinator.

Each change of state begins where the last one ended and is one of Kafka's; each round has a generation of its
own. A member of a consumer group (KIP-848) holds a partition from the `member_reconciled` row that gives it
the partition until the row in which the partition is neither assigned nor being revoked, or until the member
is out of the group.
"""

from __future__ import annotations

from typing import Final

from groupstorm.storms.checks.verdicts import (
    EPOCHS,
    GENERATIONS,
    NO_OPERATION_FAILED,
    REVOCATIONS,
    STATES,
    TARGETS,
    TIMER_OUTLIVED_GROUP,
    TRANSITIONS,
    TWO_HOLDERS,
    UPGRADED_TOO_EARLY,
    WRITE_OUTLIVED_MEMBER,
    Verdicts,
    listed,
)
from groupstorm.trace.events import coordinator as events

_EMPTY: Final = "Empty"
_PREPARING: Final = "PreparingRebalance"
_COMPLETING: Final = "CompletingRebalance"
_STABLE: Final = "Stable"

_MEMBERS_CHANGE: Final = ("new-member", "pending-member", "static-member")
_MEMBERS_GO: Final = ("left", "session-expired", "sync-timeout")

#: (state before, cause) -> state after, as GroupMetadataManager of Kafka 4.3.1 changes classic groups. It is
#: written down here a second time on purpose: a wrong row of the coordinator's own table is found, too.
#: "failed" is not Kafka's: the emulated coordinator gives up a group whose operation broke off. "unloaded",
#: "deleted" and "expired" end a group without a change of its state.
ALLOWED: Final[dict[tuple[str, str], str]] = {
    **{(_EMPTY, cause): _PREPARING for cause in _MEMBERS_CHANGE},
    **{(_PREPARING, cause): _COMPLETING for cause in ("all-joined", "rebalance-timeout", "initial-delay")},
    (_PREPARING, "no-members"): _EMPTY,
    (_COMPLETING, "assigned"): _STABLE,
    **{
        (_COMPLETING, cause): _PREPARING
        for cause in (*_MEMBERS_CHANGE, *_MEMBERS_GO, "member-updated", "append-failed")
    },
    **{
        (_STABLE, cause): _PREPARING
        for cause in (*_MEMBERS_CHANGE, *_MEMBERS_GO, "member-updated", "leader-rejoined", "over-capacity")
    },
    (_STABLE, "downgraded"): _PREPARING,  # a consumer group has become a classic one
    **{(state, "failed"): _EMPTY for state in (_PREPARING, _COMPLETING, _STABLE)},
}

_ASSIGNING: Final = "Assigning"
_RECONCILING: Final = "Reconciling"
#: A heartbeat brings a consumer group to any of these: it counts the epoch up, computes the targets and
#: reconciles the member, each only if it is due.
_PROGRESS: Final = frozenset({_ASSIGNING, _RECONCILING, _STABLE})

#: (state before, cause) -> states after, of consumer groups (KIP-848): their state follows from members and
#: epochs (ConsumerGroup.maybeUpdateGroupState), so that a cause may lead to several.
CONSUMER_ALLOWED: Final[dict[tuple[str, str], frozenset[str]]] = {
    **{(state, "heartbeat"): _PROGRESS for state in (_EMPTY, _ASSIGNING, _RECONCILING, _STABLE)},
    # the first heartbeat upgrades a classic group, also one with an open round
    **{(state, "heartbeat"): _PROGRESS for state in (_PREPARING, _COMPLETING)},
    **{
        (state, cause): frozenset({_ASSIGNING, _EMPTY})
        for state in (_RECONCILING, _STABLE, _ASSIGNING)
        for cause in ("left", "session-expired", "rebalance-timeout", "join-timeout", "sync-timeout")
    },
    **{(state, "resolved"): frozenset({_ASSIGNING}) for state in (_RECONCILING, _STABLE)},
}

#: The end of an exception that Kafka's coordinator throws as well: it closes the round of an empty group.
_ROUND_OF_NOBODY: Final = "cannot leave Empty because of 'no-members'"
#: The beginning of another one: the id of a static member that could not be written is no longer in the
#: group.
_REPLACED_ONCE_MORE: Final = "cannot replace member "

#: The state of a member that has reached its target.
_AT_TARGET: Final = "STABLE"

#: The cause of the write by which a consumer group becomes a classic one.
_DOWNGRADE: Final = "group-downgraded"

#: The end of the third: an upgrade takes over the assignments of the last generation.
_NO_GENERATION_YET: Final = "has no generation yet"


class StateChecks:
    """Follows the state and the generation of the group. ``causes_known``: causes are the coordinator's."""

    def __init__(self, verdicts: Verdicts, causes_known: bool) -> None:
        self._verdicts = verdicts
        self._causes_known = causes_known
        self._generation = 0
        self._state: str | None = _EMPTY
        #: Whether the group was a consumer group when its state last changed.
        self._is_consumer = False

    def group_created(self, _now_us: int, event: events.GroupCreated) -> None:
        """A group that another coordinator has loaded has the state and the generation of its last record."""
        self._generation = 0
        self._state = None if event.cause == "loaded" else _EMPTY

    def state_changed(self, _now_us: int, event: events.GroupStateChanged) -> None:
        before, after = str(event.previous_state), str(event.state)
        if before != self._state and self._state is not None:
            self._verdicts.violated(STATES, f"the group went from {before} to {after}, but was {self._state}")
        self._state = after
        change = before, str(event.cause)
        allowed = ALLOWED.get(change) == after or after in CONSUMER_ALLOWED.get(change, ())
        if self._causes_known and not allowed:
            self._verdicts.violated(
                TRANSITIONS, f"the group went from {before} to {after} because of {event.cause}"
            )
        is_heartbeat = str(event.cause) == "heartbeat"
        self._is_consumer = is_heartbeat or (self._is_consumer and after != _PREPARING)
        if before == _PREPARING and not is_heartbeat:
            if event.generation <= self._generation:
                self._verdicts.violated(
                    GENERATIONS, f"generation {event.generation} came after generation {self._generation}"
                )
            self._generation = event.generation

    def converted(self, _now_us: int, _event: events.GroupConverted) -> None:
        """A consumer group becomes a classic one in Stable, whatever state it was in."""
        self._state = None

    def append_failed(self, _now_us: int, event: events.AppendFailed) -> None:
        """The write of a consumer group has failed: its changes are undone, without another event."""
        self._is_consumer = self._is_consumer or event.cause == _DOWNGRADE
        if self._is_consumer:
            self._state = None

    def operation_failed(self, _now_us: int, event: events.OperationFailed) -> None:
        """The coordinator broke off, whatever its group made of that."""
        sentence = f"the coordinator broke off in generation {event.generation}: {event.detail}"
        if event.detail.endswith(_ROUND_OF_NOBODY):
            sentence = (
                f"{TIMER_OUTLIVED_GROUP}: the write that created the group had failed, the group was created "
                "again, and the round of the former one was closed in it; Kafka's coordinator throws there, "
                "too, and goes on (ClassicGroup.initNextGeneration)"
            )
        elif event.detail.endswith(_NO_GENERATION_YET):
            sentence = (
                f"{UPGRADED_TOO_EARLY}: the first consumer of the new protocol came while the group's first "
                "round was open; Kafka's coordinator throws there, too (UNKNOWN_SERVER_ERROR), and goes on"
            )
        elif event.detail.startswith(_REPLACED_ONCE_MORE):
            sentence = (
                f"{WRITE_OUTLIVED_MEMBER}: the new id of a static member could not be written, and the "
                "member had come back under another one by then; Kafka's coordinator throws there, too, and "
                "goes on (ClassicGroup.replaceStaticMember)"
            )
        self._verdicts.violated(NO_OPERATION_FAILED, sentence)


class ConsumerGroupChecks:
    """Follows the group; it is no consumer group until a member of one is reconciled."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._forget()

    def _forget(self) -> None:
        self._epoch = self._target = -1
        self._members: dict[str, events.MemberReconciled] = {}
        self._holders: dict[str, str] = {}

    # -- rows ------------------------------------------------------------------------------------

    def begins_anew(self, _now_us: int, _event: object) -> None:
        """The group changed its protocol, was loaded or created again, or lost a write: epochs and owners may
        go back."""
        self._forget()

    def epoch_bumped(self, _now_us: int, event: events.GroupEpochBumped) -> None:
        if event.generation <= self._epoch:
            self._verdicts.violated(EPOCHS, f"group epoch {event.generation} came after {self._epoch}")
        self._epoch = event.generation

    def target_assigned(self, _now_us: int, event: events.TargetAssigned) -> None:
        if event.generation <= self._target:
            self._verdicts.violated(
                EPOCHS, f"the target of epoch {event.generation} came after that of epoch {self._target}"
            )
        self._target = event.generation

    def reconciled(self, _now_us: int, event: events.MemberReconciled) -> None:
        before = self._members.get(event.member_id)
        if before is not None:
            if 0 <= event.generation < before.generation:
                self._verdicts.violated(
                    EPOCHS, f"{event.member} went from member epoch {before.generation} to {event.generation}"
                )
            self._release(before)
        self._members[event.member_id] = event
        for partition in (*event.partitions, *event.revoking):
            other = self._holders.setdefault(partition, event.member_id)
            if other != event.member_id:
                self._verdicts.violated(
                    TWO_HOLDERS,
                    f"{partition} was given to {event.member} while {self._members[other].member} had it",
                )

    def removed(self, member_id: str) -> None:
        gone = self._members.pop(member_id, None)
        if gone is not None:
            self._release(gone)

    def _release(self, held: events.MemberReconciled) -> None:
        for partition in (*held.partitions, *held.revoking):
            if self._holders.get(partition) == held.member_id:
                del self._holders[partition]

    # -- the end ---------------------------------------------------------------------------------

    def finish(self, settled: bool) -> None:
        """If the group is said to have settled, every member is at its target and gives nothing up."""
        if not settled:
            return
        revoking = [each for each in self._members.values() if each.revoking]
        if revoking:
            partitions = listed(sorted(partition for each in revoking for partition in each.revoking))
            names = listed(sorted(each.member for each in revoking))
            self._verdicts.violated(REVOCATIONS, f"{names} never gave up {partitions}")
        late = [
            each
            for each in self._members.values()
            if not each.revoking and (each.state != _AT_TARGET or each.generation < self._target)
        ]
        if late:
            names = listed(sorted(each.member for each in late))
            self._verdicts.violated(
                TARGETS,
                f"{names} never reached the target of epoch {self._target}: "
                f"{late[0].state} at member epoch {late[0].generation}",
            )
