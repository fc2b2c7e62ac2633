"""One group of a watched trace: its figures, who began its rebalances, and how it is now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from groupstorm.explain.recorder import Recorder
from groupstorm.figures.table import Figures
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.reader import Row
from groupstorm.watch.feed import WatchedRow

Begun = tuple[str, str]
"""The cause that began a rebalance, and the member that did ("" if no row names one)."""


class Now(NamedTuple):
    """The state of a group at one instant; a field is None if it is not known.

    ``unowned``: partition -> since when it has had no owner. ``staleness_us``: how long the oldest
    unprocessed record has waited. ``waiting``: unprocessed records.
    """

    unowned: Mapping[str, int] | None
    staleness_us: int | None
    waiting: float | None


@dataclass(frozen=True, slots=True)
class GroupPicture:
    """The figures of one group over a span, and how it is at the span's end.

    ``begun``: rebalances by what began them and who. ``unowned_us_by``: what they cost. ``at_least``: times
    without an owner are lower bounds, since the rows of the coordinator alone say who owned what. ``why``:
    why times without an owner are not known, "" if they are. ``are_least``: the trace may lack rebalances.
    ``open_us``: how long the partitions that have no owner now have had none in the span, summed.
    """

    group: str
    figures: Figures
    begun: Counter[Begun]
    unowned_us_by: Counter[Begun]
    at_least: bool
    why: str
    now: Now
    are_least: bool = False
    open_us: int = 0

    @property
    def culprit(self) -> str:
        """The member whose rebalances cost most or, at equal cost, that began most; "" without one."""
        members = {member for _, member in self.begun if member}
        return max(sorted(members), key=self.cost_of, default="")

    def cost_of(self, member: str) -> tuple[int, int]:
        """Return the microseconds without an owner that a member's rebalances cost, and their number."""
        return (
            sum(us for (_, one), us in self.unowned_us_by.items() if one == member),
            sum(count for (_, one), count in self.begun.items() if one == member),
        )


class WatchedGroup:
    """Takes the rows of one group, in their order. `snapshot` can copy it."""

    def __init__(self, name: str = "", first_us: int = 0) -> None:
        self._name = name
        self._from_us = 0
        #: Client ids that several members have had at once; client id -> the member that came last.
        self._shared: set[str] = set()
        self._newest: dict[str, str] = {}
        self._recorder = Recorder(name, 0, first_us)
        self._recorder.count_from(0)  # also of a storm whose figures begin later (`figures_from`)

    def add(self, one: WatchedRow) -> None:
        if one.entry is not None:
            self._see(one.row)
            self._recorder.add(one.row, one.entry)

    def count_from(self, from_us: int) -> None:
        """Count from ``from_us`` on, a time after all rows so far."""
        self._from_us = from_us
        self._recorder.count_from(from_us)

    def forget(self) -> None:
        """Drop what only figures of the rows so far need."""
        self._recorder.forget()

    def picture(self, end_us: int) -> GroupPicture:
        """The picture at ``end_us``, no earlier than the last row; to be called once."""
        figures = self._recorder.figures
        now = Now(
            figures.unowned_now(end_us), figures.oldest_record_us(end_us), figures.waiting_records(end_us)
        )
        history, totals = self._recorder.finish(end_us)
        begun: Counter[Begun] = Counter()
        costs: Counter[Begun] = Counter()
        for one in history.rebalances:
            if one.begun_us >= self._from_us:
                # nobody is to blame for the group's start
                key = one.cause, "" if one.first_waits_us else self._named(one.culprit)
                begun[key] += 1
                # else the times are those of two descriptions, or nobody owns partitions
                if not history.rebalances_are_least and not history.is_shared:
                    costs[key] += one.unowned_us
        why = totals.unknown_owners or totals.unknown_absences or ""
        at_least, are_least = totals.unowned_is_least, totals.generations_are_least
        sum_us = sum(end_us - max(us, self._from_us) for us in (now.unowned or {}).values())
        return GroupPicture(self._name, totals.figures(), begun, costs, at_least, why, now, are_least, sum_us)

    def _named(self, member: str) -> str:
        """The client id of a member, which stays over restarts, unless others have it, too."""
        client = self._recorder.members.client(member)
        if client not in self._shared:
            return client
        return member if client in member else f"{member} ({client})"

    def _see(self, row: Row) -> None:
        """A member sends something though a newer one has its client id: both are there, none has crashed."""
        event, client, member_id = row["event"], row.get("member", ""), row.get("member_id", "")
        if event in ("member_added", "member_replaced"):
            self._newest[client] = member_id
        is_sent = event in ("join_parked", "member_reconciled") or row.get("cause") == Cause.LEFT
        if is_sent and self._newest.get(client, member_id) != member_id:
            self._shared.add(client)
        if event == "member_removed" and self._newest.get(client) == member_id:
            del self._newest[client]
