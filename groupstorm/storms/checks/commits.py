"""Commits, by the rows of the trace: those that a coordinator may accept, and where owners begin.

The coordinator may accept commits of the present generation or epoch:

* Classic group: a member commits with the group's generation, and not between its join and its sync
  (ClassicGroup.validateOffsetCommit).
* Consumer group: a member commits with its epoch, or with an older one if it has had the partitions since
  then (ConsumerGroup.validateOffsetCommit, KIP-1251).
* A client that is no member commits with -1, as long as the group has no members.

A generation or an epoch is unknown from the time the group was loaded, or took back a write, until its next
row: then it fences nobody here.

A new owner begins at the committed offset. The group's offset of a partition is that of the last commit, as
the row in which an owner gives the partition up names it, or that of a later commit that was seen. Background
commits are not all seen: as long as another process owns the partition, only a bound is known. Without a
committed offset auto.offset.reset decides; so it does for a partition that was deleted and created again. A
step that deletes topics is the only one that lets the group skip records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from groupstorm.storms.checks.verdicts import COMMITS_KEPT, NOTHING_SKIPPED, Verdicts
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as events
from groupstorm.trace.events import scenario as scenario_events
from groupstorm.trace.events.group_states import GroupState

GivenUp = events.PartitionsRevoked | events.PartitionsLost | events.MemberCrashed


class _Member:
    """A member of a consumer group: its epoch, and the epoch in which it got each of its partitions. Those of
    its first row, and of one in which a static member leaves for a while, it may have had for any time."""

    __slots__ = ("epoch", "since")

    def __init__(self) -> None:
        self.epoch = -1
        self.since: dict[str, int] = {}

    def reconciled(self, event: coordinator_events.MemberReconciled) -> None:
        is_away = event.generation < 0
        since = 0 if is_away or self.epoch < 0 else event.generation
        known = {} if is_away else self.since
        self.epoch = event.generation
        self.since = {one: known.get(one, since) for one in (*event.partitions, *event.revoking)}


class FencedCommits:
    """Follows the generation and the epochs. ``members`` is shared with the other checks: the ids that are in
    the group."""

    def __init__(self, members: set[str]) -> None:
        self._members = members
        self._generation: int | None = None
        self._state = ""
        #: None: the group is a classic one, or nobody knows.
        self._epochs: dict[str, _Member] | None = None

    def begins_anew(self, _now_us: int, _event: object) -> None:
        """The group was loaded, created or converted, or took back a write: no earlier row counts."""
        self._generation = self._epochs = None
        self._state = ""

    def state_changed(self, _now_us: int, event: coordinator_events.GroupStateChanged) -> None:
        self._state = event.state
        if event.state == GroupState.COMPLETING_REBALANCE:
            self._generation, self._epochs = event.generation, None

    def reconciled(self, _now_us: int, event: coordinator_events.MemberReconciled) -> None:
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

    def former_epochs(self) -> Iterator[tuple[str, int, str]]:
        """Members, each with a generation or epoch in which it may not commit this partition any more."""
        if self._epochs is None and self._generation is not None:
            yield from ((member_id, self._generation - 1, "any-0") for member_id in sorted(self._members))
        for member_id, member in (self._epochs or {}).items():
            partition = max(member.since, key=lambda one: member.since[one], default="")
            if member_id in self._members and partition and member.since[partition] > 1:
                yield member_id, member.since[partition] - 1, partition


def _fenced(member: _Member, epoch: int, partitions: Iterable[str]) -> str | None:
    if epoch > member.epoch:
        return f"it is at member epoch {member.epoch}"
    if epoch < member.epoch:
        late = [one for one in partitions if epoch < member.since.get(one, member.epoch)]
        if late:
            return f"it is at member epoch {member.epoch} and did not have {late[0]} in the older one"
    return None


class CommittedPositions:
    """Follows the offsets of the group. ``owners`` is shared with `OwnedTime`, which reads a row after this:
    partition -> its owners before the row."""

    def __init__(self, verdicts: Verdicts, owners: Mapping[str, set[str]]) -> None:
        self._verdicts = verdicts
        self._owners = owners
        #: The group's offsets, as far as they are known: each is at least this one.
        self._committed: dict[str, int] = {}
        #: The furthest position of owners that have stopped.
        self._reached: dict[str, int] = {}
        self._deleted: set[str] = set()
        #: Two processes own them at once, which other checks tell: the offset is that of whoever was last.
        self._shared: set[str] = set()

    def deleted(self, _now_us: int, event: scenario_events.PartitionsDeleted) -> None:
        """The group's offsets of these partitions were deleted, and commits of them are ignored."""
        for partition in event.partitions:
            self._committed.pop(partition, None)
            self._reached.pop(partition, None)
            self._shared.discard(partition)
            self._deleted.add(partition)

    def created(self, _now_us: int, event: scenario_events.PartitionsCreated) -> None:
        self._deleted.difference_update(event.partitions)

    def accepted(self, positions: Mapping[str, int]) -> None:
        """The coordinator has accepted a commit."""
        if not self._deleted:
            self._committed.update(positions)
            return
        for partition in positions.keys() - self._deleted:
            self._committed[partition] = positions[partition]

    def taken(self, time_us: int, event: events.PartitionsAssigned) -> None:
        all_owners, committed = self._owners, self._committed
        for partition, position in zip(event.partitions, event.positions, strict=False):
            if partition in committed and committed[partition] == position and partition not in all_owners:
                continue  # the usual case
            known, owners = committed.get(partition, -1), all_owners.get(partition, ())
            if owners and event.member not in owners:
                self._shared.add(partition)
            if known < 0 or event.member in owners or partition in self._shared:
                continue
            if position == known:
                continue
            begins = f"{event.member} begins {partition} at {position}"
            if position < known:
                self._violated(COMMITS_KEPT, time_us, begins, f"but the commit of {known} had been accepted")
            else:
                beyond = f"{position - known} records beyond the committed {known}"
                self._violated(NOTHING_SKIPPED, time_us, begins, beyond)

    def given_up(self, time_us: int, event: GivenUp) -> None:
        rows = zip(event.partitions, event.positions, event.committed, strict=False)
        all_owners, all_committed, all_reached = self._owners, self._committed, self._reached
        for partition, position, committed in rows:
            if partition not in all_owners or event.member not in all_owners[partition]:
                continue
            known, owners = all_committed.get(partition, -1), all_owners[partition]
            if partition not in self._shared and 0 <= known <= committed <= position:
                all_committed[partition] = committed  # the usual case
                if partition not in all_reached or position > all_reached[partition]:
                    all_reached[partition] = position
                continue
            if partition in self._shared:
                self._committed.pop(partition, None)
                if len(owners) == 1:
                    self._shared.remove(partition)
                continue
            reached = self._reached[partition] = max(position, self._reached.get(partition, 0))
            self._committed[partition] = max(committed, known)
            if known <= committed <= reached:
                continue
            what = f"{committed} of {partition} is committed when {event.member} gives it up"
            if committed < known:
                self._violated(COMMITS_KEPT, time_us, what, f"but the commit of {known} had been accepted")
            else:
                beyond = f"but no owner had come further than {reached}"
                self._violated(NOTHING_SKIPPED, time_us, what, beyond)

    def _violated(self, invariant: str, time_us: int, what: str, why: str) -> None:
        self._verdicts.violated(invariant, f"at {time_us / 1_000_000:.3f} s {what}, {why}")
