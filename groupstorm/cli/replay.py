"""`groupstorm replay`: does a run come out the same?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from groupstorm.cli.options import ExactOption, SetOption, overrides
from groupstorm.storms.replay import replay as replay_run


def replay(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    exact: ExactOption = False,
    settings: SetOption = None,
) -> None:
    """Run a run again from its scenario.yaml and check that every event comes out the same.

    Exit 1, and the first row that differs, if not. With --exact the other way to compute heartbeats
    is held against the one that made the trace. --set is for what a file cannot name: an assignor
    of your own.
    """
    rows = replay_run(folder, exact, overrides(settings))
    print(f"{folder}: all {rows:,} rows came out the same")
