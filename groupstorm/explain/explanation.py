"""A trace, read once: the history of each of its groups, and the patterns in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from groupstorm.explain.baseline import Baseline, baseline
from groupstorm.explain.findings import Finding, find
from groupstorm.explain.history import Absence, History, Rebalance
from groupstorm.explain.log_writers import log_writers
from groupstorm.explain.patterns.table import PATTERNS
from groupstorm.explain.recorder import Recorder
from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.figures.by_group import WHOLE, Window
from groupstorm.figures.figures_from import figures_from_us
from groupstorm.figures.reasons import GapReasons, Reason
from groupstorm.problems import InputError
from groupstorm.trace.reader import read_entries


@dataclass(frozen=True, slots=True)
class Explanation:
    """One group: what it did, which patterns that has, and the rebalances and absences that no pattern
    explains."""

    history: History
    findings: list[Finding]
    unexplained: list[Rebalance]
    absences: list[Absence]
    baseline: Baseline


class _Group:
    """The readers of one group's rows."""

    def __init__(self, group: str, from_us: int, first_us: int) -> None:
        self.recorder = Recorder(group, from_us, first_us)
        self.figures = FiguresAccumulator(from_us, self.recorder.close_gap)
        self.reasons = GapReasons()

    def history(self, end_us: int) -> History:
        figures = self.figures.figures(end_us)  # which closes the gaps that are open
        history = self.recorder.finish(end_us)
        history.figures = figures
        us = self.reasons.reasons().us
        if history.is_consumer_group and history.has_member_rows:
            history.handover_waits_us = us.get(Reason.NEXT_HEARTBEAT, 0), us.get(Reason.NEXT_POLL, 0)
        return history


def explain(trace: Path, groups: frozenset[str] = frozenset(), window: Window = WHOLE) -> list[Explanation]:
    """Explain every group of a trace, or those in ``groups``, in the order of their names.

    Counts from ``window.from_us`` on; from 0 on if it is 0, or as the scenario of a storm says
    (`figures_from`). Raises InputError for a trace without rows, a row that is none, or a group that the
    trace does not have.
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
            from_us = window.from_us or (entry is not None and figures_from_us(entry[2])) or 0
            one = found[group] = _Group(group, from_us, now_us)
        if entry is None:
            continue
        one.recorder.add(row)
        one.figures.add(*entry)
        one.reasons.add(*entry)
    if now_us < 0:
        raise InputError(f"{trace}: the trace has no rows")
    for group in sorted(groups - names.keys()):
        raise InputError(f"--group {group}: not in the trace; there are: {', '.join(names)}")
    end_us = window.end(now_us)
    histories = [found[name].history(end_us) for name in sorted(found)]
    writers = log_writers(trace)
    for history in histories:
        known = {member: writers[log] for member, log in history.settings.logs.items() if log in writers}
        history.settings.libraries.update(known)
    return [_explained(history) for history in histories]


def _explained(history: History) -> Explanation:
    findings = find(history, PATTERNS)
    explained = {one.number for finding in findings for one in finding.rebalances}
    rest = [one for one in history.rebalances if one.number not in explained]
    taken = {id(one) for finding in findings for one in finding.absences}
    absences = [one for one in history.absences if id(one) not in taken]
    return Explanation(history, findings, rest, absences, baseline(history))
