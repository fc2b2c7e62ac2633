"""The `groupstorm` command in a process of its own, from this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[1]

_INSTALLED = "groupstorm" in {one.name for one in entry_points(group="pytest11")}
#: What loads our pytest plugin where groupstorm is not installed but on the path.
PLUGIN = () if _INSTALLED else ("-p", "groupstorm.pytest_plugin")


def groupstorm(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it; ``environment`` is added to this process's own."""
    return subprocess.run(
        [sys.executable, "-m", "groupstorm", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def refused(result: subprocess.CompletedProcess[str]) -> str:
    """The one line that a command ends with on bad input (exit 2)."""
    assert result.returncode == 2, result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]
