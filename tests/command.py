"""The `groupstorm` command in a process of its own, from this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any

from tests.forked import run_module
from tests.processes import run_process

ROOT = Path(__file__).parents[1]

_INSTALLED = "groupstorm" in {one.name for one in entry_points(group="pytest11")}
#: What loads our pytest plugin where groupstorm is not installed but on the path.
PLUGIN = () if _INSTALLED else ("-p", "groupstorm.pytest_plugin")


COMMAND = (sys.executable, "-m", "groupstorm")


def groupstorm(
    *arguments: str,
    cwd: Path = ROOT,
    given: str = "",
    stdout: int | IO[Any] = subprocess.PIPE,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run it on ``given``; ``environment`` is added to this process's own, and makes a new Python start."""
    if not environment and stdout == subprocess.PIPE:
        return run_module("groupstorm", arguments, cwd, given)
    return run_process(
        [*COMMAND, *arguments],
        input=given,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        check=False,
        env=environment_of_command() | environment,
    )


def tool(name: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool of the builders, a package of `tools`."""
    return run_module(f"tools.{name}", arguments, cwd)


def environment_of_command() -> dict[str, str]:
    """This process's own, with the checkout on the path."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def refused(result: subprocess.CompletedProcess[str]) -> str:
    """The one line that a command ends with on bad input (exit 2)."""
    assert result.returncode == 2, result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]
