"""Runs and their files: one folder per run, complete or not there.

`trace.jsonl` or `trace.parquet`, `scenario.yaml`, `figures.json` depend on the scenario and its seed
alone; `measured.json` holds what depends on the machine. A run in memory may write the files later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from groupstorm.assignors.contract import Assignor, RebalanceProtocol
from groupstorm.assignors.registry import get
from groupstorm.clients.profiles import PROFILES
from groupstorm.figures import Figures
from groupstorm.history.reasons import GapReasons, Reasons
from groupstorm.problems import InputError
from groupstorm.storms.checks.settling import IF_NEVER_SETTLED
from groupstorm.storms.runs.run_folder import REAL_TIME, RunFolder, write_json, write_text
from groupstorm.storms.runs.step_runner import Progress
from groupstorm.storms.scenario.consistency import is_shared
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.member_rules import STRATEGY
from groupstorm.storms.scenario.setting_names import CONSUMER, SHARE, STREAMS
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.environment import AssignorWork
from groupstorm.storms.world.member_settings import strategies
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.rows import TraceSink
from groupstorm.trace.writer import KeptTrace, Tee, TraceWriter, open_writer

#: Entries that a writer takes at once: about as many as a storm emits at once.
ENTRIES_PER_BATCH = 1024

ANYWAY = f"{IF_NEVER_SETTLED}=report runs it all the same"


class MachineCost(NamedTuple):
    """The cost of a run. ``assignors``: as `AssignorWork.measured` gives it."""

    wall_seconds: float
    cpu_seconds: float
    assignors: Mapping[str, int | float]
    peak_memory_mib: int | None


class Clocks:
    """Runs from now on, while a storm runs; `cost` reads it."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def cost(self, work: AssignorWork | None) -> MachineCost:
        """``work``: the sums of the assignors' work, if the run keeps them."""
        return MachineCost(
            time.perf_counter() - self._wall,
            time.process_time() - self._cpu,
            {} if work is None else work.measured(),
            _peak_memory_mib(),
        )


def _peak_memory_mib() -> int | None:
    """None where Python has no `resource`, as in a browser."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its figures and its files."""

    scenario: ResolvedScenario
    figures: Figures
    folder: Path
    trace: Path
    events: int
    wall_seconds: float
    assignor_failure: str | None = None
    reasons: Reasons = field(default_factory=Reasons)

    @property
    def violations(self) -> dict[str, str]:
        return broken_invariants(self.figures)


def broken_invariants(figures: Figures) -> dict[str, str]:
    """The invariants that broke in a run, each with what happened."""
    return {name: verdict for name, verdict in (figures.invariants or {}).items() if verdict != "held"}


def chosen_assignors(scenario: ResolvedScenario) -> Sequence[Assignor]:
    """The assignors that the scenario's members offer, in their order. Raises InputError.

    None for a Kafka Streams application, whose threads bring their own, and for a share group.
    """
    if scenario.settings.choice("application") == STREAMS or is_shared(scenario.settings):
        return []
    for own in scenario.settings.of_profiles():
        _refuse_assignors(own)
    as_kafka = scenario.settings.flag("kafka_defects")
    return [get(entry, bug_compat=as_kafka) for entry in strategies(scenario.settings)]


def _refuse_assignors(settings: Settings) -> None:
    """Refuse two of one name, and cooperative ones of a client that would keep what it has to give up."""
    client, entries = PROFILES[settings.names("client_profile")[0]], settings.names(STRATEGY)
    if len({get(entry).name for entry in entries}) < len(entries):
        raise InputError(f"{STRATEGY}: {', '.join(entries)}: two assignors of one name: no consumer starts")
    for entry in entries:
        if not client.has_cooperative and RebalanceProtocol.COOPERATIVE in get(entry).protocols:
            raise InputError(
                f"partition.assignment.strategy: {client.name} (client_profile) has no cooperative "
                f"rebalancing, expected eager assignors and not {entry}"
            )


def refuse_group(settings: Settings) -> None:
    """Raise InputError if the broker would refuse members for good, unless the scenario is about that."""
    if settings.choice(IF_NEVER_SETTLED) == "report":
        return
    newer = {CONSUMER: "group.consumer.max.size", SHARE: "group.share.max.size"}
    largest = newer.get(settings.choice("group.protocol"), "group.max.size")
    members, most = settings.integer("members"), settings.integer(largest)
    if members * settings.integer("num.stream.threads") > most:
        raise InputError(
            f"{largest}: {most}: the broker refuses further members with GROUP_MAX_SIZE_REACHED, and "
            f"the scenario starts {members} (members); {ANYWAY}"
        )
    clients = settings.at_start()
    if not set.intersection(*(set(own.names(STRATEGY)) for own in clients)):
        offered = [f"{own.names('client_profile')[0]}: {', '.join(own.names(STRATEGY))}" for own in clients]
        raise InputError(
            f"{STRATEGY}: the clients have no assignor in common ({'; '.join(offered)}): the broker refuses "
            f"such members with INCONSISTENT_GROUP_PROTOCOL; {ANYWAY}"
        )


