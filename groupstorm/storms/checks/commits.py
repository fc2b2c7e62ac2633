"""Commits and the written log, by the rows of the trace: which commits a coordinator may accept, where owners
begin, and which members another coordinator loads.

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

The coordinator writes the group when it is created, when its leader has sent the assignments, when a static
member comes back to a Stable group, and when its last member has gone (GroupMetadataManager). A write lands
after its append, in the order of writing, also if its request was answered with an error before
(offsets.commit.timeout.ms). A write that is under way when the coordinator dies lands too late for the next
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from groupstorm.storms.checks.verdicts import COMMITS_KEPT, NOTHING_SKIPPED, Verdicts
from groupstorm.storms.scenario.steps import FAILING_APPENDS, SLOW_APPENDS, Step
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as events
from groupstorm.trace.events import scenario as scenario_events
from groupstorm.trace.events.group_states import Cause, GroupState

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


class Appends:
    """The durations of appends, and whether they fail. ``steps``: those of the scenario."""

    def __init__(self, latency_ms: int = 0, steps: Iterable[Step] = ()) -> None:
        self._latency_ms = latency_ms
        kinds = (SLOW_APPENDS, FAILING_APPENDS)
        self._steps = sorted((step for step in steps if step.do in kinds), key=lambda step: step.at_ms)
        self._slow_until_us = self._slow_ms = self._fail_until_us = 0

    def step_taken(self, time_us: int, event: scenario_events.StepTaken) -> None:
        """The next step of this kind begins."""
        step = next((step for step in self._steps if step.do == event.cause), None)
        if step is None:
            return
        self._steps.remove(step)
        until_us = time_us + step.for_ms * 1000
        if step.do == SLOW_APPENDS:
            self._slow_until_us, self._slow_ms = until_us, step.append_ms
        else:
            self._fail_until_us = max(self._fail_until_us, until_us)

    def takes_ms(self, now_us: int) -> int:
        return self._slow_ms if now_us < self._slow_until_us else self._latency_ms

    def fails(self, now_us: int) -> bool:
        return now_us < self._fail_until_us


class _ConsumerWrite:
    """A write of a consumer group. ``due_ms``: when it lands or fails; ``reverted``: one that failed has
    taken back what this one changed. ``changes``: who joined (True) or left in it, in order."""

    __slots__ = ("changes", "due_ms", "fails", "reverted")

    def __init__(self, due_ms: int, fails: bool) -> None:
        self.due_ms = due_ms
        self.fails = fails
        self.reverted = False
        self.changes: list[tuple[str, bool]] = []

    def has_failed(self, time_us: int) -> bool:
        return self.due_ms * 1000 <= time_us and (self.fails or self.reverted)


class UnwrittenChanges:
    """Members that joined or left a consumer group in a write that fails: their change is undone when the
    write has failed, and so are the changes of the group's later writes by then (CoordinatorRuntime).

    ``members`` is shared with the other checks: the ids in the group.
    """

    def __init__(self, members: set[str], appends: Appends) -> None:
        self._members = members
        self._appends = appends
        #: From the first one that fails on: the writes under way, by the time at which they began.
        self._writes: dict[int, _ConsumerWrite] = {}

    def written(self, time_us: int) -> _ConsumerWrite | None:
        """A row says that the group changes: all rows of one time are one write. None: it cannot fail."""
        write = self._writes.get(time_us)
        fails = self._appends.fails(time_us)
        if write is None and (fails or self._writes):
            due_ms = time_us // 1000 + self._appends.takes_ms(time_us)
            write = self._writes[time_us] = _ConsumerWrite(due_ms, fails)
        return write

    def changed(self, time_us: int, member_id: str, *, joined: bool) -> None:
        """A row says that a member joined or left."""
        write = self.written(time_us)
        if write is not None:
            write.changes.append((member_id, joined))

    def forget(self) -> None:
        """The changes so far can fail no more: the group is gone, or was a classic one, which writes no
        members as they come and go."""
        self._writes.clear()

    def append_failed(self, time_us: int) -> set[str]:
        """A write of the group has failed: undo it and all later ones, the last change first. Returns who is
        in the group again: the coordinator has cancelled the member's session and begins no other one."""
        back: set[str] = set()
        writes = self._writes
        begun_us = next((at_us for at_us, write in writes.items() if write.has_failed(time_us)), None)
        if begun_us is None:
            return back
        if not writes[begun_us].reverted:
            for at_us in reversed(writes):
                if at_us >= begun_us:
                    self._undo(writes[at_us], back)
        del writes[begun_us]
        if not any(write.fails or write.reverted for write in writes.values()):
            writes.clear()
        return back

    def _undo(self, write: _ConsumerWrite, back: set[str]) -> None:
        for member_id, joined in reversed(write.changes):
            (self._members.discard if joined else self._members.add)(member_id)
            (back.discard if joined else back.add)(member_id)
        write.reverted = True


