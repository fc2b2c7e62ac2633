"""Settled points, rounds and moves by brute force: every question is answered from all rows up to a moment.

Written from `docs/figures.md`, without the rules of `groupstorm.figures`; slow and plain on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations
from typing import NamedTuple

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from tests.figures.brute_force import BruteForce
from tests.figures.synthetic_rows import TracedRow

GONE = (member_events.MemberCrashed, member_events.MemberClosed, member_events.MemberFailed)
ANSWERS = (events.JoinAnswered, events.SyncAnswered)


def changes(rows: Sequence[TracedRow]) -> list[int]:
    """The rows that are changes: the cooperative second round of a member that has revoked is none."""
    found, revoked = [], set()
    for number, (_, _, event) in enumerate(rows):
        if isinstance(event, member_events.PartitionsRevoked) and event.cause == "assignment":
            revoked.add(event.member_id)
        elif isinstance(event, events.SyncAnswered) and event.error is None:
            revoked.discard(event.member_id)
        elif isinstance(
            event, events.MemberAdded | events.MemberRemoved | world_events.PartitionsCreated
        ) or (
            isinstance(event, events.GroupStateChanged)
            and event.cause in ("member-updated", "leader-rejoined")
            and event.member_id not in revoked
        ):
            found.append(number)
    return found


class Point(NamedTuple):
    """A settled point: the last row of its instant, the live members with their topics, the owners."""

    row: int
    live: dict[str, frozenset[str]]
    owners: dict[str, str]


class SettledOracle:
    """The questions about one group's trace, whose members have rows of their own."""

    def __init__(self, rows: list[TracedRow]) -> None:
        self.rows = rows
        self.ownership = BruteForce(rows)
        self.points = [*self._settled_points()]

    # -- settled points --------------------------------------------------------------------------

    def _settled_points(self) -> Iterator[Point]:
        since = 0  # the rows from here on came after the last settled point
        for number in range(len(self.rows)):
            is_last = number + 1 == len(self.rows) or self.rows[number + 1][0] > self.rows[number][0]
            if (
                is_last
                and any(map(self._unsettles, self.rows[since : number + 1]))
                and self._is_settled(number)
            ):
                yield Point(number, self._live(number), self._owners(number))
                since = number + 1

    @staticmethod
    def _unsettles(row: TracedRow) -> bool:
        event = row[2]
        if isinstance(event, ANSWERS):
            return event.error is None
        return isinstance(event, events.GroupStateChanged | member_events.RejoinRequested)

    def _is_settled(self, number: int) -> bool:
        until = [event for _, _, event in self.rows[: number + 1]]
        states = [event for event in until if isinstance(event, events.GroupStateChanged)]
        if not states or states[-1].state != "Stable":
            return False
        generation = states[-1].generation
        for member in {event.member for event in until if isinstance(event, ANSWERS)}:
            answered = [
                place
                for place, event in enumerate(until)
                if isinstance(event, ANSWERS)
                and (event.member, event.generation, event.error) == (member, generation, None)
            ]
            if answered and not any(
                (isinstance(event, member_events.PartitionsAssigned) and event.generation == generation)
                or isinstance(event, GONE)
                for event in until[answered[-1] :]
                if getattr(event, "member", None) == member
            ):
                return False
        return not any(
            isinstance(event, member_events.RejoinRequested) and not self._closes(until[place:], event.member)
            for place, event in enumerate(until)
        )

    @staticmethod
    def _closes(later: Sequence[object], member: str) -> bool:
        """Whether a request to join again was answered, or its member is gone."""
        return any(
            (isinstance(event, events.SyncAnswered) and event.error is None) or isinstance(event, GONE)
            for event in later
            if getattr(event, "member", None) == member
        )

    def _live(self, number: int) -> dict[str, frozenset[str]]:
        running: dict[str, frozenset[str]] = {}
        in_group: dict[str, str] = {}
        for _, _, event in self.rows[: number + 1]:
            match event:
                case member_events.MemberStarted():
                    running[event.member] = frozenset(event.topics)
                case (
                    member_events.MemberCrashed()
                    | member_events.MemberClosed()
                    | member_events.MemberFailed()
                ):
                    running.pop(event.member, None)
                case events.MemberAdded():
                    in_group[event.member_id] = event.member
                case events.MemberReplaced():
                    in_group.pop(event.previous_member_id, None)
                    in_group[event.member_id] = event.member
                case events.MemberRemoved():
                    in_group.pop(event.member_id, None)
        return {member: topics for member, topics in running.items() if member in in_group.values()}

    def _owners(self, number: int) -> dict[str, str]:
        holding = [i for i in self.ownership.intervals if i.from_row <= number < i.until_row]
        return {one.partition: one.member for one in sorted(holding, key=lambda one: one.from_row)}

    # -- rounds ----------------------------------------------------------------------------------

    def rounds(self) -> list[int]:
        """For every change that a settled point follows: the generations from the change to that point."""
        found = []
        for change in changes(self.rows):
            point = next((one.row for one in self.points if one.row >= change), None)
            if point is not None:
                found.append(sum(row in self.stable_rows() for row in range(change + 1, point + 1)))
        return found

    def _states(self, state: str) -> list[int]:
        return [
            number
            for number, (_, _, event) in enumerate(self.rows)
            if isinstance(event, events.GroupStateChanged) and event.state == state
        ]

    def stable_rows(self) -> list[int]:
        return self._states("Stable")

    def latencies_us(self) -> list[int]:
        """Return the latency of every generation that reached Stable and had a SyncGroup answered."""
        found = []
        prepared = self._states("PreparingRebalance")
        for begin, end in pairwise([*prepared, len(self.rows)]):
            completing = [row for row in self._states("CompletingRebalance") if begin < row < end]
            if not completing or not any(begin < row < end for row in self.stable_rows()):
                continue
            begun = self.rows[completing[0]][2]
            assert isinstance(begun, events.GroupStateChanged)
            first: dict[str, int] = {}
            returned = set()
            for now_us, _, event in self.rows[completing[0] : end]:
                if isinstance(event, events.MemberReplaced) and event.member_id not in first:
                    returned.add(event.member_id)
                elif (
                    isinstance(event, events.SyncAnswered)
                    and (event.error, event.generation) == (None, begun.generation)
                    and event.member_id not in returned
                ):
                    first.setdefault(event.member_id, now_us)
            if first:
                found.append(max(first.values()) - self.rows[begin][0])
        return found

    # -- moves -----------------------------------------------------------------------------------

    def moves(self) -> int | None:
        if not self.points:
            return None
        return sum(
            partition in before.owners and before.owners[partition] != owner
            for before, after in pairwise(self.points)
            for partition, owner in after.owners.items()
        )

    def moves_lower_bound(self) -> int | None:
        """For each pair of points, the best of all ways to give members the numbers that were given out."""
        if not self.points:
            return None
        total = 0
        for before, after in pairwise(self.points):
            if len(set(after.live.values())) > 1:
                return None
            there = sorted({*after.live, *after.owners.values()})
            owned = [self._load(before, member) for member in there]
            kept = max(
                sum(map(min, owned, numbers))
                for numbers in permutations([self._load(after, member) for member in there])
            )
            staying = sum(partition in after.owners for partition in before.owners)
            total += max(0, staying - kept)
        return total

    def imbalance_rate_max(self) -> int | None:
        """In records per 1,000 seconds, by the rates after the rows of each point's instant."""
        found = [0] if self.points else []
        for point in self.points:
            for one, topics in point.live.items():
                for other, other_topics in point.live.items():
                    if topics == other_topics:
                        found.append(self._rate(point, one) - self._rate(point, other))
        return max(found, default=None)

    def _rate(self, point: Point, member: str) -> int:
        owned = [partition for partition, owner in point.owners.items() if owner == member]
        return sum(self.ownership.log_rate(partition, point.row) for partition in owned)

    def imbalance_max(self) -> int | None:
        found = [
            abs(self._load(point, one) - self._load(point, other))
            for point in self.points
            for one, topics in point.live.items()
            for other, other_topics in point.live.items()
            if topics == other_topics
        ]
        return max(found, default=0) if self.points else None

    def idle_members_max(self) -> int | None:
        return max(
            (sum(not self._load(point, one) for one in point.live) for point in self.points), default=None
        )

    @staticmethod
    def _load(point: Point, member: str) -> int:
        return [*point.owners.values()].count(member)

    def revoked_and_returned(self) -> int:
        """Intervals that a revocation ended, if the partition's next one is the same member's."""
        found = 0
        for interval in self.ownership.intervals:
            if interval.until_row == len(self.rows):
                continue
            ending = self.rows[interval.until_row][2]
            if not isinstance(ending, member_events.PartitionsRevoked) or ending.cause == "close":
                continue
            later = [i for i in self.ownership.of(interval.partition) if i.from_row > interval.until_row]
            found += bool(later) and min(later, key=lambda i: i.from_row).member == interval.member
        return found
