"""The commits that a coordinator may accept, by its own rows: those of the present generation or epoch.

* Classic group: a member commits with the group's generation, and not between its join and its sync
  (ClassicGroup.validateOffsetCommit).
* Consumer group: a member commits with its epoch, or with an older one if it has had the partitions since
  then (ConsumerGroup.validateOffsetCommit, KIP-1251).
* Who is no member commits with -1, as long as the group has no members.

A generation or an epoch is unknown from the time the group was loaded, or took back a write, until its next
row: then it fences nobody here.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import GroupState


class _Member:
    """A member of a consumer group: its epoch, and the epoch in which it got each of its partitions. Those of
    its first row it may have had for any time."""

    __slots__ = ("epoch", "since")

    def __init__(self) -> None:
        self.epoch = -1
        self.since: dict[str, int] = {}

    def reconciled(self, event: events.MemberReconciled) -> None:
        since = event.generation if self.epoch >= 0 else 0
        self.epoch = event.generation
        self.since = {one: self.since.get(one, since) for one in (*event.partitions, *event.revoking)}


class FencedCommits:
    """Follows the generation and the epochs. ``members`` is shared with the other checks: the ids that are in
    the group."""

    def __init__(self, members: set[str]) -> None:
        self._members = members
        self._generation: int | None = None
        self._state = ""
        #: None: the group is a classic one, or nobody knows.
        self._epochs: dict[str, _Member] | None = None

    def begins_anew(self) -> None:
        """The group was loaded, created or converted, or took back a write: no earlier row counts."""
        self._generation = self._epochs = None
        self._state = ""

    def state_changed(self, event: events.GroupStateChanged) -> None:
        self._state = event.state
        if event.state == GroupState.COMPLETING_REBALANCE:
            self._generation, self._epochs = event.generation, None

    def reconciled(self, event: events.MemberReconciled) -> None:
        if self._epochs is None:
            self._generation, self._epochs = None, {}
        self._epochs.setdefault(event.member_id, _Member()).reconciled(event)

    def removed(self, member_id: str) -> None:
        if self._epochs is not None:
            self._epochs.pop(member_id, None)

    def reason(self, member_id: str, generation: int, partitions: Iterable[str]) -> str | None:
        """The reason why the coordinator must not accept this commit now; None if it may."""
        if generation < 0:
            return "the group has members" if self._members else None
        if member_id not in self._members:
            return "it is not a member"
        if self._epochs is not None:
            member = self._epochs.get(member_id)
            return None if member is None else _fenced(member, generation, partitions)
        if self._generation not in (None, generation):
            return f"the group is in generation {self._generation}"
        if self._generation is not None and self._state == GroupState.COMPLETING_REBALANCE:
            return "it has not synchronized with this generation yet"
        return None


def _fenced(member: _Member, epoch: int, partitions: Iterable[str]) -> str | None:
    if epoch > member.epoch:
        return f"it is at member epoch {member.epoch}"
    if epoch < member.epoch:
        late = [one for one in partitions if epoch < member.since.get(one, member.epoch)]
        if late:
            return f"it is at member epoch {member.epoch} and did not have {late[0]} in the older one"
    return None
