"""Storms in one process need no module that Python in a browser lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import environment_of_command
from tests.processes import run_process

#: What a browser's Python has not: resource limits, processes, RE2.
_HIDE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"multiprocessing", "re2", "resource"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""

_STORM = """
import hashlib, sys
from pathlib import Path
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load

settings = {"members": 3, "record_rate": 10, "group.protocol": sys.argv[1]}
done = run(load("cold-start").resolve(None, 5, settings), Path("run"))
print(done.events, hashlib.sha256(done.trace.read_bytes()).hexdigest())
"""


def storm(code: str, protocol: str, folder: Path) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    command = [sys.executable, "-c", code, protocol]
    environment = environment_of_command()
    return run_process(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_storm_gives_the_same_trace_without_them(protocol: str, tmp_path: Path) -> None:
    whole = storm(_STORM, protocol, tmp_path / "whole")
    bare = storm(_HIDE + _STORM, protocol, tmp_path / "bare")
    assert (whole.stderr, bare.stderr) == ("", "")
    assert bare.stdout == whole.stdout != ""
