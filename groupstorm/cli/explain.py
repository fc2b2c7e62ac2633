"""`groupstorm explain`: why a group rebalanced, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from groupstorm.cli.explain_groups import groups_grid, to_explain, worst_first
from groupstorm.cli.printing import print_command, print_grid, print_indented, print_json, print_paragraph
from groupstorm.explain.advice import first_answer
from groupstorm.explain.as_json import as_json
from groupstorm.explain.explanation import Explanation
from groupstorm.explain.explanation import explain as explain_trace
from groupstorm.explain.findings import Culprit, Finding, culprits, pattern_of, quoted
from groupstorm.explain.history import History
from groupstorm.explain.work import Uneven
from groupstorm.figures.accumulator import Window
from groupstorm.figures.reasons import WORDS
from groupstorm.history.phases import Reason
from groupstorm.history.rebalances import REPLACED, Absence, Rebalance, Row
from groupstorm.history.unknown import STATIC_MEMBERS
from groupstorm.imports.lines import lines_at
from groupstorm.report.grid import Grid
from groupstorm.report.grid import Row as GridRow
from groupstorm.report.story import sentence
from groupstorm.trace.events.imported import CLIENT_HOST
from groupstorm.units import window_us
from groupstorm.wording import counted, listed, seconds


def explain(
    path: Path,
    as_json_object: bool = False,
    group: list[str] | None = None,
    from_seconds: float = 0,
    to_seconds: float | None = None,
    everything: bool = False,
) -> None:
    """Say why a group rebalanced: named patterns, who caused them, what they cost, what to turn.

    Prints how often the group rebalanced against its own baseline, the patterns with the rows or log lines
    that show them (defects, failures, changes; of each the costliest first), and who began the rebalances.
    The cost is the time in which partitions had no owner, summed over partitions, if the trace knows who
    owned what. Of several groups a table comes first, and then the worst ones.
    `groupstorm find PATTERN` prints what to turn.

    Example: groupstorm explain runs/rolling-deploy-0
    """
    window = Window(*window_us(from_seconds, to_seconds))
    explanations: Sequence[Explanation] = explain_trace(path, frozenset(group or ()), window)
    if as_json_object:
        groups = [as_json(one, sentence) for one in explanations]
        print_json({"trace": str(path), "groups": groups})
        return
    if len(explanations) > 1 and not group:
        ranked = worst_first(explanations)
        print_grid(groups_grid(ranked))
        explanations = to_explain(ranked)
    places = (
        place
        for one in explanations
        for finding in one.findings
        for row in finding.match.evidence
        for place in row.get("evidence") or ()
    )
    lines = lines_at(places) if any(one.history.is_imported for one in explanations) else {}
    for number, one in enumerate(explanations):
        if number:
            print()
        print_explanation(one, lines, everything)


_SECOND_US: Final = 1_000_000
_INDENT: Final = "   "
_CULPRITS_MAX: Final = 8
_BUSY_MAX: Final = 6
_NAMED_MAX: Final = 4
_OWNERS_UNKNOWN: Final = "add the consumers' logs"
_ABSENCES_UNKNOWN: Final = "no row says when a static member stopped: add the logs of the static members"


def print_explanation(one: Explanation, lines: Mapping[str, str], everything: bool) -> None:
    """Print one group. ``lines``: the text of log lines by place. ``everything``: every rebalance."""
    history = one.history
    _print_group(one)
    own = [finding for finding in one.findings if not _is_within_others(finding)]
    within = [finding for finding in one.findings if _is_within_others(finding)]
    for number, finding in enumerate(own, start=1):
        print()
        _print_finding(number, finding, history, lines)
    if within:
        print()
        print_paragraph("Within the patterns above:", emphasized=True)
        for finding in within:
            _print_indented(f"{finding.pattern.title} ({finding.pattern.name}): {finding.match.sentence}")
    if not one.findings:
        print()
        print_paragraph(f"No pattern found. {first_answer(history)}".rstrip())
    began = culprits(history.rebalances, one.findings)
    if everything and history.rebalances:
        print()
        print_grid(_rebalances_grid(history, one.findings))
    elif any(culprit.is_known for culprit in began):
        print()
        print_grid(_culprits_grid(history, began))
    if one.absences and history.unowned_us is not None:
        _print_absences(one.absences, one.history)
    _print_end(history)
    _print_unknown(one)


def _is_within_others(finding: Finding) -> bool:
    """Other patterns explain all its rebalances."""
    return finding.shared > 0 and not finding.rebalances and not finding.absences


def _print_group(one: Explanation) -> None:
    history = one.history
    lasted = seconds((history.to_us - max(history.from_us, history.first_us)) / _SECOND_US)
    counted_from = f", counted from {seconds(history.from_us / _SECOND_US)} on" if history.from_us else ""
    print_paragraph(
        f"Group {history.group}: {_rebalances(history)} in {lasted}{counted_from}", emphasized=True
    )
    if one.alone is not None:  # what is known comes first
        print_paragraph(one.alone.sentence)
    if history.work.is_seen:
        idle_us = sum(each.lasted_us for each in history.work.gaps)
        idle = f"{'at least ' if idle_us else ''}{seconds(idle_us / _SECOND_US)}"
        idle = "unknown: one worker's log says nothing of others" if history.is_of_one_member else idle
        print_paragraph(f"Time without a worker, summed over connectors and tasks: {idle}.")
        if history.work.uneven is not None:
            print_paragraph(_uneven(history.work.uneven))
    elif history.unowned_us is None:
        print_paragraph(f"Time without an owner: {_unowned_unknown(history)}.{_tasks_down(history)}")
    else:
        known_us = None if one.alone is None else one.alone.known_us
        since = "" if known_us is None else f" from {_at(known_us, history)} on, when owners are first known"
        unowned = _unowned(history.unowned_us, history)
        if nobody_us := one.reasons.us.get(Reason.LEFT_OUT):
            unowned += f", {seconds(nobody_us / _SECOND_US)} of it because of {WORDS[Reason.LEFT_OUT]}"
        print_paragraph(
            f"Time without an owner{since}, summed over partitions: {unowned}.{_tasks_down(history)}"
        )
    if history.without_members:
        outage_us = history.outage_us
        why = "no partition needs an owner then"
        if outage_us is not None:
            lasted = f"of at least {seconds(outage_us / _SECOND_US)}"
            why = f"an outage {lasted}, as the last member expired and nobody came back"
        print_paragraph(f"{_without_members(history)}: {why}.")
    print_paragraph(_baseline(one))


def _rebalances(history: History) -> str:
    """Count the rebalances, as far as the trace knows them, and their rounds."""
    begun = [each for each in history.rebalances if each.begun_us >= history.from_us]
    rounds = counted(sum(len(each.rounds) for each in begun), _round_noun(history))
    number = counted(len(begun), "rebalance")
    least, skipped = history.rebalances_at_least, history.generations_hidden
    if history.rebalances_are_least:
        number = f"at least {number}" if begun else "no rebalance seen"
    elif (begun and history.is_of_one_member) or skipped or least > len(history.rebalances):
        number = f"at least {counted(least, 'rebalance')}"
        if skipped:
            rounds += f" in the logs, which skip {counted(skipped, 'generation')}"
    elif not history.rebalances and not history.is_shown_quiet:
        number = "the lines show no completed rebalance"
    is_counted = begun or history.rebalances_are_least or not history.is_imported
    return f"{number} ({rounds})" if is_counted else number


def _baseline(one: Explanation) -> str:
    base = one.baseline
    if base.per_slice is None:
        return "Baseline: unknown, the trace is shorter than four minutes."
    text = (
        f"Baseline: {counted(base.per_slice, 'rebalance')} in {seconds(base.slice_us / _SECOND_US)}, in the "
        f"quietest quarter of {counted(base.slices, 'slice')} of the trace."
    )
    if not base.busy:
        return text
    named = [f"{count} from {_at(from_us, one.history)} on" for from_us, count in base.busy[:_BUSY_MAX]]
    more = len(base.busy) - len(named)
    return f"{text} Above it: {', '.join(named)}" + (f", and {counted(more, 'more slice')}." if more else ".")


def _uneven(uneven: Uneven) -> str:
    most, *_, least = sorted(uneven.loads, key=lambda worker: -uneven.loads[worker])
    return (
        f"Uneven for {seconds(uneven.lasted_us / _SECOND_US)}: {most} ran "
        f"{uneven.loads[most]:,} connectors and tasks, {least} {uneven.loads[least]:,}."
    )


def _round_noun(history: History) -> str:
    """The noun for the group's rounds: a group that has changed its protocol has both kinds."""
    rounds = [one for each in history.rebalances for one in each.rounds]
    has_epochs = bool(rounds) and all(one.begun["event"] == "group_epoch_bumped" for one in rounds)
    return "epoch" if has_epochs else "round"


