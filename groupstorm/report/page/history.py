"""The history of one group for a page: owners, activities, curves and states, from one pass over its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappush, heappushpop
from typing import Any, Final, NamedTuple

from groupstorm.explain.explanation import Reader
from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.gaps import ClosedGap
from groupstorm.history.unknown import OWNERSHIP
from groupstorm.report.lanes.members import Activity, GroupLanes, OwnerFact
from groupstorm.report.page.steps import Samples, Steps
from groupstorm.trace.rows import TracedEvent

Row = Mapping[str, Any]

#: Values of an owner step that are no member.
UNOWNED: Final = -1
#: The partition needs no owner: it does not exist, no assignment was complete yet, the group was deleted, or
#: the logs of an import say that it has no members (`history.group_sums`).
ABSENT: Final = -2
TWO_OWNERS: Final = -3

#: The numbers of what members do. The page's scripts have a colour for each.
ACTIVITIES: Final = (
    Activity.GONE,
    Activity.JOINS,
    Activity.REJOINS,
    Activity.OWNS,
    Activity.IDLE,
    Activity.PAUSED,
    Activity.UNKNOWN,
)
GONE: Final = ACTIVITIES.index(Activity.GONE)
JOINS: Final = ACTIVITIES.index(Activity.JOINS)

#: So many gaps are kept, the longest.
GAPS_MAX: Final = 300
#: So many steps of the scenario are kept, the first.
STEPS_MAX: Final = 2_000


class State(NamedTuple):
    """The group's state from ``time_us`` on."""

    time_us: int
    state: str
    generation: int | None
    cause: str


class ScenarioStep(NamedTuple):
    time_us: int
    cause: str
    member: str
    detail: str


