"""A trace, read once: the history of each of its groups, and the patterns in it; or one member's part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from groupstorm.explain.advice import advice_for, presets_for
from groupstorm.explain.findings import Finding, find
from groupstorm.explain.history import History
from groupstorm.explain.patterns import PATTERNS
from groupstorm.explain.recorder import Recorder
from groupstorm.figures.accumulator import WHOLE, FiguresAccumulator, Window
from groupstorm.history.gaps import ClosedGap, Handler, nearest_rank
from groupstorm.history.phases import Reason
from groupstorm.history.reasons import GapReasons, Reasons
from groupstorm.history.rebalances import Absence, Row
from groupstorm.imports.output import writers_of_logs
from groupstorm.problems import InputError
from groupstorm.trace.events.imported import SIMPLE_COMMIT
from groupstorm.trace.reader import read_entries
from groupstorm.trace.rows import TraceEntry
from groupstorm.wording import counted, lasting, listed, some

_MINUTE_US: Final = 60_000_000
#: The group's time is cut into slices of the longest of these lengths of which it has at least `SLICES_MIN`.
SLICES_US: Final = (60 * _MINUTE_US, 10 * _MINUTE_US, _MINUTE_US)
SLICES_MIN: Final = 4
#: Quiet are the slices with the fewest rebalances, so many in a hundred.
QUIET_PERCENT: Final = 25
#: A slice stands out if it has more than so many times the baseline, and at least so many more.
TIMES: Final = 2
MORE: Final = 2


class Reader:
    """Reads the rows of one group beside the explanation, in the same pass, and hears what they mean: an
    `OwnershipListener`."""

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {}

    def before(self, row: Row, figures: FiguresAccumulator) -> None:
        """A row comes; ``figures`` have taken those before it."""

    def add(self, row: Row, figures: FiguresAccumulator) -> None:
        """Take the row, which ``figures`` have taken, too."""

    def interval_begun(self, partition: str, member: str, position: int | None) -> None:
        pass

    def interval_ended(self, partition: str, member: str, position: int | None) -> None:
        pass

    def gap_closed(self, gap: ClosedGap) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Explanation:
    """One group: what it did, which patterns that has, and the absences that no pattern explains.
    ``reasons``: what un-owned time was spent on. ``alone``: if no log but that of one member tells of the
    group, and does not say who owned what, or not from its beginning on."""

    history: History
    findings: list[Finding]
    absences: list[Absence]
    baseline: Baseline
    reasons: Reasons
    alone: Alone | None = None


class _Group:
    """The readers of one group's rows."""

    def __init__(self, group: str, from_us: int, first_us: int, reader: Reader) -> None:
        self.from_us = from_us
        self.reasons = GapReasons(from_us)
        self.recorder = Recorder(group, from_us, first_us, (self.reasons, reader))
        self.reader = reader
        self.one_member = OneMember()

    def add(self, row: Row, entry: TraceEntry) -> None:
        self.reader.before(row, self.recorder.figures)
        self.recorder.add(row, entry)
        self.reader.add(row, self.recorder.figures)
        self.one_member.add(row)

    def explanation(self, end_us: int, writers: Mapping[str, str]) -> Explanation:
        """To be called once. ``writers``: log -> the client library that wrote it."""
        history, _ = self.recorder.finish(end_us)
        reasons = self.reasons.reasons()
        if history.is_consumer_group and history.has_member_rows:
            us = reasons.us
            history.handover_waits_us = us.get(Reason.NEXT_HEARTBEAT, 0), us.get(Reason.NEXT_POLL, 0)
        logs = history.settings.logs.items()
        history.settings.libraries.update({member: writers[log] for member, log in logs if log in writers})
        known_us = None if history.unowned_us is None else self.recorder.figures.owned_from_us
        alone = self.one_member.found(known_us) if history.is_imported else None
        clients = [log for log, writer in writers.items() if writer != "broker"]
        is_unknown = history.is_imported and known_us is None
        history.is_of_one_member = is_unknown and self.one_member.is_only(clients)
        return _explained(history, reasons, alone)


