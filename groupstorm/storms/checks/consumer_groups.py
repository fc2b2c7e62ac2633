"""Consumer groups (KIP-848), by the rows of the coordinator: who holds what, and how epochs go on.

A member holds a partition from the `member_reconciled` row that gives it the partition until the row in which
the partition is neither assigned nor being revoked, or until it is out of the group.
"""

from __future__ import annotations

from groupstorm.storms.checks.verdicts import EPOCHS, REVOCATIONS, TARGETS, TWO_HOLDERS, Verdicts, listed
from groupstorm.trace.events import coordinator as events

_STABLE = "STABLE"


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
            if not each.revoking and (each.state != _STABLE or each.generation < self._target)
        ]
        if late:
            names = listed(sorted(each.member for each in late))
            self._verdicts.violated(
                TARGETS,
                f"{names} never reached the target of epoch {self._target}: "
                f"{late[0].state} at member epoch {late[0].generation}",
            )
