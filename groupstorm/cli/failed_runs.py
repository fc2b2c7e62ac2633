"""Failures of runs: a group that cannot settle, keep up or join, a broken invariant, an unmet --require.

The first three are findings about the configuration: the message names the remedies. An invariant that broke
is a fault of the emulation or of an assignor: the message has all that is needed to report it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Final

from groupstorm.assignors.promises import BUILT_IN, CoPartitioning
from groupstorm.cli.printing import command_line, print_lines_aside, print_paragraph
from groupstorm.clients.error_tables import RejoinCause
from groupstorm.clients.profiles import consumer_protocol_needs
from groupstorm.figures import Figures
from groupstorm.figures.table import (
    CONSEQUENCES,
    OWNED_AT_END,
    SETTLED_LATE,
    finding,
    grows_in_most,
    lag_growth,
    overload_sentence,
    verdict_on,
)
from groupstorm.history.phases import Reason
from groupstorm.problems import CheckFailed
from groupstorm.report.progress import run_progress
from groupstorm.report.tables import seeds_named
from groupstorm.storms.checks.settling import IF_NEVER_SETTLED, kafkas_own
from groupstorm.storms.checks.verdicts import CO_PARTITIONED
from groupstorm.storms.runs.contradictions import (
    cause_of,
    cost_of,
    fitting_records,
    has_fatal_record,
    outlasts_polls,
)
from groupstorm.storms.runs.load import MemberLoad, member_load, members_added, record_ns
from groupstorm.storms.runs.remedies import Remedy, RemedySearch
from groupstorm.storms.runs.run import Run
from groupstorm.storms.scenario.consistency import commits_of
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.member_rules import STRATEGY
from groupstorm.storms.scenario.setting_names import CONSUMER, RECORD
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import partitions_at_end
from groupstorm.trace.reader import read_rows
from groupstorm.verdicts.ranking import consumers_ended
from groupstorm.verdicts.requirements import Requirement, parse
from groupstorm.wording import at_most, counted, listed, rate, seconds

#: So many runs a search for remedies may take at least, and for one of several causes: a value needs three.
LEAST_TRIALS: Final = 8
TRIALS_OF_ONE: Final = 4

#: If the lag grows by this part of what arrives, nobody reads.
_ALL: Final = 0.99

#: docs/fidelity.md, how far is the answer from reality
_IN_TURN: Final = (
    "a real consumer works off one partition after the other, here it goes on in all of them at once: "
    "the oldest record waits longer (on Kafka by 1 to 2 s of 10 s)"
)


def require_invariants(
    runs: Iterable[Run], options: Sequence[str] = (), look_for_remedies: bool = True
) -> None:
    """Print on standard error, once per cause, which groups cannot keep up or settle, and what ends it.

    Then raise CheckFailed for the first run that broke an invariant, or whose group cannot settle unless
    the scenario says so (`if_never_settled`). The same holds for what Kafka itself does wrong. A group that
    cannot keep up works as its settings say, `--require "lag_growth_per_second<1"` makes it fail.
    ``options``: those of the command line that a scenario file does not hold, such as --on. In real time
    nothing is said about keeping up: a lag that grows between two looks may be the broker's.
    ``look_for_remedies``: repeat the scenario of a group that cannot settle under other settings.
    """
    every = [*runs]
    sys.stdout.flush()  # the answer comes first
    if not options:
        _print_overloads(every)
    restless: dict[str, list[Run]] = {}
    failed = ""
    for run in every:
        found, own = finding(run.violations), kafkas_own(run.violations)
        if found is not None:
            cause = cause_of(run.scenario, found)
            restless.setdefault(cause or run.scenario.variant, []).append(run)
            message = "\n".join(
                [f"{_named([run])}: this configuration {verdict_on(found)}", *_indented(cause or found)]
            )
        elif own is not None:
            lines = [f"{_named([run])}: a real group does this, too", *_indented(own)]
            message = "\n".join([*lines, *_how_to_see_it_again(run, options)])
            if run.scenario.settings.choice(IF_NEVER_SETTLED) != "fail":
                print_lines_aside(message)
        elif run.violations:
            failed = failed or "\n".join(_lines(run, options))
            continue
        else:
            continue
        if run.scenario.settings.choice(IF_NEVER_SETTLED) == "fail":
            failed = failed or message
    for alike in restless.values():
        print_lines_aside("\n".join([*_livelock_lines(alike), *_how_to_see_it_again(alike[0], options)]))
    if look_for_remedies:
        _print_remedies([*restless.values()], every)
    if failed:
        raise CheckFailed(failed)


def _print_overloads(runs: Sequence[Run]) -> None:
    """Less is processed than arrives: by how much, why, and which values of which settings end it."""
    seeds: dict[str, list[Figures]] = {}
    by_arithmetic: dict[tuple[str, ...], list[tuple[float, Run]]] = {}
    for run in runs:
        seeds.setdefault(run.scenario.variant, []).append(run.figures)
    for run in runs:
        growth = None if run.violations else lag_growth(run.figures)
        if growth is not None and grows_in_most(seeds[run.scenario.variant]):
            by_arithmetic.setdefault((*_arithmetic(run, growth),), []).append((growth, run))
    for lines, found in by_arithmetic.items():
        growth = max(growth for growth, _ in found)
        header = f"{_named([run for _, run in found])}: this configuration cannot keep up"
        said = _indented(f"overload: {overload_sentence(growth)}")
        print_lines_aside("\n".join([header, *said, *lines]))


def _arithmetic(run: Run, growth: float) -> Iterable[str]:
    """Lines on the records that arrive and those that members process, and on the values that are enough.

    If the lag grows by all that arrives, nobody reads, and no value of these settings is enough. But members
    that have processed some, and are too slow, may do none within a few seconds."""
    scenario = run.scenario
    load = member_load(scenario.settings, scenario.steps)
    if load.per_member is None:
        return
    is_enough = load.of_unluckiest(load.members) < load.per_member
    fitting = fitting_records(scenario.settings)
    if fitting is not None:
        yield from _indented(_outlasted_locks(scenario.settings, fitting))
        if load.arriving < (load.together or 0):
            return  # there are members enough
    elif growth >= _ALL * load.arriving and (is_enough or not run.figures.records_processed):
        why = "" if run.assignor_failure is None else ": an assignor failed, and its leaders with it"
        yield from _indented(
            f"nobody processes any of the {rate(load.arriving)} records a second that arrive{why}"
        )
        return
    if is_enough:
        perhaps = (
            "perhaps one of them owns more than its share, or the run ended while a slow record was in hand; "
            "other seeds and a longer run tell (least_duration_ms)"
        )
        yield from _indented(
            f"in the mean its members process more than the {rate(load.arriving)} records a second that "
            f"arrive: {consumers_ended(run.figures) or perhaps}"
        )
        return
    yield from _indented(
        f"{rate(load.arriving)} records a second arrive, {rate(load.busiest)} of them in one partition; "
        f"{'the slowest' if load.is_uneven else 'a'} {load.name} processes at most {rate(load.per_member)}"
    )
    if load.busiest * load.quickest_s >= 1 and not load.is_shared:  # not even the quickest keeps up with it
        yield f"  more {load.name}s do not help: only one of them reads the busiest partition"
    yield from _enough(scenario, load)


def _enough(scenario: ResolvedScenario, load: MemberLoad) -> Iterable[str]:
    """Lines on the values with which members keep up."""
    added = members_added(scenario.settings, scenario.steps)
    members = f"{load.members}, {added} of them added by steps" if added else f"{load.members}"
    enough = [("members", load.enough_members(), members)]
    enough += [("concurrency", load.enough_concurrency(), f"{load.concurrency}")]
    if load.threads is not None:
        enough = [("num.stream.threads", load.enough_threads(), f"{load.threads}")]
    for setting, value, now in enough:
        if value is not None:
            yield f"  {setting} with which it keeps up: {value} (now {now})"
    record_ms = load.record_ms()
    if record_ms is not None and record_ms < 1000 * load.work_s:
        yield (
            f"  or with at most {at_most(record_ms)} ms of {load.work_name}, in the mean "
            f"(now {at_most(1000 * load.work_s)} ms)"
        )
    if load.is_uneven and load.is_enough_for_the_quickest():
        yield "  or if all members were as quick as the quickest (machines, member_settings)"
    commits = {commits_of(own) for own in scenario.settings.of_profiles()}
    if RECORD in commits and load.of_unluckiest(load.members) * load.work_s < load.concurrency:
        yield "  or with a commit for each batch, in the place of each record (commits=batch)"


def _outlasted_locks(settings: Settings, fitting: int) -> str:
    """Name the values with which a full batch of a share group ends before its locks do."""
    most = settings.integer("max.poll.records")
    lock_s, batch_s = (
        settings.integer("group.share.record.lock.duration.ms") / 1000,
        most * record_ns(settings) / 1e9,
    )
    fewer = f"max.poll.records of at most {fitting} (now {most}), or " if fitting else ""
    return (
        f"others get records that a consumer still works on, because a full batch outlasts its locks; first: "
        f"{fewer}group.share.record.lock.duration.ms of more than {seconds(batch_s)} (now {seconds(lock_s)})"
    )


def _tearing_assignors(scenario: ResolvedScenario) -> list[str]:
    """The assignors of the scenario that do not promise to keep partition n of all its topics together."""
    settings = scenario.settings
    named = [name for name in settings.names(STRATEGY) if name in BUILT_IN]
    if settings.choice("group.protocol") == CONSUMER:
        # uniform is the broker's choice if members name none
        named = ["range" if settings.choice("group.remote.assignor") == "range" else "uniform"]
    equal = len({*partitions_at_end(settings, scenario.steps).values()}) == 1
    keep = (CoPartitioning.ANY_SIZES, *([CoPartitioning.EQUAL_SIZES] if equal else []))
    return [name for name in named if name not in BUILT_IN or BUILT_IN[name].co_partitioned not in keep]


def _torn_lines(run: Run, assignors: Sequence[str], options: Sequence[str]) -> Iterable[str]:
    """Topics are joined, and the assignor was never meant to keep what is joined together."""
    setting = STRATEGY
    remedy = "range (topics of equal size), or stream-join-sticky (leaves out what the smallest has not)"
    if run.scenario.settings.choice("group.protocol") == CONSUMER:
        setting, remedy = "group.remote.assignor", "range (topics of equal size)"
    yield f"{_named([run])}: this configuration cannot join its topics"
    yield from _indented(run.violations[CO_PARTITIONED])
    yield f"  {' and '.join(assignors)} may give partition n of two topics to two members"
    yield f"  {setting} that ends it: {remedy}"
    yield from _how_to_see_it_again(run, options)


def _named(runs: Sequence[Run]) -> str:
    seeds = sorted({run.scenario.seed for run in runs})
    return f"{runs[0].scenario.name} ({_variants(runs)}), {seeds_named(seeds)}"


def _variants(runs: Sequence[Run]) -> str:
    return listed([*dict.fromkeys(run.scenario.variant for run in runs)])


def _livelock_lines(runs: Sequence[Run]) -> Iterable[str]:
    """The finding of the first of these runs, the cause of all, and what it costs."""
    first = runs[0]
    found = finding(first.violations) or ""
    yield f"{_named(runs)}: this configuration {verdict_on(found)}"
    yield from _indented(found)
    cause = cause_of(first.scenario, found)
    if cause:
        yield from _indented(f"because {cause}")
    if not {*first.scenario.settings.names(STRATEGY)} <= BUILT_IN.keys():
        asked = [row.get("cause") for row in read_rows(first.trace) if row["event"] == "rejoin_requested"]
        if foreign := asked.count(RejoinCause.ASSIGNMENT_MISMATCH):
            what = "the assignor gave a member topics that it does not subscribe to, and it joined again"
            yield from _indented(f"{counted(foreign, 'time')} {what}")
    yield from _indented(cost_of(first.figures))
    if "max.poll.interval.ms" in found and outlasts_polls(first.scenario.settings):
        yield _less_work(first.scenario.settings)
    elif has_fatal_record(first.scenario.settings):
        yield "  skipping the record, or a dead-letter topic, would end it"


def _print_remedies(restless: Sequence[Sequence[Run]], runs: Sequence[Run]) -> None:
    """Look for settings that end each finding, with about as many runs as there were; print each at once."""
    searched = [(alike, run) for alike in restless for run in [*filter(_may_be_mended, alike)][:1]]
    trials = max(len(runs), LEAST_TRIALS) // max(len(searched), 1)
    for alike, run in searched:
        begins, is_found = f"  {_variants(alike)}: " if len(restless) > 1 else "  ", False
        with run_progress("looking for settings that end it") as progress:
            for remedy in RemedySearch(run.scenario, max(trials, TRIALS_OF_ONE), progress):
                print_lines_aside(f"{begins}{'or ' if is_found else ''}{_remedy_named(remedy, run)}")
                is_found = True
        if not is_found:
            print_lines_aside(f"{begins}no setting was found that ends it")


def _may_be_mended(run: Run) -> bool:
    """Whether its group never came to rest, and no record ends every process that reads it."""
    is_late = (finding(run.violations) or "").startswith(SETTLED_LATE)
    return not is_late and not has_fatal_record(run.scenario.settings)


def _remedy_named(remedy: Remedy, run: Run) -> str:
    values = listed([f"{name}={value}" for name, value in remedy.settings.items()])
    before = listed([f"{remedy.before[name]}" for name in remedy.settings])
    ends = "ends it" if len(remedy.settings) == 1 else "together end it"
    named = f"{values} {ends} (now {before})"
    if remedy.settings.get("group.protocol") == CONSUMER:
        needs = consumer_protocol_needs(run.scenario.settings.names("client_profile"))
        named = f"{named}\n    group.protocol={CONSUMER} needs {needs}"
    if remedy.lag_growth is None:
        return named
    growth = f"the lag grows by {rate(remedy.lag_growth)} records a second"
    return f"{named}\n    then the group settles, but cannot keep up: {growth}"


def _less_work(settings: Settings) -> str:
    interval_s = settings.integer("max.poll.interval.ms") / 1000
    return f"  it takes work of less than {seconds(interval_s)} from poll() to poll()"


def _indented(text: str) -> list[str]:
    return wrap(text, 78, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def _lines(run: Run, options: Sequence[str]) -> Iterable[str]:
    scenario = run.scenario
    torn = _tearing_assignors(scenario) if [*run.violations] == [CO_PARTITIONED] else []
    if torn:
        yield from _torn_lines(run, torn, options)
        return
    yield f"{_named([run])}: an invariant broke"
    for name, sentence in run.violations.items():
        yield f"  {name}: {sentence}"
    yield from _how_to_see_it_again(run, options)
    own = _own_assignors(scenario.settings)
    if Reason.LEFT_OUT in run.reasons.us and {*run.violations} == {OWNED_AT_END}:
        yield "  no member subscribes to them, or an assignor left them out: see `groupstorm check-assignor`"
    elif set(run.violations) <= CONSEQUENCES and outlasts_polls(scenario.settings):
        yield _less_work(scenario.settings)
    elif set(run.violations) <= CONSEQUENCES:
        yield "  nothing went on in the group: if members wait so long on purpose, raise settle_timeout_ms"
    elif not own and not options:
        yield "  this is a fault of groupstorm, not of the configuration: please report it with scenario.yaml"


def _how_to_see_it_again(run: Run, options: Sequence[str]) -> Iterable[str]:
    """The settings of the command line, and the command that repeats the run by its scenario.yaml."""
    scenario = run.scenario
    changed = [f"{name}={json.dumps(value)}" for name, value in scenario.changed.items()]
    if changed:
        yield f"  with {', '.join(changed)}"
    again = ["run", str(run.folder / "scenario.yaml"), *_own_assignors(scenario.settings), *options]
    yield f"  again: {command_line(*again)}"


def _own_assignors(settings: Settings) -> list[str]:
    """The option that names the user's code, which a scenario file must not."""
    names = settings.names(STRATEGY)
    return ["--set", f"{STRATEGY}={','.join(names)}"] if any(":" in name for name in names) else []


