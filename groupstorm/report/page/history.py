"""The history of one group for a page: owners, activities, curves and states, from one pass over its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappush, heappushpop
from typing import Any, Final, NamedTuple

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.gaps import ClosedGap
from groupstorm.report.lanes.members import Activity, GroupLanes
from groupstorm.report.page.steps import Samples, Steps

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

#: Rows with which partitions come, or go.
_CHANGES: Final = frozenset({"scenario_started", "partitions_created", "partitions_deleted"})
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


class GroupHistory(GroupLanes):
    """Reads beside an explanation. It counts from ``from_us`` on."""

    def __init__(self, from_us: int) -> None:
        super().__init__()
        self.from_us = from_us
        #: Members that have owned a partition, in the order in which they took one.
        self.numbers: dict[str, int] = {}
        #: The number of each partition's owner, or one of the values above.
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
        found = self.members.get(member)
        return member if found is None else found.label

    def gap_closed(self, gap: ClosedGap) -> None:
        """Keep the gap if it is among the longest."""
        self._closed += 1
        one = gap.gap_us, self._closed, gap
        if len(self._gaps) < GAPS_MAX:
            heappush(self._gaps, one)
        else:
            heappushpop(self._gaps, one)

    def add(self, row: Row, figures: FiguresAccumulator) -> None:
        event, now_us, knew = row["event"], row["time_us"], self.knows_owners
        changed = dict.fromkeys(row["partitions"] if event in _CHANGES else ())
        for partition, name, _ in self._changes:
            changed[partition] = None
            self.numbers.setdefault(name, len(self.numbers))
        for member in self.take(row, figures):
            activity = member.activity(self.knows_owners)
            self.activities.set(member.name, now_us, ACTIVITIES.index(activity))
        count = figures.unowned_partitions()
        self._unowned_count = count or 0
        without_owner = ABSENT if count is None else UNOWNED
        if without_owner != self._without_owner:  # whether partitions need an owner
            self._without_owner = without_owner
            changed |= dict.fromkeys(self.owners.numbers)
        self._see_owners(changed, now_us, figures)
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
        if knew and not self.knows_owners:
            self.unknown.append((now_us, None))
        elif self.knows_owners and not knew:
            self.unknown[-1] = self.unknown[-1][0], now_us

    def finish(self, end_us: int) -> None:
        """The trace, or the window, ends."""
        self.samples.advance(end_us, self._unowned_count, None)

    def before(self, row: Row, figures: FiguresAccumulator) -> None:
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

    def _see_owners(self, partitions: Iterable[str], now_us: int, figures: FiguresAccumulator) -> None:
        """Draw the owners that these have since the row."""
        for partition in partitions:
            owners = figures.owners(partition)
            if owners is None:
                value = ABSENT
            elif not owners:
                value = self._without_owner
            else:
                value = self.numbers[owners[0]] if len(owners) == 1 else TWO_OWNERS
            self.owners.set(partition, now_us, value)