def _without_members(history: History) -> str:
    times = history.without_members
    named = [
        f"{seconds(from_us / _SECOND_US)} to {seconds(to_us / _SECOND_US)}"
        + (", the end" if to_us == history.to_us else "")
        for from_us, to_us in times[:_NAMED_MAX]
    ]
    more = len(times) - len(named)
    also = f", and {counted(more, 'more time')}" if more else ""
    return f"The group had no members from {'; from '.join(named)}{also}"


def _unowned_unknown(history: History) -> str:
    if history.is_shared and not history.is_imported:
        return (
            "none counted, as nobody owns a partition of a share group; analyze has its deliveries and locks"
        )
    returned = any(one.cause == REPLACED for one in history.changes)
    if returned and not history.is_imported and not history.has_member_rows:
        return f"unknown: {STATIC_MEMBERS}"
    if not history.is_imported:
        return "none counted, as at no time every partition had an owner"
    otherwise = _ABSENCES_UNKNOWN if returned else _OWNERS_UNKNOWN
    return f"unknown: {history.missing.get('ownership', otherwise)}"


def _tasks_down(history: History) -> str:
    """For how long tasks of Kafka Streams were down, their restoration included, as far as rows say it."""
    figures = history.figures
    if figures is None or figures.task_downtime_seconds is None:
        return ""
    longest = seconds(figures.task_downtime_max_seconds or 0)
    return f" Tasks were down for {seconds(figures.task_downtime_seconds)} in all, {longest} at the longest."