def explain(
    trace: Path,
    groups: frozenset[str] = frozenset(),
    window: Window = WHOLE,
    reader: Callable[[str, int], Reader] | None = None,
) -> list[Explanation]:
    """Explain every group of a trace, or those in ``groups``, in the order of their names.

    ``reader``: makes a reader for a group, whose figures count from that time on.

    Counts from ``window.from_us`` on; from 0 on if it is 0, or as the scenario of a storm says
    (`figures_from`). Raises InputError for a trace without rows, or that ends before that time, a row that is
    none, or a group that the trace does not have.
    """
    found: dict[str, _Group] = {}
    names: dict[str, None] = {}
    now_us = -1
    for row, entry in read_entries(trace):
        now_us, group = row["time_us"], row["group"]
        if not window.holds(now_us):
            continue
        names[group] = None
        if groups and group not in groups:
            continue
        one = found.get(group)
        if one is None:
            from_us = window.counted_from(None if entry is None else entry[2])
            beside = Reader() if reader is None else reader(group, from_us)
            one = found[group] = _Group(group, from_us, now_us, beside)
        if entry is not None:
            one.add(row, entry)
    if now_us < 0:
        raise InputError(f"{trace}: the trace has no rows")
    for group in sorted(groups - names.keys()):
        raise InputError(f"--group {group}: not in the trace; there are: {some(names)}")
    end_us = window.end(now_us)
    for one in found.values():
        window.check(trace, one.from_us, end_us)
    # of logs that one program wrote
    writers = {log: names[0] for log, names in writers_of_logs(trace).items() if len(names) == 1}
    return [found[name].explanation(end_us, writers) for name in sorted(found)]


def _explained(history: History, reasons: Reasons, alone: Alone | None) -> Explanation:
    findings = find(history, PATTERNS)
    for one in findings:
        one.pattern = one.pattern._replace(advice=advice_for(one, history), presets=presets_for(one, history))
    taken = {id(one) for finding in findings for one in finding.absences}
    absences = [one for one in history.absences if id(one) not in taken]
    return Explanation(history, findings, absences, baseline(history), reasons, alone)


class Baseline(NamedTuple):
    """``per_slice``: so many rebalances the quiet slices of ``slice_us`` have at most; None if the time is
    too short for one.

    ``busy``: the slices that stand out: when they begin, and their rebalances.
    """

    slice_us: int
    slices: int
    per_slice: int | None
    busy: tuple[tuple[int, int], ...]


def baseline(history: History) -> Baseline:
    """The lower quartile over the slices (nearest rank): deployments do not move it if a quarter of the
    time has none."""
    from_us = max(history.from_us, history.first_us)
    lasted_us = history.to_us - from_us
    slice_us = next((one for one in SLICES_US if lasted_us >= SLICES_MIN * one), None)
    if slice_us is None:
        return Baseline(SLICES_US[-1], 0, None, ())
    slices = lasted_us // slice_us + (lasted_us % slice_us > 0)
    counts = Counter(
        (one.begun_us - from_us) // slice_us for one in history.rebalances if one.begun_us >= from_us
    )
    # a damaged time may make years of it, so slices without a rebalance are counted and not listed
    empty, rank = slices - len(counts), nearest_rank(slices, QUIET_PERCENT)
    quiet = 0 if rank <= empty else sorted(counts.values())[rank - empty - 1]
    busy = [
        (from_us + number * slice_us, count)
        for number, count in sorted(counts.items())
        if count > TIMES * quiet and count >= quiet + MORE
    ]
    return Baseline(slice_us, slices, quiet, tuple(busy))


#: Causes of `rejoin_requested` that are no wish of the member's own to join again.
_TOLD, _UNSAID = "group-rebalancing", "unknown"
_TOO_SLOW: Final = "poll-timeout"
_NOT_AGAIN: Final = frozenset({_TOLD, _UNSAID, "first-join", "left-group"})
_GIVES_UP: Final = frozenset({"partitions_revoked", "partitions_lost"})
_NOT_KNOWN: Final = (
    "Who began other rounds, who else came and went, and for how long other partitions had no owner, its "
    "log does not say: add the log of the group's coordinator, or of its leaders, which name all members."
)