def run(
    scenario: ResolvedScenario,
    folder: Path,
    trace_format: str = "jsonl",
    exact: bool = False,
    progress: Progress | None = None,
    log: TraceSink | None = None,
) -> Run:
    """Run in virtual time and write the files into ``folder``, whose older run they replace.

    ``log``: a second sink for every event, for people.
    Raises InputError for a folder that holds something else, or that cannot be written.
    """
    assignors = chosen_assignors(scenario)
    refuse_group(scenario.settings)
    work = AssignorWork()

    def storm(sink: TraceSink, gaps: GapReasons) -> Figures:
        return simulate(scenario, assignors, sink, exact, progress, work, gaps)

    return record(scenario, folder, trace_format, storm, log, work)


def record(
    scenario: ResolvedScenario,
    folder: Path,
    trace_format: str,
    storm: Callable[[TraceSink, GapReasons], Figures],
    log: TraceSink | None = None,
    work: AssignorWork | None = None,
    real_time: Mapping[str, str] | None = None,
) -> Run:
    """Run ``storm``, which emits its events and returns its figures, and write the files into ``folder``.

    ``work``: the sums of the assignors' work, if ``storm`` keeps them. ``real_time``: the options of a run
    in real time, see `real_time_options`.
    """
    with RunFolder(folder).complete_or_absent():
        clocks = Clocks()
        gaps = GapReasons()
        with _trace_in(folder, trace_format) as writer:
            figures = storm(writer if log is None else Tee(writer, log), gaps)
        cost = clocks.cost(work)
        write_results(folder, scenario, figures, cost, writer, real_time)
    failure = None if work is None else work.failure
    return Run(
        scenario, figures, folder, writer.path, writer.rows, cost.wall_seconds, failure, gaps.reasons()
    )


@contextmanager
def _trace_in(folder: Path, trace_format: str) -> Iterator[TraceWriter]:
    """Open a run's trace for the block and close it behind; if one of them fails, discard the trace."""
    writer = open_writer(folder, "trace", trace_format)
    with ExitStack() as unfinished:
        unfinished.callback(writer.discard)
        yield writer
        writer.close()
        unfinished.pop_all()


def write_results(
    folder: Path,
    scenario: ResolvedScenario,
    figures: Figures,
    cost: MachineCost,
    trace: TraceWriter,
    real_time: Mapping[str, str] | None = None,
) -> None:
    """Write the files beside ``trace``, which is closed. measured.json comes last: the run is complete."""
    write_text(folder / "scenario.yaml", scenario.as_yaml())
    write_json(folder / "figures.json", figures.to_json())
    measured = {
        **({REAL_TIME: real_time} if real_time else {}),
        "wall_seconds": round(cost.wall_seconds, 3),
        "cpu_seconds": round(cost.cpu_seconds, 3),
        **cost.assignors,
        "peak_memory_mib": cost.peak_memory_mib,
        "trace_rows": trace.rows,
        "trace_bytes": trace.path.stat().st_size,
    }
    write_json(folder / "measured.json", measured)


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A finished run and its trace."""

    scenario: ResolvedScenario
    figures: Figures
    trace: KeptTrace
    cost: MachineCost
    assignor_failure: str | None

    def save(self, folder: Path, trace_format: str) -> None:
        """Write the files that `run` writes; an older run's files are replaced.

        Raises InputError for a folder that holds something else, or that cannot be written.
        """
        with RunFolder(folder).complete_or_absent():
            with _trace_in(folder, trace_format) as writer:
                entries = self.trace.entries()
                while batch := [*islice(entries, ENTRIES_PER_BATCH)]:
                    writer.add_all(batch)
            write_results(folder, self.scenario, self.figures, self.cost, writer)


def run_in_memory(scenario: ResolvedScenario, progress: Progress | None = None) -> KeptRun:
    """Run in virtual time, without a folder. Raises InputError if the scenario cannot run."""
    assignors = chosen_assignors(scenario)
    refuse_group(scenario.settings)
    work, trace, clocks = AssignorWork(), KeptTrace(), Clocks()
    figures = simulate(scenario, assignors, trace, False, progress, work)
    trace.close()
    return KeptRun(scenario, figures, trace, clocks.cost(work), work.failure)
