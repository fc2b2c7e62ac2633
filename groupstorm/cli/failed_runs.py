"""Failures of runs: a group that cannot settle, keep up or join, a broken invariant, an unmet --require.

The first three are findings about the configuration: the message names the remedies. An invariant that broke
is a fault of the emulation or of an assignor: the message has all that is needed to report it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from textwrap import wrap
from typing import Final

from groupstorm.assignors.promises import BUILT_IN
from groupstorm.cli.invocation import command_line
from groupstorm.cli.printing import print_lines_aside, print_paragraph
from groupstorm.figures import Figures
from groupstorm.figures.overload import lag_growth, overload_sentence
from groupstorm.problems import CheckFailed
from groupstorm.storms.checks.settling import CONSEQUENCES, IF_NEVER_SETTLED, finding, kafkas_own
from groupstorm.storms.checks.verdicts import CO_PARTITIONED
from groupstorm.storms.runs.load import member_load
from groupstorm.storms.runs.remedies import MOST_EVENTS, remedies_for_livelock, remedies_for_overload
from groupstorm.storms.runs.run import Run
from groupstorm.storms.scenario.group_protocol_settings import CONSUMER, GROUP_PROTOCOL
from groupstorm.storms.scenario.member_rules import STRATEGY
from groupstorm.storms.scenario.settings import Settings
from groupstorm.verdicts.requirements import Requirement, parse
from groupstorm.wording import listed

#: The kind of the finding that less is processed than arrives; `settling` has the other kinds.
OVERLOAD: Final = "overload"

#: With more events the remedy of an overload comes from arithmetic alone: the run has not failed, nobody
#: waits for the storms.
MOST_EVENTS_OVERLOADED: Final = 20_000
#: Likewise with more records a second: members that poll without a pause make few events and much work.
MOST_RECORDS: Final = 5_000

REMOTE_ASSIGNOR: Final = "group.remote.assignor"
#: The broker's choice if members name no assignor (group.consumer.assignors).
BROKERS_ASSIGNOR: Final = "uniform"

STILL_OVERLOADED: Final = "cannot keep up: the lag grows by"

_NO_REMEDY: Final = (
    "no max.poll.interval.ms up to an hour, no max.poll.records and no session.timeout.ms ends it"
)


def require_invariants(
    runs: Iterable[Run], options: Sequence[str] = (), look_for_remedies: bool = True
) -> None:
    """Raise CheckFailed for the first run that broke an invariant, or whose group cannot settle.

    If the scenario says so (`if_never_settled`), print such a finding on standard error instead. The same
    holds for what Kafka itself does wrong. Print there, once per variant, that a group cannot keep up: it
    works as its settings say, `--require "lag_growth_per_second<1"` makes it fail.
    ``options``: those of the command line that a scenario file does not hold, such as --on. In real time
    nothing is said about keeping up: a lag that grows between two looks may be the broker's.
    ``look_for_remedies``: repeat a scenario under other settings, to name those that end it.
    """
    overloaded: set[str] = set()
    for run in runs:
        if not run.violations:
            if not options and run.scenario.variant not in overloaded:
                growth = lag_growth(run.figures)
                if growth is not None:
                    overloaded.add(run.scenario.variant)
                    for line in _overload_lines(run, growth, look_for_remedies):  # each when it is found
                        print_lines_aside(line)
            continue
        found, own = finding(run.violations), kafkas_own(run.violations)
        lines: Iterable[str]
        torn = _tearing_assignors(run.scenario.settings) if [*run.violations] == [CO_PARTITIONED] else []
        if torn:
            raise CheckFailed("\n".join(_torn_lines(run, torn, options)))
        if own is not None:
            lines = [f"{_named(run)}: a real group does this, too", *_indented(own)]
        elif found is not None:
            lines = _livelock_lines(run, found, look_for_remedies)
        else:
            raise CheckFailed("\n".join(_lines(run, options)))
        message = "\n".join([*lines, *_how_to_see_it_again(run, options)])
        if run.scenario.settings.choice(IF_NEVER_SETTLED) == "fail":
            raise CheckFailed(message)
        print_lines_aside(message)


def _overload_lines(run: Run, growth: float, look_for_remedies: bool) -> Iterable[str]:
    """Less is processed than arrives: by how much, why, and which values of which settings end it."""
    yield f"{_named(run)}: this configuration cannot keep up"
    yield from _indented(f"{OVERLOAD}: {overload_sentence(growth)}")
    load = member_load(run.scenario.settings)
    if load.per_member is None:
        return
    yield from _indented(
        f"{load.arriving:,.0f} records a second arrive, {load.busiest:,.0f} of them in one partition; "
        f"a member processes at most {load.per_member:,.0f}"
    )
    if load.busiest >= load.per_member:
        yield "  more members do not help: only one of them reads the busiest partition"
    found: Iterable[tuple[str, int, int]] = ()
    note = ""
    if look_for_remedies and run.events <= MOST_EVENTS_OVERLOADED and load.arriving <= MOST_RECORDS:
        found = ((one.setting, one.value, one.now) for one in remedies_for_overload(run.scenario))
    else:
        note = ", by arithmetic alone"
        now = run.scenario.settings.integer
        found = (
            (setting, value, now(setting))
            for setting, values in (
                ("members", load.enough_members()),
                ("concurrency", load.enough_concurrency()),
            )
            for value in islice(values, 1)
        )
    for setting, value, before in found:
        yield f"  {setting} with which it keeps up{note}: {value} (now {before})"
    record_ms = load.record_ms()
    if record_ms is not None and record_ms * load.per_member < 1000 * load.concurrency:
        yield (
            f"  or with at most {record_ms:.3g} ms of work on a record, in the mean "
            f"(now {1000 * load.concurrency / load.per_member:.3g} ms)"
        )


def _tearing_assignors(settings: Settings) -> list[str]:
    """The assignors of the scenario that do not promise to keep partition n of all topics together."""
    if settings.choice(GROUP_PROTOCOL) == CONSUMER:
        name = settings.choice(REMOTE_ASSIGNOR)
        return [] if name == "range" else [BROKERS_ASSIGNOR if name == "none" else name]
    built_in = [name for name in settings.names(STRATEGY) if name in BUILT_IN]
    return [name for name in built_in if BUILT_IN[name].co_partitioned is None]


def _torn_lines(run: Run, assignors: Sequence[str], options: Sequence[str]) -> Iterable[str]:
    """Topics are joined, and the assignor was never meant to keep what is joined together."""
    setting = STRATEGY
    remedy = "range (topics of equal size), or stream-join-sticky"
    if run.scenario.settings.choice(GROUP_PROTOCOL) == CONSUMER:
        setting, remedy = REMOTE_ASSIGNOR, "range (topics of equal size)"
    yield f"{_named(run)}: this configuration cannot join its topics"
    yield from _indented(run.violations[CO_PARTITIONED])
    yield f"  {' and '.join(assignors)} may give partition n of two topics to two members"
    yield f"  {setting} that ends it: {remedy}"
    yield from _how_to_see_it_again(run, options)


def _named(run: Run) -> str:
    scenario = run.scenario
    return f"{scenario.name} ({scenario.variant}), seed {scenario.seed}"


def _livelock_lines(run: Run, found: str, look_for_remedies: bool) -> Iterable[str]:
    """The finding, and the values of settings that end it."""
    yield f"{_named(run)}: this configuration cannot settle"
    yield from _indented(found)
    if not look_for_remedies:
        return
    if run.events > MOST_EVENTS:
        yield f"  with more than {MOST_EVENTS:,} events no remedy is looked for: try fewer members"
        return
    remedied = False
    for remedy in remedies_for_livelock(run.scenario):
        which = "largest" if remedy.is_upper_bound else "smallest"
        beginning = "or the" if remedied else "the"
        remedied = True
        yield f"  {beginning} {which} {remedy.setting} that ends it: {remedy.value} (now {remedy.now})"
        if remedy.lag_growth is not None:
            growth = f"{remedy.lag_growth:,.0f} records a second"
            yield f"    then the group settles, but {STILL_OVERLOADED} {growth}"
    if not remedied:
        yield from _indented(_NO_REMEDY)


def _indented(text: str) -> list[str]:
    return wrap(text, 78, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def _lines(run: Run, options: Sequence[str]) -> Iterable[str]:
    scenario = run.scenario
    yield f"{_named(run)}: an invariant broke"
    for name, sentence in run.violations.items():
        yield f"  {name}: {sentence}"
    yield from _how_to_see_it_again(run, options)
    own = _own_assignors(scenario.settings)
    if set(run.violations) <= CONSEQUENCES:
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


def requirements_of(written: Sequence[str] | None) -> list[Requirement]:
    """The requirements of --require. Raises InputError."""
    return [parse(text) for text in written or ()]


def check_all_meet(runs: Mapping[str, Figures], required: Sequence[Requirement]) -> None:
    """Raise CheckFailed if a requirement is not met in enough of the runs."""
    unmet = [sentence for one in required for sentence in one.unmet_by(runs)]
    if unmet:
        raise CheckFailed("; ".join(unmet))


def check_variants_meet(
    variants: Mapping[str, Sequence[Figures]], required: Sequence[Requirement], printing: bool
) -> None:
    """Say which variants meet everything; raise CheckFailed if none does."""
    if not required:
        return
    unmet = {
        name: [sentence for one in required for sentence in _unmet(one, runs)]
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


def _unmet(requirement: Requirement, runs: Sequence[Figures]) -> list[str]:
    if len(runs) == 1:
        sentence = requirement.unmet(runs[0])
        return [] if sentence is None else [sentence]
    return requirement.unmet_by({f"run {number}": run for number, run in enumerate(runs, start=1)})