def requirements_of(written: Sequence[str] | None, option: str = "--require") -> list[Requirement]:
    """The requirements of the option, with a note on what real consumers do otherwise. Raises InputError."""
    required = [parse(text, option) for text in written or ()]
    stale = [one.figure for one in required if one.figure.startswith("staleness") and "<" in one.comparison]
    if stale:
        print_lines_aside("\n".join([f"{stale[0]} is too low after an outage", *_indented(_IN_TURN)]))
    return required


def check_all_meet(runs: Mapping[str, Figures], required: Sequence[Requirement]) -> None:
    """Raise CheckFailed if a requirement is not met in enough of the runs."""
    unmet = [sentence for one in required for sentence in one.unmet_by(runs)]
    if unmet:
        raise CheckFailed("; ".join(unmet))


def check_variants_meet(
    variants: Mapping[str, Mapping[str, Figures]], required: Sequence[Requirement], printing: bool
) -> None:
    """Say which variants meet everything; raise CheckFailed if none does."""
    if not required:
        return
    unmet = {
        name: [sentence for one in required for sentence in one.unmet_by(runs)]
        for name, runs in variants.items()
    }
    meeting = [name for name, sentences in unmet.items() if not sentences]
    whole = " and ".join(str(one) for one in required)
    if not meeting:
        lines = [f"  {name}: {'; '.join(sentences)}" for name, sentences in unmet.items()]
        raise CheckFailed("\n".join([f"no variant meets {whole}", *lines]))
    if printing:
        failing = [name for name in variants if name not in meeting]
        but = f", {listed(failing)} not" if failing else ""
        print()
        print_paragraph(f"{listed(meeting)} {'meets' if len(meeting) == 1 else 'meet'} {whole}{but}.")
