"""Notes on a run beside its figures: what its deployment does to static members, what its
autoscaler did, settings that do nothing, commits that are assumed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from groupstorm.history.rounds import is_rebalance
from groupstorm.storms.deployments.autoscaler import SCALE_DOWN, SCALE_UP, SCALE_UP_GAIN
from groupstorm.storms.runs.load import members_added
from groupstorm.storms.runs.run import Run
from groupstorm.storms.scenario.consistency import commits_of, of_protocol, unused_settings
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.member_rules import Machines, MemberRules, SlowRecordList
from groupstorm.storms.scenario.setting_names import (
    BATCH,
    DEPLOYMENT,
    NO_AUTOSCALER,
    PROCESSES,
    STATEFUL_SET,
    STREAMS_PROTOCOL,
)
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.topics import rates_of
from groupstorm.trace.reader import read_entries
from groupstorm.verdicts.measures import with_range
from groupstorm.wording import counted, listed, seconds

#: Steps that replace several pods at once if `max_surge` and `max_unavailable` allow it.
ROLLING: Final = frozenset({"rolling-restart", "rolling-upgrade", "canary"})


def deployment_notes(runs: Sequence[Run]) -> list[str]:
    """Sentences for a person on one scenario, of any number of seeds; none if nothing has to be known."""
    scenario = runs[0].scenario
    notes = [
        membership_note(scenario),
        scaling_note(runs),
        failover_note(scenario),
        too_short_note(runs),
        unused_note(scenario),
        absent_note(scenario),
        commits_note(scenario),
    ]
    return [note for note in notes if note is not None]


def notes_by_variant(variants: Mapping[str, Sequence[Run]]) -> list[str]:
    """The notes on the runs of each variant; variants with the same note stand together.

    Before them, how many members each variant runs, if they differ in that.
    """
    by_note: dict[str, list[str]] = {}
    for name, runs in variants.items():
        for note in deployment_notes(runs):
            by_note.setdefault(note, []).append(name)
    notes = [f"{listed(names)}: {note}" for note, names in by_note.items()]
    fleets: dict[str, list[str]] = {}
    for name, runs in variants.items():
        fleets.setdefault(_fleet(runs[0].scenario.settings), []).append(name)
    if len(fleets) == 1:
        return notes
    sizes = "; ".join(f"{listed(names)} {fleet}" for fleet, names in fleets.items())
    return [f"Members have a price that is in no figure and in no ranking: {sizes}.", *notes]


def _fleet(settings: Settings) -> str:
    if settings.choice("autoscaler") == NO_AUTOSCALER:
        return counted(settings.integer("members"), "member")
    return f"{settings.integer('min_replicas')} to {counted(settings.integer('max_replicas'), 'pod')}"


def failover_note(scenario: ResolvedScenario) -> str | None:
    """Partitions whose leader is on the broker that dies are not modelled."""
    if not any(step.do == "coordinator-failover" for step in scenario.steps):
        return None
    return (
        "The coordinator alone fails over: every partition is taken to stay readable. A broker that restarts "
        "also moves the partitions that it led; their consumers wait for the new leaders, which is not in "
        "these figures."
    )


def too_short_note(runs: Sequence[Run]) -> str | None:
    """The pauses and slow records that the scenario asks for and that lie behind the end of the runs."""
    settings = runs[0].scenario.settings
    asked: list[tuple[float, str]] = []
    if settings.distribution("gc_pause_ms").largest_us:
        interval_us = settings.distribution("gc_interval_ms").mean_and_variance()[0] / 1000
        asked.append((interval_us, f"a process pauses once in {seconds(interval_us / 1e6)} (gc_interval_ms)"))
    for record in settings.of_type("slow_records", SlowRecordList).records:
        if record.offset is not None:
            arrival_us = _arrival_us(rates_of(settings, record.topic, record.partition), record.offset)
            when = f"arrives after {seconds(arrival_us / 1e6)}" if arrival_us < math.inf else "never arrives"
            place = f"record {record.offset:,} of {record.topic}-{record.partition}"
            asked.append((arrival_us, f"{place} {when} (slow_records)"))
    if not asked:
        return None
    ended_us = max(row["time_us"] for row, _ in read_entries(runs[0].trace))
    missed = [words for at_us, words in asked if at_us > ended_us]
    if not missed:
        return None
    note = f"The run is over after {seconds(ended_us / 1e6)}, but {listed(missed)}: not in these figures."
    if later := [at_us for at_us, _ in asked if ended_us < at_us < math.inf]:
        minutes = math.ceil(2 * max(later) / 60e6)
        note += f" --set least_duration_ms={minutes}m makes the run long enough."
    return note


def _arrival_us(rates: Sequence[tuple[int, int]], offset: int) -> float:
    """The time at which the record arrives in a partition; infinite if none arrive any more.

    ``rates``: as `rates_of` has them.
    """
    missing = (offset + 1) * 1e9
    for (from_us, rate), (to_us, _) in pairwise([*rates, (math.inf, 0)]):
        if rate * (to_us - from_us) >= missing:
            return from_us + missing / rate
        missing -= rate * (to_us - from_us) if rate else 0
    return math.inf


def membership_note(scenario: ResolvedScenario) -> str | None:
    """`static_membership_note`; of processes without a controller only if a step replaces them."""
    settings = scenario.settings
    if settings.choice("deployment") == PROCESSES and not any(step.do in ROLLING for step in scenario.steps):
        return None
    return static_membership_note(settings)


def static_membership_note(settings: Settings) -> str | None:
    """The effect of static membership on pods that are replaced; None for dynamic members."""
    if settings.choice("group.instance.id") == "none":
        return None
    if settings.optional_flag("leave_on_close"):
        return (
            "Static members that send LeaveGroup when they close (leave_on_close) are removed at once: a "
            "deploy costs what it costs dynamic members."
        )
    session_timeout = of_protocol(settings, "session.timeout.ms")
    session = seconds(settings.integer(session_timeout) / 1000)
    if settings.choice("deployment") == DEPLOYMENT:
        return (
            "Static membership works against a Deployment: a new pod has a new name, so a new "
            "group.instance.id, and the partitions of the old one wait until its session ends "
            f"({session_timeout}, {session}). Use dynamic members, or a StatefulSet."
        )
    if settings.choice("deployment") == STATEFUL_SET:
        return (
            f"Pod names are stable, so static members that are back within {session_timeout} "
            f"({session}) cause no rebalance; their partitions wait for them until then."
        )
    if settings.pods("max_surge").number:
        return (
            "With max_surge a successor runs beside the process that it replaces, so it has another "
            "group.instance.id, and the partitions of the old one wait until its session ends "
            f"({session_timeout}, {session}). Static members need a StatefulSet, which has no surge: "
            "--set deployment=statefulset --set max_surge=0."
        )
    return None


def unused_note(scenario: ResolvedScenario) -> str | None:
    """Settings were given that no member has: its group.protocol has others."""
    unused = unused_settings(scenario.settings, scenario.changed)
    if not unused:
        return None
    protocol = scenario.settings.choice("group.protocol")
    does = "do" if len(unused) > 1 else "does"
    if protocol == STREAMS_PROTOCOL:
        uses = "; ".join(dict.fromkeys(unused.values()))
        return f"With group.protocol {protocol} {listed(list(unused))} {does} nothing: use {uses}."
    return (
        f"{listed(list(unused))} {does} nothing here: members with group.protocol {protocol} have "
        f"{listed(list(unused.values()))} instead."
    )


def absent_note(scenario: ResolvedScenario) -> str | None:
    """Members that settings name and that never run."""
    settings, steps = scenario.settings, scenario.steps
    most = settings.integer("members") + members_added(settings, steps)
    if any(step.do == "autoscale" for step in steps):
        most = max(most, settings.integer("max_replicas") * settings.integer("members_per_pod"))
    named = [one.members for one in settings.of_type("machines", Machines).machines]
    named += [one.members for one in settings.of_type("member_settings", MemberRules).rules]
    absent = [str(index) for index in sorted(frozenset().union(*named)) if index >= most]
    if not absent:
        return None
    numbers = f"members {listed(absent)}" if len(absent) > 1 else f"member {absent[0]}"
    return f"machines or member_settings name {numbers}, but members have the numbers from 0 to {most - 1}."


def commits_note(scenario: ResolvedScenario) -> str | None:
    """A scenario that only switches background commits off does not say when the application commits."""
    if not any(
        commits_of(own) == BATCH and own.choice("commits") != BATCH for own in scenario.settings.of_profiles()
    ):
        return None
    return (
        "enable.auto.commit=false: the application is assumed to commit by hand after each batch. "
        "--set commits=record, interval or never says otherwise."
    )


_CHANGE = re.compile(r"from (\d+) to (\d+) processes")
_WHOLE: Final = "{:,.0f}".format
_GAIN = re.compile(r"from (\d+) to (\d+) processes: ([+-][\d,]+) records in (\d+) s")


class Scaling(NamedTuple):
    """The work of an autoscaler in one run. ``gains``: records after scale-ups, each with its sentence."""

    ups: int
    downs: int
    processes: float
    most: int
    rebalances_an_hour: float
    idle_members: int
    gains: Sequence[tuple[int, str]]


def scaling_note(runs: Sequence[Run]) -> str | None:
    """The sentences on the autoscaler of the runs, medians and ranges of their seeds; None without one."""
    scenario = runs[0].scenario
    steps = [step for step in scenario.steps if step.do == "autoscale"]
    if not steps or scenario.settings.choice("autoscaler") == NO_AUTOSCALER:
        return None
    begin_us, for_us = steps[0].at_ms * 1000, steps[0].for_ms * 1000
    found = [_scaling(run, begin_us, begin_us + for_us) for run in runs]
    text = (
        f"{_counted([one.ups for one in found], 'scale-up')} and "
        f"{_counted([one.downs for one in found], 'scale-down')} in {seconds(for_us / 1e6)}, "
        f"{with_range([one.processes for one in found], '{:.1f}'.format)} processes on average and "
        f"{with_range([one.most for one in found], _WHOLE)} at most, "
        f"{with_range([one.rebalances_an_hour for one in found], _WHOLE)} rebalances an hour"
    )
    if idle := max(one.idle_members for one in found):
        text += f", up to {idle:,} process{'es' if idle > 1 else ''} without a partition"
    gains = [gain for one in found for gain in one.gains]
    lost = [gain for gain in gains if gain[0] < 0]
    if not gains:
        return f"{text}."
    if not lost:
        return f"{text}. Every scale-up whose gain is known gained records over the rate before it."
    known = f"{len(lost)} of the {len(gains)} scale-ups whose gain is known"
    return f"{text}. {known} lost records against the rate before: the worst went {min(lost)[1]}."


def _counted(counts: Sequence[int], what: str) -> str:
    return counted(counts[0], what) if len({*counts}) == 1 else f"{with_range(counts, _WHOLE)} {what}s"


def _scaling(run: Run, begin_us: int, end_us: int) -> Scaling:
    processes = most = run.scenario.settings.integer("members")
    ups = downs = rebalances = total_us = 0
    since_us = begin_us
    gains: list[tuple[int, str]] = []
    for row, entry in read_entries(run.trace):
        if entry is None or not begin_us <= row["time_us"] <= end_us:
            continue
        rebalances += is_rebalance(entry[2])
        if row["event"] == "step_taken":
            change = _CHANGE.match(row["detail"]) if row["cause"] in (SCALE_UP, SCALE_DOWN) else None
            if change is not None:
                ups += row["cause"] == SCALE_UP
                downs += row["cause"] == SCALE_DOWN
                total_us += int(change[1]) * (row["time_us"] - since_us)
                processes, since_us = int(change[2]), row["time_us"]
                most = max(most, processes)
            if row["cause"] == SCALE_UP_GAIN and (gain := _GAIN.match(row["detail"])) is not None:
                gains.append((int(gain[3].replace(",", "")), row["detail"]))
    total_us += processes * (end_us - since_us)
    return Scaling(
        ups,
        downs,
        total_us / (end_us - begin_us),
        most,
        rebalances * 3_600_000_000 / (end_us - begin_us),
        run.figures.idle_members_max or 0,
        gains,
    )