class Alone(NamedTuple):
    """``told``: how often the member was told that the group rebalances; ``own``: why it joined again itself,
    and how often; ``unsaid``: how often no line says why. ``without_us``: each time that it had no partitions
    between two generations. ``known_us``: from when on the owners are known, if they are."""

    member: str
    told: int
    own: Mapping[str, int]
    unsaid: int
    without_us: tuple[int, ...]
    known_us: int | None = None

    @property
    def sentence(self) -> str:
        left = self.own.get(_TOO_SLOW, 0)
        again = [cause for cause in self.own if cause != _TOO_SLOW]
        times = counted(sum(self.own[cause] for cause in again), "time")
        did = [
            f"was told {counted(self.told, 'time')} that the group rebalances" if self.told else "",
            f"left {counted(left, 'time')} because it had not polled ({_TOO_SLOW})" if left else "",
            f"had to join again {times} ({listed(again)})" if again else "",
            f"joined {counted(self.unsaid, 'time')} for a reason that no line says" if self.unsaid else "",
        ]
        text = f"Only {self.member} is heard: it {listed([one for one in did if one])}. "
        if self.without_us:
            text += (
                f"It was without partitions {counted(len(self.without_us), 'time')}, for "
                f"{lasting(sum(self.without_us))} in all, {lasting(max(self.without_us))} at the "
                "longest. "
            )
        return text + _NOT_KNOWN


class OneMember:
    """Takes the rows of one group, in their order."""

    def __init__(self) -> None:
        self._logs: set[str] = set()
        self._members: set[str] = set()
        self._causes: Counter[str] = Counter()
        self._owned: set[str] = set()
        self._since_us: int | None = None
        self._without_us: list[int] = []
        #: When it left because it had not polled, with partitions that no line before names.
        self._left_us: int | None = None
        self._first_us: int | None = None

    def add(self, row: Row) -> None:
        if row.get("api") == SIMPLE_COMMIT:
            return
        self._logs.update(place.rpartition(":")[0] for place in row.get("evidence") or ())
        event = row["event"]
        if row["source"] != "member" or "member" not in row:
            return
        self._members.add(row["member"])
        if event == "rejoin_requested":
            self._causes[row.get("cause") or _UNSAID] += 1
            if row.get("cause") == _TOO_SLOW and self._owned:
                # it has left: its partitions go to others long before it polls and loses them itself
                self._owned.clear()
                self._lost(row["time_us"])
            elif row.get("cause") == _TOO_SLOW and self._since_us is None:
                self._left_us = row["time_us"]
        elif event in ("member_started", "member_closed", "member_crashed"):
            self._owned.clear()
            self._since_us = self._left_us = None
        elif event == "partitions_assigned":
            self._owned.update(row["partitions"])
            if self._owned and self._since_us is not None:
                self._without_us.append(row["time_us"] - self._since_us)
                self._since_us = None
            self._left_us = None
        elif event in _GIVES_UP and (self._owned or self._left_us is not None):
            self._owned.difference_update(row["partitions"])
            if not self._owned and row["partitions"] and row.get("cause") != "close":
                self._lost(row["time_us"] if self._left_us is None else self._left_us)
                self._left_us = None

    def _lost(self, now_us: int) -> None:
        self._since_us = now_us
        self._first_us = now_us if self._first_us is None else self._first_us

    def is_only(self, clients: Collection[str]) -> bool:
        """Whether the log of one member alone tells of the group. ``clients``: the logs of clients."""
        return len(self._logs) == 1 and self._logs <= {*clients} and len(self._members) < 2

    def found(self, known_us: int | None) -> Alone | None:
        """None if more logs than one tell of the group, or other members than one, or if the owners are known
        since before the member lost its partitions. ``known_us``: from when on they are."""
        if len(self._logs) != 1 or len(self._members) != 1:
            return None
        if known_us is not None and (self._first_us is None or known_us <= self._first_us):
            return None
        own = {cause: count for cause, count in self._causes.items() if cause not in _NOT_AGAIN}
        if not own and not self._causes[_TOLD]:
            return None
        [member] = self._members
        without_us = tuple(filter(None, self._without_us))  # 0 if one line says what it lost and what it has
        return Alone(member, self._causes[_TOLD], own, self._causes[_UNSAID], without_us, known_us)