class _Write(NamedTuple):
    """``due_ms``: when it lands, unless it fails."""

    due_ms: int
    fails: bool
    members: frozenset[str]
    #: The static member that came back, if it is the cause.
    member_id: str | None


class WrittenMembers:
    """Follows the writes of the group. ``members`` is shared with the other checks: the ids in the group."""

    def __init__(self, members: set[str], appends: Appends) -> None:
        self._members = members
        self._appends = appends
        self._written: frozenset[str] = frozenset()
        self._under_way: list[_Write] = []
        self._state = ""
        self._leader: str | None = None
        self._replaced: str | None = None

    def created(self, time_us: int, event: coordinator_events.GroupCreated) -> None:
        """A group that a member creates is written; one that was loaded has the state of its last record."""
        if event.cause == "join":
            self._begin(time_us, frozenset())
            self._state = GroupState.EMPTY
        else:
            self._state = GroupState.STABLE if self._members else GroupState.EMPTY

    def state_changed(self, time_us: int, event: coordinator_events.GroupStateChanged) -> None:
        self._state = event.state
        if event.state == GroupState.COMPLETING_REBALANCE:
            self._leader = event.leader
        elif event.state == GroupState.EMPTY:
            self._begin(time_us, frozenset())
        elif event.cause == Cause.STATIC_MEMBER:
            self._take_back(event.member_id)

    def consumer_group_written(self, time_us: int) -> None:
        """Every change of a consumer group is a write; most of them leave its members as they are."""
        last = self._under_way[-1].members if self._under_way else self._written
        self._begin(time_us, last if last == self._members else frozenset(self._members))

    def sync_parked(self, time_us: int, event: coordinator_events.SyncParked) -> None:
        """The leader's assignments are written as often as the leader sends them."""
        if self._state == GroupState.COMPLETING_REBALANCE and event.member_id == self._leader:
            self._begin(time_us, frozenset(self._members))

    def replaced(self, event: coordinator_events.MemberReplaced) -> None:
        self._replaced = event.member_id

    def join_parked(self, time_us: int, event: coordinator_events.JoinParked) -> None:
        """A static member that came back to a Stable group waits for the write of its new id."""
        if self._state == GroupState.STABLE and event.member_id == self._replaced:
            self._begin(time_us, frozenset(self._members), event.member_id)
        self._replaced = None

    def _take_back(self, member_id: str | None) -> None:
        """The member that came back would change the chosen protocol: a round opens instead of a write."""
        if self._under_way and self._under_way[-1].member_id == member_id:
            self._under_way.pop()

    def at(self, time_us: int) -> frozenset[str]:
        """The members of the last write that has landed by then."""
        while self._under_way and self._under_way[0].due_ms * 1000 <= time_us:
            write = self._under_way.pop(0)
            if not write.fails:
                self._written = write.members
        return self._written

    def busy_until_us(self, time_us: int) -> int:
        """The end of the last write that is under way; ``time_us`` if none is."""
        _ = self.at(time_us)
        return self._under_way[-1].due_ms * 1000 if self._under_way else time_us

    def loads(self, members: frozenset[str]) -> None:
        """Another coordinator has loaded these members: writes still under way were the dead one's."""
        self._written = members
        self._under_way.clear()

    def _begin(self, now_us: int, members: frozenset[str], member_id: str | None = None) -> None:
        """An append never ends before an earlier one."""
        _ = self.at(now_us)
        due_ms = now_us // 1000 + self._appends.takes_ms(now_us)
        if self._under_way:
            due_ms = max(due_ms, self._under_way[-1].due_ms)
        self._under_way.append(_Write(due_ms, self._appends.fails(now_us), members, member_id))
