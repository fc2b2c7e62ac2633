"""When a group is settled, its live members at that time, and the changes that came before; which partitions
moved between settled points, the least that had to move, and the balance.

`docs/figures.md` defines a settled point and a change. `tests/figures/settled_oracle.py` finds both by other
means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from groupstorm.history.coordinator_view import CoordinatorView
from groupstorm.history.gaps import Partition
from groupstorm.history.records import RecordModel
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import share as share_events
from groupstorm.trace.events.group_states import Cause, GroupState

#: `partitions_revoked` with this cause is the first half of a cooperative rebalance (KIP-429).
ASSIGNMENT = "assignment"

#: A group leaves Stable or CompletingRebalance because a member joined with something new: another
#: subscription or, for the leader, new metadata.
MEMBER_CAUSES = (Cause.MEMBER_UPDATED, Cause.LEADER_REJOINED)

Topics = frozenset[str]


class SettledPoint(NamedTuple):
    """The group has settled: ``live`` members with their subscriptions (None: not known).

    ``changes`` happened since the last point; ``rounds`` is the sum, over these changes, of the generations
    that came after each.
    """

    live: Mapping[str, Topics | None]
    changes: int
    rounds: int


class Settling:
    """Takes the rows of the coordinator and the members; `instant_over` returns the settled points.

    ``view`` names the members of a trace that has the coordinator's rows alone: there a member takes its
    assignment with the SyncGroup's answer. ``revoked_ids``: member ids that gave partitions up since their
    last SyncGroup; what they join again for is no change.
    """

    def __init__(self) -> None:
        self.view: CoordinatorView | None = None
        self.has_settled = False
        self._state = ""
        self._generation = -1
        self._stables = 0
        #: The group has settled since it last changed: there is one settled point in between.
        self.settled = False
        #: Members that have asked to join again, and those that have not taken their assignment of that
        #: generation: the group has not settled while there are any.
        self.rejoining: set[str] = set()
        self.awaited: dict[str, int] = {}
        #: Nobody owns a partition of a share group, so its members take nothing over.
        self._is_shared = False
        #: Members of a consumer group that may not have taken yet what the coordinator gave them.
        self.given: dict[str, tuple[str, ...]] = {}
        self._running: dict[str, Topics | None] = {}
        self.is_deserted = False  # its last process has ended
        self._in_group: dict[str, str] = {}  # member id -> member
        self.revoked_ids: set[str] = set()
        self._pending_changes = 0
        self._pending_stables = 0

    # -- rows of the coordinator --------------------------------------------------------------------

    def state_changed(self, event: events.GroupStateChanged) -> bool:
        """Returns whether this is a change: a member joined with something new.

        The second half of a cooperative rebalance is none: its member joins again because it has revoked.
        """
        self.settled = False
        if event.state == GroupState.STABLE:
            self._stables += 1
        if event.generation != self._generation:
            self._generation = event.generation
            self.awaited = {
                member: generation
                for member, generation in self.awaited.items()
                if generation == event.generation
            }
        self._state = event.state
        is_change = event.cause in MEMBER_CAUSES and event.member_id not in self.revoked_ids
        if is_change:
            self._change()
        return is_change

    def join_answered(self, _now_us: int, event: events.JoinAnswered) -> None:
        """The member is awaited to take its assignment of that generation."""
        if event.error is None:
            self.awaited[self._name(event.member, event.member_id)] = event.generation
            self.settled = False

    def sync_answered(self, _now_us: int, event: events.SyncAnswered) -> None:
        """The member has the assignment for which it asked to join."""
        _, member, member_id, generation, error, _ = event
        if error is not None:
            return
        if self.view is not None:
            member = self.view.name(member_id)
        self.rejoining.discard(member)
        self.revoked_ids.discard(member_id)
        self.settled = False
        if self.view is None and generation is not None:
            self.awaited[member] = generation
        else:
            self.awaited.pop(member, None)

    def reconciled(self, _now_us: int, event: events.MemberReconciled) -> None:
        """The coordinator of a consumer group has given the member these partitions, and no others."""
        self.rejoining.discard(event.member)
        if self.view is None and not self._is_shared:
            self.given[event.member] = event.partitions
        self.settled = False

    def learn(self, _now_us: int, event: events.MemberAdded | events.MemberReplaced) -> None:
        if self.view is not None:
            self.view.learn(event.member_id, event.instance)

    def member_added(self, _now_us: int, event: events.MemberAdded) -> None:
        self._in_group[event.member_id] = self._name(event.member, event.member_id)
        self._change()

    def member_replaced(self, _now_us: int, event: events.MemberReplaced) -> None:
        """A static member is back under a new id: not a change of the group (KIP-345)."""
        self._in_group.pop(event.previous_member_id, None)
        self._in_group[event.member_id] = self._name(event.member, event.member_id)

    def member_removed(self, _now_us: int, event: events.MemberRemoved) -> None:
        member = self._in_group.pop(event.member_id, "")
        if self.view is not None:  # a member whose own rows say that it joins again does so under a new id
            self.rejoining.discard(member)
        self._change()

    def joins_again(self, member: str, member_id: str) -> None:
        """The coordinator has answered a cooperative member with less than it had: the member gives that up
        and joins again at once, and the group has not settled until it has its next answer."""
        self.rejoining.add(member)
        self.revoked_ids.add(member_id)

    def _name(self, member: str, member_id: str) -> str:
        return member if self.view is None else self.view.name(member_id)

    # -- rows of the members and the scenario --------------------------------------------------------

    def member_started(self, _now_us: int, event: member_events.MemberStarted) -> None:
        self._running[event.member] = frozenset(event.topics)
        self.is_deserted = False

    def share_consumer_started(self, _now_us: int, _event: share_events.ShareConsumerStarted) -> None:
        self._is_shared = True

    def rejoin_requested(self, _now_us: int, event: member_events.RejoinRequested) -> None:
        self.rejoining.add(event.member)
        self.settled = False

    def assignment_taken(self, _now_us: int, event: member_events.PartitionsAssigned) -> None:
        if self.awaited.get(event.member) == event.generation:
            del self.awaited[event.member]
        if event.member not in self._running:  # it began before the trace, or its part, does
            self._running[event.member] = None
            self._in_group[event.member_id] = event.member

    def revoked(self, _now_us: int, event: member_events.PartitionsRevoked) -> None:
        if event.cause == ASSIGNMENT:
            self.revoked_ids.add(event.member_id)

    def gone(
        self,
        _now_us: int,
        event: member_events.MemberCrashed | member_events.MemberClosed | member_events.MemberFailed,
    ) -> None:
        member = event.member
        if self._running.pop(member, None) is not None:
            self.is_deserted = not self._running
        self.rejoining.discard(member)
        self.awaited.pop(member, None)
        self.given.pop(member, None)

    def partitions_changed(self, _now_us: int, _event: object) -> None:
        """Partitions were created or deleted."""
        self._change()

    # -- settled points --------------------------------------------------------------------------

    @property
    def is_in_round(self) -> bool:
        """Whether a round of a classic group is open."""
        return self._state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)

    def instant_over(self, owns: Callable[[str, tuple[str, ...]], bool]) -> SettledPoint | None:
        """All rows of one instant were added: the settled point, if the group has settled with them.

        ``owns``: whether a member owns all of these partitions.
        """
        if self.settled or self._state != GroupState.STABLE:
            return None
        if self.awaited or self.rejoining:
            return None
        if self.given:
            self.given = {member: names for member, names in self.given.items() if not owns(member, names)}
            if self.given:
                return None
        self.settled = True
        self.has_settled = True
        point = SettledPoint(
            self._live(), self._pending_changes, self._pending_changes * self._stables - self._pending_stables
        )
        self._pending_changes = self._pending_stables = 0
        return point

    def begin_window(self) -> None:
        """The changes so far count no more."""
        self._pending_changes = self._pending_stables = 0

    def _change(self) -> None:
        self._pending_changes += 1
        self._pending_stables += self._stables

    def _live(self) -> Mapping[str, Topics | None]:
        if self.view is not None:
            return dict.fromkeys(self._in_group.values())
        in_group = set(self._in_group.values())
        return {member: topics for member, topics in self._running.items() if member in in_group}


class Moves:
    """Compares the owner maps of consecutive settled points."""

    def __init__(self) -> None:
        self.moves: int | None = None
        self.lower_bound: int | None = None
        self.imbalance_max: int | None = None
        #: In records per 1,000 seconds.
        self.imbalance_rate_max: int | None = None
        self.idle_members_max: int | None = None
        #: The two imbalances and the idle members of the last settled point.
        self._last: tuple[int | None, int | None, int] = None, None, 0
        self._owners: dict[str, str] = {}
        self._loads: Counter[str] = Counter()
        #: Member -> the sum of its partitions' record rates.
        self._rates: Counter[str] = Counter()

    def settled(
        self, live: Mapping[str, Topics | None], touched: Iterable[Partition], model: RecordModel
    ) -> None:
        """A settled point: ``touched`` are the partitions that changed hands since the last one."""
        before = self._loads.copy()
        moves, dropped = self._move(touched, model)
        if self.moves is None:
            self.moves = self.lower_bound = 0
        else:
            self.moves += moves
            if self.lower_bound is not None:
                bound = moves_needed(before, self._loads, live, dropped)
                self.lower_bound = None if bound is None else self.lower_bound + bound
        self._weigh(live)

    def rate_changed(self, partition: str, by: int) -> None:
        """A log grows faster than before, or slower."""
        owner = self._owners.get(partition)
        if owner is not None:
            self._rates[owner] += by

    def begin_window(self) -> None:
        """The last settled point becomes the first."""
        if self.moves is not None:
            self.moves = self.lower_bound = 0
            self.imbalance_max, self.imbalance_rate_max, self.idle_members_max = self._last

    def _move(self, touched: Iterable[Partition], model: RecordModel) -> tuple[int, int]:
        """The partitions that have another owner than before, and those that have none any more."""
        moves = dropped = 0
        owners = self._owners
        for partition in touched:
            before = owners.get(partition.name)
            after = partition.owners[-1].member if partition.owners else None  # of two, the last one
            if before == after:
                continue
            rate = model.log(partition.name).rate
            if before is not None:
                del owners[partition.name]
                self._loads[before] -= 1
                self._rates[before] -= rate
                dropped += after is None
            if after is not None:
                owners[partition.name] = after
                self._loads[after] += 1
                self._rates[after] += rate
                moves += before is not None
        return moves, dropped

    def _weigh(self, live: Mapping[str, Topics | None]) -> None:
        idle = sum(not self._loads[member] for member in live)
        self.idle_members_max = max(idle, self.idle_members_max or 0)
        self._last = None, None, idle
        by_topics: dict[Topics, list[str]] = {}
        for member, topics in live.items():
            if topics is None:
                return
            by_topics.setdefault(topics, []).append(member)
        imbalance, rates = (
            max((_spread([sums[one] for one in members]) for members in by_topics.values()), default=0)
            for sums in (self._loads, self._rates)
        )
        self._last = imbalance, rates, idle
        self.imbalance_max = max(imbalance, self.imbalance_max or 0)
        self.imbalance_rate_max = max(rates, self.imbalance_rate_max or 0)


def _spread(values: Sequence[int]) -> int:
    return max(values) - min(values)


def moves_needed(
    before: Mapping[str, int], after: Mapping[str, int], live: Mapping[str, Topics | None], dropped: int
) -> int | None:
    """The least that any assignment with the balance of ``after`` would have moved.

    ``before``, ``after``: how many partitions each member owned and owns. Any assignment: the same numbers
    of partitions go to whichever of the members that are there, and of the partitions that had an owner
    ``dropped`` have none any more. Members keep the most if the larger number goes to who had more (the sum
    of the lesser ones of two sequences is largest if both are sorted); all others, less the dropped ones,
    move.
    None if the live members' subscriptions differ or are not known.
    """
    subscriptions: Collection[Topics | None] = set(live.values())
    if len(subscriptions) > 1 or None in subscriptions:
        return None
    there = {*live, *(member for member, count in after.items() if count)}
    had = sorted([before.get(member, 0) for member in there])
    have = sorted([after.get(member, 0) for member in there])
    kept = sum([min(one, other) for one, other in zip(had, have, strict=True)])
    return max(0, sum(before.values()) - dropped - kept)
