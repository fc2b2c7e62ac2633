"""The log of the group, by the rows of the trace: another coordinator loads its members.

The coordinator writes the group when it is created, when its leader has sent the assignments, when a static
member comes back to a Stable group, and when its last member has gone (GroupMetadataManager). A write lands
after its append, in the order of writing, also if its request was answered with an error before
(offsets.commit.timeout.ms). A write that is under way when the coordinator dies lands too late for the next
one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from groupstorm.storms.scenario.steps import FAILING_APPENDS, SLOW_APPENDS, Step
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import scenario as scenario_events
from groupstorm.trace.events.group_states import Cause, GroupState


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

    def created(self, time_us: int, event: events.GroupCreated) -> None:
        """A group that a member creates is written; one that was loaded has the state of its last record."""
        if event.cause == "join":
            self._begin(time_us, frozenset())
            self._state = GroupState.EMPTY
        else:
            self._state = GroupState.STABLE if self._members else GroupState.EMPTY

    def state_changed(self, time_us: int, event: events.GroupStateChanged) -> None:
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

    def sync_parked(self, time_us: int, event: events.SyncParked) -> None:
        """The leader's assignments are written as often as the leader sends them."""
        if self._state == GroupState.COMPLETING_REBALANCE and event.member_id == self._leader:
            self._begin(time_us, frozenset(self._members))

    def replaced(self, event: events.MemberReplaced) -> None:
        self._replaced = event.member_id

    def join_parked(self, time_us: int, event: events.JoinParked) -> None:
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