class GroupHistory(Reader):
    """Reads beside an explanation. It counts from ``from_us`` on."""

    def __init__(self, from_us: int) -> None:
        self.from_us = from_us
        self.members: dict[str, int] = {}
        self.owners = Steps()
        #: The number of each member's activity in `ACTIVITIES`.
        self.activities = Steps()
        self.samples = Samples(from_us)
        self.states: list[State] = []
        self.scenario_steps: list[ScenarioStep] = []
        self.kind = "serve"
        #: Times in which an imported trace does not know who owns what; the last one may be open (None).
        self.unknown: list[tuple[int, int | None]] = []
        self._gaps: list[tuple[int, int, ClosedGap]] = []
        self._lanes = GroupLanes()
        self._owned_by: dict[str, list[int]] = {}
        self._unowned: set[str] = set()
        self._figures: FiguresAccumulator | None = None
        self._now_us = 0
        #: The value of an owner step for a partition that nobody owns, and how many of these count.
        self._without_owner = ABSENT
        self._unowned_count = 0
        self._counts = False
        self._closed = 0

    @property
    def gaps(self) -> list[ClosedGap]:
        """The longest ones first."""
        return [gap for *_, gap in sorted(self._gaps, key=lambda one: (-one[0], one[1]))]

    def label(self, member: str) -> str:
        """A member's name for people: a member id without most of its UUID."""
        found = self._lanes.members.get(member)
        return member if found is None else found.label

    @property
    def by_members(self) -> bool:
        """Whether the rows of members say who owned what."""
        return self._lanes.by_members

    def gap_closed(self, gap: ClosedGap) -> None:
        """Keep the gap if it is among the longest."""
        self._closed += 1
        one = gap.gap_us, self._closed, gap
        if len(self._gaps) < GAPS_MAX:
            heappush(self._gaps, one)
        else:
            heappushpop(self._gaps, one)

    def add(self, row: Row, typed: TracedEvent, figures: FiguresAccumulator) -> None:
        """Take the next row; ``figures`` have taken those before it."""
        event, now_us = row["event"], row["time_us"]
        self._figures = figures
        self._see_need()
        self._now_us = now_us
        self._sample(row, figures)
        self._change_partitions(row)
        for member in self._lanes.add(row, typed):
            activity = member.activity(self._lanes.knows_owners)
            self.activities.set(member.name, now_us, ACTIVITIES.index(activity))
        for fact in self._lanes.facts:
            if fact.kind in ("own", "end"):
                self._change_owner(fact, now_us)
        if event == "group_state_changed":
            self.states.append(State(now_us, row["state"], row.get("generation"), row.get("cause", "")))
        elif event == "scenario_started":
            self.kind = "storm"
        elif event == "group_imported":
            self.kind = "import"
        elif event == "step_taken" and len(self.scenario_steps) < STEPS_MAX:
            self.scenario_steps.append(
                ScenarioStep(now_us, row["cause"], row.get("member", ""), row.get("detail", ""))
            )
        elif event == "evidence_missing" and row["cause"] == OWNERSHIP:
            if not self.unknown or self.unknown[-1][1] is not None:
                self.unknown.append((now_us, None))
        elif event == "ownership_known" and self.unknown and self.unknown[-1][1] is None:
            self.unknown[-1] = self.unknown[-1][0], now_us

    def finish(self, end_us: int) -> None:
        """The trace, or the window, ends."""
        self._see_need()
        self.samples.advance(end_us, self._unowned_count, None)

    def _see_need(self) -> None:
        """Whether partitions need an owner since the last row, which the figures have taken by now."""
        count = None if self._figures is None else self._figures.unowned_partitions()
        self._unowned_count = count or 0
        without_owner = ABSENT if count is None else UNOWNED
        if without_owner != self._without_owner:
            self._without_owner = without_owner
            for partition in sorted(self._unowned):
                self.owners.set(partition, self._now_us, without_owner)

    def _sample(self, row: Row, figures: FiguresAccumulator) -> None:
        """Look at the lag as it is before the row. Only from the second row on that counts: until the first
        one the figures have not begun their window."""
        now_us = row["time_us"]
        if now_us < self.from_us:
            return
        unowned = self._unowned_count
        if not self._counts:
            self._counts = True
            self.samples.advance(now_us, unowned, None)
            return

        def probe(at_us: int, partitions: Sequence[str] | None) -> tuple[float, int] | None:
            lag, age_us = figures.recent_lag_peak(at_us), figures.oldest_record_us(at_us, partitions)
            return None if lag is None or age_us is None else (lag, age_us)

        if now_us > self.samples.now_us:
            self.samples.advance(now_us, unowned, probe)
            self.samples.see(probe(now_us, ()))
        if row["event"] == "partitions_assigned":
            self.samples.see(probe(now_us, row["partitions"]))

    def _change_partitions(self, row: Row) -> None:
        event = row["event"]
        if event in ("scenario_started", "partitions_created"):
            for partition in row["partitions"]:
                self._create(partition, row["time_us"])
        elif event == "partitions_deleted":
            for partition in row["partitions"]:
                if self._owned_by.pop(partition, None) is not None:
                    self._unowned.discard(partition)
                    self.owners.set(partition, row["time_us"], ABSENT)

    def _create(self, partition: str, now_us: int) -> None:
        if partition not in self._owned_by:
            self._owned_by[partition] = []
            self._unowned.add(partition)
            self.owners.set(partition, now_us, self._without_owner)

    def _change_owner(self, fact: OwnerFact, now_us: int) -> None:
        if fact.partition not in self._owned_by:
            if fact.kind != "own":
                return
            self._create(fact.partition, now_us)
        owners = self._owned_by[fact.partition]
        member = self.members.setdefault(fact.member, len(self.members))
        if fact.kind == "own" and member not in owners:
            owners.append(member)
        elif fact.kind == "end" and member in owners:
            owners.remove(member)
        if owners:
            self._unowned.discard(fact.partition)
            self.owners.set(fact.partition, now_us, owners[0] if len(owners) == 1 else TWO_OWNERS)
        else:
            self._unowned.add(fact.partition)
            self.owners.set(fact.partition, now_us, self._without_owner)
