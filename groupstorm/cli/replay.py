"""`groupstorm replay`: a run again, compared row by row."""

from __future__ import annotations

from pathlib import Path

from groupstorm.cli.options import overrides
from groupstorm.cli.printing import print_line
from groupstorm.storms.runs.past_runs import replay as replay_run


def replay(
    folder: Path,
    exact: bool = False,
    settings: list[str] | None = None,
) -> None:
    """Run a run again from its scenario.yaml and check that every event comes out the same.

    If one differs, the command prints it and exits with 1. With --exact it simulates each heartbeat: the
    trace must be the same. --set names an assignor of your own, which a scenario file cannot.
    """
    rows = replay_run(folder, exact, overrides(settings))
    print_line(f"{folder}: all {rows:,} rows came out the same")
