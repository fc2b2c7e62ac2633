"""Runs without a folder: the trace is kept, and the files can be written later."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from groupstorm.figures import Figures
from groupstorm.storms.runs.assignor_work import AssignorWork
from groupstorm.storms.runs.run import Clocks, MachineCost, chosen_assignors, refuse_group, write_results
from groupstorm.storms.runs.run_folder import RunFolder
from groupstorm.storms.runs.start_and_end import Progress
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.kept_trace import KeptTrace
from groupstorm.trace.writer import open_writer

ENTRIES_PER_BATCH = 1024
"""Entries that a writer takes at once: about as many as a storm emits at once."""


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A finished run and its trace."""

    scenario: ResolvedScenario
    figures: Figures
    trace: KeptTrace
    cost: MachineCost
    assignor_failure: str | None

    def save(self, folder: Path, trace_format: str) -> None:
        """Write the files that `groupstorm.storms.runs.run.run` writes; an older run's files are replaced.

        Raises InputError for a folder that holds something else, or that cannot be written.
        """
        with RunFolder(folder).complete_or_absent():
            writer = open_writer(folder, "trace", trace_format)
            with ExitStack() as unfinished:
                unfinished.callback(writer.discard)
                entries = self.trace.entries()
                while batch := [*islice(entries, ENTRIES_PER_BATCH)]:
                    writer.add_all(batch)
                writer.close()
                unfinished.pop_all()
            write_results(folder, self.scenario, self.figures, self.cost, writer)


def run_in_memory(scenario: ResolvedScenario, progress: Progress | None = None) -> KeptRun:
    """Run in virtual time, without a folder. Raises InputError if the scenario cannot run."""
    assignors = chosen_assignors(scenario)
    refuse_group(scenario.settings)
    work, trace, clocks = AssignorWork(), KeptTrace(), Clocks()
    figures = simulate(scenario, assignors, trace, False, progress, work)
    trace.close()
    return KeptRun(scenario, figures, trace, clocks.cost(work), work.failure)
