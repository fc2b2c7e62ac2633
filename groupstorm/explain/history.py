"""The history of a group for the rules of `patterns`: rebalances, members, incidents.

A history grows with rebalances, members and incidents, never with the rows of a trace. All times are
microseconds since the trace began; a `Row` is a row of the trace as `groupstorm.trace.reader` gives it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from groupstorm.explain.incidents import Refusal
from groupstorm.explain.stuck_records import StuckRecord, Uncommitted
from groupstorm.explain.work import Work
from groupstorm.figures.table import Figures
from groupstorm.history.gaps import ClosedGap
from groupstorm.history.rebalances import Absence, Change, ChangeKind, Rebalance, Round, Row, SlowRevocation
from groupstorm.history.unknown import REBALANCES, WITHOUT_OWNERS
from groupstorm.imports.timeline.group import NO_PARTITIONS
from groupstorm.imports.timeline.streams import THREAD
from groupstorm.trace.events.group_states import Cause

#: Rows of so long a time show that a group is quiet, or that nobody comes back.
_QUIET_US: Final = 60_000_000
#: More incidents of one kind are not kept: what they show is clear by then.
_INCIDENTS_MAX: Final = 10_000
#: Kinds of incidents that tell of the group's coordinator.
COORDINATOR_KINDS: Final = ("coordinator-away", "unloaded", "loaded", "coordinator-moved")
#: Causes of a removal that belong to the coordinator, not to the member.
OF_COORDINATOR = frozenset({Cause.UNLOADED, "failed", Cause.GROUP_FULL, Cause.OVER_CAPACITY})


class Incident(NamedTuple):
    """A row that some pattern looks for; ``member`` is "" if the row names none."""

    time_us: int
    member: str
    row: Row


@dataclass(slots=True)
class Settings:
    """Settings of a group's members, as far as the trace has them.

    ``of_group``: by Kafka's names, of a storm's scenario; ``of_member``: of members whose log or setting says
    something else. ``libraries``: member -> client library. ``logs``: member -> the log that it wrote.
    """

    of_group: Mapping[str, Any] = field(default_factory=dict)
    of_member: dict[str, dict[str, str]] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)

    def get(self, name: str, member: str = "") -> Any:
        """A setting; None if it is not known."""
        own = self.of_member.get(member, {}).get(name)
        return own if own is not None else self.of_group.get(name)

    def number(self, name: str, member: str = "") -> int | None:
        """A setting that is a whole number; None if it is not known."""
        value = self.get(name, member)
        if isinstance(value, bool):
            return None
        if isinstance(value, int):
            return value
        return int(value) if isinstance(value, str) and value.isdecimal() else None


@dataclass(slots=True)
class History:
    """One group from ``from_us`` to ``to_us``; its rows are of ``first_us`` to ``last_us``. ``missing``: what
    an imported trace does not know, by cause.

    ``began_empty``, ``is_empty``: whether the group had no members when its rows begin (or what it had is not
    known), and when they end.
    ``active_us``: of the last row that tells of something else than the coordinator's end.
    ``has_member_rows``: False if the rows of the coordinator alone say who owns what. ``incidents``: by the
    names in `incidents`. ``subscriptions``: member -> the topics of its last start, with that row.
    ``repeated``, ``stood``: see `stuck_records.StuckRecords`. ``figures``: of the same time, None until the
    history is complete.
    """

    group: str
    from_us: int = 0
    to_us: int = 0
    first_us: int = 0
    last_us: int = 0
    active_us: int = 0
    began_empty: bool | None = None
    is_empty: bool = False
    has_member_rows: bool = False
    is_consumer_group: bool = False
    rebalances: list[Rebalance] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    #: Members that had come and not gone before `from_us`, by the rows.
    members_before: int = 0
    incidents: dict[str, list[Incident]] = field(default_factory=dict)
    subscriptions: dict[str, tuple[tuple[str, ...], Row]] = field(default_factory=dict)
    slow_revocations: list[SlowRevocation] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    missing: dict[str, str] = field(default_factory=dict)
    scenario: str = ""
    began: str = ""
    is_imported: bool = False
    #: In a consumer group, un-owned time in which new owners waited for their next heartbeat, and for the
    #: next poll().
    handover_waits_us: tuple[int, int] | None = None
    repeated: list[StuckRecord] = field(default_factory=list)
    stood: list[StuckRecord] = field(default_factory=list)
    uncommitted: Uncommitted = field(default_factory=Uncommitted)
    #: In an import, the times in which the group had no members.
    without_members: list[tuple[int, int]] = field(default_factory=list)
    #: The connectors and tasks of a group of Kafka Connect.
    work: Work = field(default_factory=Work)
    figures: Figures | None = None
    #: Downtime in which a task of Kafka Streams was restored from the beginning of its changelog.
    from_scratch_down_us: int = 0
    #: Requests of members that were refused.
    refusals: list[Refusal] = field(default_factory=list)
    #: Member -> how often it said that it has to join (again).
    attempts: Counter[str] = field(default_factory=Counter)
    #: Member -> how often it was given partitions.
    assignments: Counter[str] = field(default_factory=Counter)
    #: In an import, how many lines of logs its rows come from, and generations that the logs skip.
    lines: int = 0
    generations_hidden: int = 0
    #: Whether only one member's log tells of the group, and not all owners: others may have had more rounds.
    is_of_one_member: bool = False
    #: Whether partitions had no owner for longer than is counted: the rows of the coordinator alone say who
    #: owned what, or members died of which nothing says when.
    unowned_is_least: bool = False

    @property
    def rebalances_are_least(self) -> bool:
        """Whether there may be more, and how long they lasted is not known: the group was only described."""
        return REBALANCES in self.missing

    @property
    def rebalances_at_least(self) -> int:
        """The rebalances that the generations show: the second round of a cooperative one has a generation
        of its own. Without generations, as many as the times that one member was given partitions."""
        rounds = sum(len(one.rounds) for one in self.rebalances)
        hidden = self.generations_hidden
        given = max(self.assignments.values(), default=0) if self.is_imported and not rounds else 0
        return max(len(self.rebalances), -(-(rounds + hidden) // 2) if hidden else 0, given)

    @property
    def outage_us(self) -> int | None:
        """For how long the group has been without members when the trace ends, if the last one did not leave:
        its session expired, and its own rows do not say that it was closed. None otherwise, or if the trace
        ends within a minute."""
        last = next((one for one in reversed(self.changes) if one.kind is ChangeKind.WENT), None)
        gone = self.without_members[-1] if self.without_members else None
        if last is None or gone is None or gone[1] < self.to_us or not self.is_empty:
            return None
        expired = last.cause == Cause.SESSION_EXPIRED and not last.is_closed
        return gone[1] - gone[0] if expired and gone[1] - gone[0] >= _QUIET_US else None

    @property
    def is_shown_quiet(self) -> bool:
        """Whether the rows show that nothing happened: over a minute of them, and nobody tried to join, came,
        went, was refused or given anything. A storm shows everything."""
        if not self.is_imported:
            return not self.refusals
        seen = self.refusals or self.attempts or self.assignments or self.changes or self.incidents
        return not seen and self.shown_us >= _QUIET_US and self.lines > 1

    @property
    def is_connect(self) -> bool:
        """Whether the members are workers of Kafka Connect, as far as their own logs are there."""
        return self.work.is_seen or self.missing.get("ownership") == NO_PARTITIONS

    @property
    def is_streams(self) -> bool:
        """Whether the members are threads of Kafka Streams, as a scenario or logs say."""
        protocols = {one.get("group.protocol") for one in self.settings.of_member.values()}
        is_told = self.settings.get("application") == "streams" or "streams" in protocols
        return is_told or self.missing.get("ownership") == WITHOUT_OWNERS["streams"]

    @property
    def is_shared(self) -> bool:
        """Whether it is a share group, as a scenario or its coordinator says."""
        is_told = self.missing.get("ownership") == WITHOUT_OWNERS["share"]
        return is_told or self.settings.get("group.protocol") == "share"

    @property
    def has_threads(self) -> bool:
        """Whether members are threads of Kafka Streams, of either protocol, as their names say, too."""
        told = (one.member for one in self.of_kind("member-failed", "out-of-group"))
        names = (*self.attempts, *(one.member for one in self.changes), *told)
        is_theirs = self.is_streams or "streams" in self.settings.libraries.values()
        return is_theirs or any(THREAD in one for one in names)

    @property
    def shown_us(self) -> int:
        """The time over which there are rows, from `from_us` on."""
        return self.last_us - max(self.first_us, self.from_us)

    @property
    def unowned_us(self) -> int | None:
        """The time without an owner, summed over partitions; None if it is not known."""
        if self.figures is None or self.figures.unowned_partition_seconds is None:
            return None
        return round(self.figures.unowned_partition_seconds * 1_000_000)

    def begin_round(self, one: Round, changes: Iterable[Change], continues: bool) -> None:
        """``changes``: the members that came and went before it. ``continues``: it is a part of the last
        rebalance."""
        if not continues:
            self.rebalances.append(Rebalance(len(self.rebalances) + 1))
        self.rebalances[-1].rounds.append(one)
        self.rebalances[-1].changes += changes

    def add_incident(self, kind: str, one: Incident) -> None:
        incidents = self.incidents.setdefault(kind, [])
        if len(incidents) < _INCIDENTS_MAX:
            incidents.append(one)

    def of_kind(self, *kinds: str) -> list[Incident]:
        """The incidents of these kinds, in the order of time."""
        found = [one for kind in kinds for one in self.incidents.get(kind, ())]
        return sorted(found, key=lambda one: int(one.row["seq"]))

    def rebalance_of(self, gap: ClosedGap) -> Rebalance | None:
        """The rebalance of a classic group that ended a time without an owner. If nobody ended it: the one in
        which it began, or that its owner began."""
        found: list[Rebalance] = []
        next_us = None
        for rebalance in reversed(self.rebalances):
            ended_us = next_us if rebalance.ended_us is None else rebalance.ended_us
            next_us = rebalance.begun_us
            if ended_us is not None and ended_us < gap.from_us:
                break
            if rebalance.begun_us <= gap.to_us:
                found.append(rebalance)
                if gap.new_owner is not None:
                    return rebalance
        for one in reversed(found):
            is_open = one.begun_us <= gap.from_us or one.ended_us is None
            if is_open or gap.old_owner in (one.culprit, *(change.member for change in one.changes)):
                return one
        return None

    def is_after_end(self, one: Incident) -> bool:
        """Whether an incident of the coordinator comes after everything else that the group did, and nobody
        is back: the broker was stopped, or the trace goes no further."""
        return one.time_us > self.active_us or (not self.is_imported and one.time_us == self.last_us)

    @property
    def ended(self) -> Incident | None:
        """The row with which the coordinator unloaded the group, if nothing comes after it."""
        return next((one for one in self.of_kind("unloaded") if self.is_after_end(one)), None)

    def went(self) -> list[Change]:
        """Members that went, for a reason of their own."""
        return [
            one for one in self.changes if one.kind is ChangeKind.WENT and one.cause not in OF_COORDINATOR
        ]

    def came(self) -> list[Change]:
        return [one for one in self.changes if one.kind is ChangeKind.CAME]