def _at(time_us: int, history: History) -> str:
    """A time of the trace: on the wall clock if the trace knows it."""
    if history.began:
        wall = datetime.fromisoformat(history.began) + timedelta(microseconds=time_us)
        return f"{wall:%Y-%m-%d %H:%M}"
    return seconds(time_us / _SECOND_US)


def _print_finding(number: int, finding: Finding, history: History, lines: Mapping[str, str]) -> None:
    print_paragraph(
        f"{number}. {finding.pattern.title} ({finding.pattern.name}): {_cost(finding, history)}",
        emphasized=True,
    )
    _print_indented(finding.match.sentence)
    if finding.match.members:
        _print_indented(f"Members: {_members(finding.match.members, history)}.")
    if finding.shared:
        _print_indented(f"{counted(finding.shared, 'more rebalance')} of this kind: see another pattern.")
    told: set[str] = set()
    for row in quoted(finding.match.evidence):
        _print_row(row, lines, told)
    if finding.match.unknown:
        _print_indented(f"Unknown: {finding.match.unknown}.")
    _print_indented(f"Turn: {finding.pattern.advice}")
    for preset in finding.pattern.presets:
        print_command(f"{_INDENT}Try:", "compare", preset)


def _cost(finding: Finding, history: History) -> str:
    count = counted(len(finding.rebalances), "rebalance")
    if finding.match.down_us and not finding.rebalances:
        return f"tasks down for {seconds(finding.match.down_us / _SECOND_US)}"
    if history.unowned_us is None and history.rebalances_are_least:
        return f"at least {count}"
    if history.unowned_us is None:
        lasted = f", {_lasted(finding.rebalances, history)} in rebalances" if finding.rebalances else ""
        return f"{count if lasted else 'no rebalance of its own'}{lasted}"
    unowned = f"{_unowned(finding.unowned_us, history)} without an owner"
    away = f" and {counted(len(finding.absences), 'absence')}" if finding.absences else ""
    return (
        f"{unowned}, {count}{away}" if finding.rebalances or finding.absences else "no rebalance of its own"
    )


def _unowned(unowned_us: int, history: History) -> str:
    return f"{'at least ' if history.unowned_is_least else ''}{seconds(unowned_us / _SECOND_US)}"


def _lasted(rebalances: Sequence[Rebalance], history: History) -> str:
    """For how long they lasted: at least so long if one has no end in the trace, or began before its first
    row."""
    if history.rebalances_are_least:
        return "unknown"
    total_us = sum(one.lasted_us for one in rebalances)
    is_open = any(
        one.ended_us is None or one.rounds[0].begun.get("earliest_us") is not None for one in rebalances
    )
    if is_open and not total_us:
        return "unknown"
    return f"{'at least ' if is_open else ''}{seconds(total_us / _SECOND_US)}"


def _members(members: Sequence[str], history: History) -> str:
    """Names with their client library and host, as far as they are known."""
    named = []
    for name in members[:_NAMED_MAX]:
        known = (history.settings.libraries.get(name), history.settings.get(CLIENT_HOST, name))
        said = ", ".join(one for one in known if one)
        named.append(f"{_named(name, history)}{f' ({said})' if said else ''}")
    more = len(members) - len(named)
    return listed([*named, f"{more:,} more"]) if more else listed(named)


