"""One pass over the rows of a trace: what each member was seen doing, the rounds, topics and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.figures.table import Figures
from groupstorm.history.unknown import figures_from_us, json_object, settings_of
from groupstorm.problems import InputError
from groupstorm.storms.scenario.settings import read
from groupstorm.trace.events import coordinator, imported, member, scenario
from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.trace.events.group_states import Cause, GroupState
from groupstorm.trace.events.imported import MembersBack, MembersGone
from groupstorm.trace.reader import Row, read_entries
from groupstorm.trace.rows import TraceEntry
from groupstorm.trace.schema import Source
from groupstorm.whatif import facts as signs
from groupstorm.whatif.facts import Reading, Sign
from groupstorm.wording import some

#: Events, and steps of a storm, after which a replay cannot repeat what happened -> what they mean.
_NOT_IN_SCENARIOS: Final[Mapping[str, str]] = {
    "group_deleted": "the group was deleted, expired, or lost its coordinator",
    "group_converted": "the group changed its protocol (KIP-848's migration)",
    "append_failed": "the coordinator could not write its records",
    "operation_failed": "an operation of the coordinator broke off",
    "partitions_deleted": "a topic was deleted",
    "slow-appends": "the coordinator wrote its records slowly (slow-appends)",
    **{do: f"the network failed ({do})" for do in ("disconnect", "partition", "reconnect-storm")},
}
#: Rows that only threads of a Kafka Streams application have.
_OF_THREADS: Final = frozenset({"tasks_created", "instance_started", "follow_up_scheduled", "task_running"})
#: Events of members that come: a group that had none goes on.
_OF_MEMBERS: Final = (coordinator.MemberPending, coordinator.MemberAdded, coordinator.JoinParked)
#: Causes of `member_removed` by which the coordinator, and no member, ended a membership.
_LOST_BY_COORDINATOR: Final = frozenset({Cause.UNLOADED, Cause.FAILED, Cause.DELETED, Cause.OVER_CAPACITY})


def read_run(path: Path, group: str | None = None) -> Reading:
    """Read one group of the trace at ``path``. Raises InputError.

    ``group``: its id; needed if the trace has several.
    """
    readers: dict[str, _Reader] = {}
    last_us = 0
    for row, entry in read_entries(path):
        last_us = row["time_us"]
        if group is not None and row["group"] != group:
            continue
        reader = readers.get(row["group"])
        if reader is None:
            reader = readers[row["group"]] = _Reader(row["group"], path)
        reader.add(row, entry)
    if not readers:
        raise InputError(f"--group {group}: no row of {path} names it" if group else f"{path}: has no rows")
    if len(readers) > 1:
        raise InputError(f"{path}: has the groups {some(readers)}: name one with --group")
    (reader,) = readers.values()
    return reader.finish(last_us)


class LivedFigures:
    """A time without members counts, as in a storm, if somebody comes back after it."""

    def __init__(self) -> None:
        self._figures = FiguresAccumulator()
        #: When the members had gone, and the rows since then; None if the group has members.
        self.gone_us: int | None = None
        self._since_gone: list[TraceEntry] = []

    def add(self, entry: TraceEntry) -> None:
        time_us, _, event = entry
        if _is_gone(event):
            self.gone_us = time_us if self.gone_us is None else self.gone_us
        elif _is_back(event):
            self._come_back()
        if isinstance(event, MembersGone | MembersBack):
            return  # with which the figures of an import leave the time out
        if self.gone_us is None:
            self._figures.add(*entry)
        else:
            self._since_gone.append(entry)

    def _come_back(self) -> None:
        self.gone_us = None
        for one in self._since_gone:
            self._figures.add(*one)
        self._since_gone.clear()

    @property
    def owned_from_us(self) -> int | None:
        """See `FiguresAccumulator`."""
        return self._figures.owned_from_us

    def figures(self, ended_us: int) -> Figures:
        """``ended_us``: the time of the last row. To be called once."""
        return self._figures.figures(ended_us if self.gone_us is None else self.gone_us)


def _is_gone(event: object) -> bool:
    is_empty = isinstance(event, GroupStateChanged) and event.state == GroupState.EMPTY
    return is_empty or isinstance(event, MembersGone)


def _is_back(event: object) -> bool:
    return isinstance(event, GroupStateChanged | MembersBack) and not _is_gone(event)


class _Reader:
    """Takes the rows of one group in their order."""

    def __init__(self, group: str, path: Path) -> None:
        self.reading = Reading(group, path)
        #: The figures of a storm, and of any other trace.
        self._figures = FiguresAccumulator()
        self._lived = LivedFigures()
        self._place = ""
        self._now_us = 0
        self._inferred = False
        #: Whether the row says by when something had happened, and not since when.
        self._by_then = False
        #: The partitions of each member, if its own rows say it.
        self._owned: dict[str, set[str]] = {}
        #: Problems if the group lives on after them: what happened while it had no members, and that its
        #: coordinator let go of it.
        self._unless_over: list[str] = []
        self._handlers: Mapping[type, Callable[[Any], None]] = {
            scenario.ScenarioStarted: self._scenario,
            scenario.PartitionsCreated: self._created,
            scenario.RecordRatesChanged: self._offsets,
            imported.GroupImported: self._imported,
            imported.EvidenceMissing: self._missing,
            imported.MemberConfigured: self._configured,
            imported.BrokerConfigured: self._broker_configured,
            coordinator.OffsetsCommitted: self._offsets,
            coordinator.GroupStateChanged: self._state,
            coordinator.MemberAdded: self._added,
            coordinator.MemberPending: lambda event: self._sign(event, signs.JOINED),
            coordinator.MemberReplaced: self._replaced,
            coordinator.MemberRemoved: self._removed,
            coordinator.JoinParked: lambda event: self._sign(event, signs.PARKED),
            coordinator.SyncAnswered: self._synced,
            coordinator.MemberReconciled: self._reconciled,
            member.MemberStarted: self._started,
            member.RejoinRequested: self._rejoin,
            member.PartitionsAssigned: self._assigned,
            member.PartitionsRevoked: self._revoked,
            member.PartitionsLost: self._lost,
            member.MemberCrashed: self._crashed,
            member.MemberPaused: self._paused,
            member.MemberClosed: lambda event: self._sign(event, signs.CLOSED, event.cause),
            member.MemberFailed: lambda event: self._sign(event, signs.FAILED, event.error),
        }

    def add(self, row: Row, entry: TraceEntry | None) -> None:
        self._now_us = row["time_us"]
        evidence = row.get("evidence")
        self._place = ", ".join(evidence[:2]) if evidence else f"row {row['seq']}, {row['event']}"
        self._inferred = row.get("provenance") == "inferred"
        self._by_then = row.get("latest_us") is not None and row.get("earliest_us") is None
        self.reading.has_thread_rows = self.reading.has_thread_rows or row["event"] in _OF_THREADS
        why = _NOT_IN_SCENARIOS.get(row.get("cause", "") if row["event"] == "step_taken" else row["event"])
        is_unloaded = row["event"] == "group_deleted" and row.get("cause") == Cause.UNLOADED
        if why is not None and (is_unloaded or self._lived.gone_us is not None):
            self._unless_over.append(self._described(why))
        elif why is not None:
            self._problem(self._described(why))
        if entry is None:
            return
        if self.reading.is_storm or isinstance(entry[2], scenario.ScenarioStarted):
            self._figures.add(*entry)
        else:
            self._lived.add(entry)
        is_back = self._lived.gone_us is None or isinstance(entry[2], _OF_MEMBERS)
        if why is None and entry[1] is Source.COORDINATOR and is_back:
            while self._unless_over:
                self._problem(self._unless_over.pop(0))
        if entry[1] is Source.MEMBER:
            self.reading.has_member_rows = True
        self.reading.rounds.add(entry[0], entry[2])
        handler = self._handlers.get(type(entry[2]))
        if handler is not None:
            handler(entry[2])

    def finish(self, ended_us: int) -> Reading:
        """``ended_us``: the time of the last row. A real group ends when its members have gone for good: the
        log of its broker goes on, and no partition needs an owner."""
        reading = self.reading
        if reading.is_storm:
            reading.ended_us = ended_us
            reading.figures = self._figures.figures(ended_us)
        else:
            reading.ended_us = ended_us if self._lived.gone_us is None else self._lived.gone_us
            reading.figures = self._lived.figures(ended_us)
            reading.figures_from_us = self._lived.owned_from_us or 0
        return reading

    def _described(self, sentence: str) -> str:
        return f"{sentence} (at {self._now_us / 1e6:,.1f} s: {self._place})"

    def _problem(self, sentence: str) -> None:
        """Note it once, with its first place. ``sentence``: as `_described` gives it."""
        known = [problem.split(" (at ")[0] for problem in self.reading.problems]
        if sentence.split(" (at ", maxsplit=1)[0] not in known:
            self.reading.problems.append(sentence)

    def _sign(
        self, event: Any, kind: str, detail: str = "", for_us: int = 0, at_us: int | None = None
    ) -> None:
        """``at_us``: the time of the row if None."""
        name = event.member
        if name is None:
            return
        member_id = getattr(event, "member_id", "")
        time_us = self._now_us if at_us is None else at_us
        sign = Sign(time_us, kind, detail, self._place, for_us, self.reading.rounds.began_us, member_id)
        self.reading.signs.setdefault(name, []).append(sign)

    # -- the trace itself ------------------------------------------------------------------------

    def _scenario(self, event: scenario.ScenarioStarted) -> None:
        self.reading.scenario = settings_of(event)
        for name in ("client_profile", "member_settings"):
            if self.reading.scenario.get(name):
                read(name, self.reading.scenario[name], f"{self._place}: ")
        self.reading.figures_from_us = figures_from_us(event) or 0
        self._partitions(event.partitions)

    def _created(self, event: scenario.PartitionsCreated) -> None:
        for topic in event.topics:
            if topic not in self.reading.topics:
                self._problem(self._described("a topic was created"))
                return
            self.reading.first_counts.setdefault(topic, self.reading.topics[topic])
        self._partitions(event.partitions)
        for topic in event.topics:
            count = self.reading.topics[topic]
            self.reading.grown.append((self._now_us, topic, count, self._place))

    def _offsets(self, event: scenario.RecordRatesChanged | coordinator.OffsetsCommitted) -> None:
        known = self.reading.log_ends
        if isinstance(event, coordinator.OffsetsCommitted):
            known = self.reading.commits if event.error is None else {}
        for name, offset in zip(event.partitions, event.positions, strict=True):
            now = (self._now_us, offset)
            known[name] = known.get(name, (now, now))[0], now

    def _imported(self, event: imported.GroupImported) -> None:
        self.reading.imported_view = event.cause

    def _missing(self, event: imported.EvidenceMissing) -> None:
        self.reading.missing.setdefault(event.cause, event.detail)

    def _configured(self, event: imported.MemberConfigured) -> None:
        known = self.reading.configured.get(event.member, {})
        self.reading.configured[event.member] = {**known, **json_object(event.detail)}

    def _broker_configured(self, event: imported.BrokerConfigured) -> None:
        found = {name: (value, self._place) for name, value in json_object(event.detail).items()}
        self.reading.broker_configured.update(found)

    # -- the coordinator -------------------------------------------------------------------------

    def _state(self, event: coordinator.GroupStateChanged) -> None:
        if event.protocol:
            self.reading.assignors.setdefault(event.protocol, self._place)

    def _added(self, event: coordinator.MemberAdded) -> None:
        self._instance(event.member, event.instance)
        round_us = self.reading.rounds.began_us
        if self.reading.rounds.first_join_phase_us is None:
            # a member whose JoinGroup no row has joined soon after the first one
            soon_us = self._now_us if round_us is None else round_us + 1
            self.reading.first_joins_us.append(soon_us if self._inferred else self._now_us)
        if self._by_then and round_us is not None:
            self._sign(event, signs.JOINED, signs.IN_ROUND, at_us=round_us)
        else:
            self._sign(event, signs.JOINED)

    def _replaced(self, event: coordinator.MemberReplaced) -> None:
        self._instance(event.member, event.instance)
        self._sign(event, signs.REPLACED)

    def _removed(self, event: coordinator.MemberRemoved) -> None:
        if event.cause in _LOST_BY_COORDINATOR:
            self._problem(self._described("the group lost its coordinator, which forgot its members"))
        self._sign(event, signs.REMOVED, event.cause)

    def _synced(self, event: coordinator.SyncAnswered) -> None:
        if event.error is None:
            self._partitions(event.partitions or ())
            self._sign(event, signs.SYNCED)

    def _reconciled(self, event: coordinator.MemberReconciled) -> None:
        self._partitions(event.partitions)
        self._sign(event, signs.SYNCED)

    # -- the members -----------------------------------------------------------------------------

    def _started(self, event: member.MemberStarted) -> None:
        self._instance(event.member, event.instance)
        self.reading.subscriptions[event.member] = tuple(sorted(event.topics))
        self._sign(event, signs.STARTED)

    def _rejoin(self, event: member.RejoinRequested) -> None:
        self._sign(event, signs.REJOIN, event.cause)
        began_us = self.reading.rounds.began_us
        if event.cause == "group-rebalancing" and began_us is not None:
            self.reading.learned_us.append(self._now_us - began_us)

    def _assigned(self, event: member.PartitionsAssigned) -> None:
        self._owned.setdefault(event.member, set()).update(event.partitions)
        self._partitions(event.partitions)

    def _lost(self, event: member.PartitionsLost) -> None:
        self._owned.pop(event.member, None)
        self._sign(event, signs.LOST, event.cause)

    def _revoked(self, event: member.PartitionsRevoked) -> None:
        owned = self._owned.setdefault(event.member, set())
        owned.difference_update(event.partitions)
        if event.cause == "close":
            self._sign(event, signs.CLOSING, event.cause)
        elif event.partitions and not owned:
            self._sign(event, signs.REVOKED, event.cause)

    def _crashed(self, event: member.MemberCrashed) -> None:
        if not self._inferred:
            self._sign(event, signs.CRASHED)

    def _paused(self, event: member.MemberPaused) -> None:
        self._sign(event, signs.PAUSED, event.cause, event.duration_us)

    def _instance(self, name: str | None, instance: str | None) -> None:
        if name is not None and instance is not None:
            self.reading.instances[name] = instance

    def _partitions(self, names: Iterable[str]) -> None:
        topics = self.reading.topics
        for name in names:
            topic, _, number = name.rpartition("-")
            if topic and number.isdigit():
                topics[topic] = max(topics.get(topic, 0), int(number) + 1)