def _named(name: str, history: History) -> str:
    """A member's name, with its client id if the name is an id that does not begin with it (KIP-848)."""
    return f"{name} ({client})" if (client := history.settings.get("client.id", name)) else name


def _print_row(row: Row, lines: Mapping[str, str], told: set[str]) -> None:
    """Print a row in the words of `trace`; of an imported one its log lines that are not ``told`` yet."""
    places = row.get("evidence") or ()
    if not places:
        at = f"{row['time_us'] / _SECOND_US:,.3f} s"
        _print_indented(f"| {at}  {' '.join(sentence(row).split())}", "     ")
    for place in [one for one in places if one not in told]:
        told.add(place)
        _print_indented(f"| {place}: {lines[place]}" if place in lines else f"| {place}", "     ")


def _print_indented(text: str, more: str = "") -> None:
    print_indented(text, _INDENT, _INDENT + more)


def _culprits_grid(history: History, found: Sequence[Culprit]) -> Grid:
    """Who began the rebalances, and what these cost."""
    rows = [
        GridRow(
            _named(one.member, history) or "nobody named",
            (
                one.cause,
                f"{len(one.rebalances):,}",
                _lasted(one.rebalances, history),
                _no_owner_for(one, history),
                ", ".join([*one.patterns, *(["-"] if one.unexplained else [])]),
            ),
        )
        for one in found[:_CULPRITS_MAX]
    ]
    more = found[_CULPRITS_MAX:]
    notes = []
    if more:
        rebalances = sum(len(one.rebalances) for one in more)
        notes = [
            f"{counted(rebalances, 'more rebalance')} by {counted(len(more), 'other')}: --all lists them."
        ]
    headings = ("began by", "cause", "rebalances", "lasted", _no_owner(history), "pattern")
    return Grid(headings, rows, "Who began the rebalances", notes, frozenset({0, 4}))


def _no_owner_for(one: Culprit | Rebalance, history: History) -> str:
    """Return how long partitions had no owner for that; those of a share group have none at any time."""
    if history.unowned_us is not None:
        return seconds(one.unowned_us / _SECOND_US)
    return "-" if history.is_shared else "unknown"


def _no_owner(history: History) -> str:
    """The heading of costs."""
    is_least = history.unowned_is_least and history.unowned_us is not None
    return "no owner, at least" if is_least else "no owner"


def _rebalances_grid(history: History, findings: Sequence[Finding]) -> Grid:
    names = pattern_of(findings)

    def row(one: Rebalance) -> GridRow:
        cells = (
            one.cause,
            _named(one.culprit, history) or "-",
            f"{len(one.rounds):,}",
            _lasted([one], history),
            _no_owner_for(one, history),
            names.get(one.number, "-"),
        )
        return GridRow(f"{one.begun_us / _SECOND_US:,.3f} s", cells)

    headings = ("begun", "cause", "by", f"{_round_noun(history)}s", "lasted", _no_owner(history), "pattern")
    return Grid(headings, [row(one) for one in history.rebalances], "Rebalances", (), frozenset({0, 1, 5}))


def _print_absences(absences: Sequence[Absence], history: History) -> None:
    """Print the absences that no rebalance ended and no pattern explains."""
    worst = sorted(absences, key=lambda each: -each.unowned_us)[:_NAMED_MAX]
    cost = _unowned(sum(each.unowned_us for each in absences), history)
    named = [
        f"{each.member or 'partitions that nobody had had'} {seconds(each.unowned_us / _SECOND_US)} from "
        f"{seconds(each.from_us / _SECOND_US)} on"
        for each in worst
    ]
    count = counted(len(absences), "absence")
    still = sum(each.to_us >= history.to_us and not each.returned for each in absences)
    ended = f"no rebalance ended ({still:,} open at the end)" if still else "ended without a rebalance"
    text = f"Besides, {cost} without an owner in {count} that {ended}"
    print_paragraph(f"{text}: {', '.join(named)}{', ...' if len(absences) > len(worst) else ''}.")


def _print_end(history: History) -> None:
    """Say that the logs end with an unload, which is no event of the group."""
    if history.ended is not None and history.is_imported:
        at = _at(history.ended.time_us, history)
        print_paragraph(
            f"The logs end here: the coordinator unloaded the group at {at}, and nobody is back. If another "
            "broker took it over, add its log."
        )


def _print_unknown(one: Explanation) -> None:
    """Print the facts that an imported trace does not have."""
    missing = {cause: detail for cause, detail in one.history.missing.items() if cause != "ownership"}
    for detail in dict.fromkeys(missing.values()):
        print_paragraph(f"Not known: {detail}.")
