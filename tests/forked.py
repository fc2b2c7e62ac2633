"""Runs a module as `python -m MODULE` does, in a process that is forked from one with the imports done.

The imports of a command take longer than most commands. Tests therefore fork their commands from one server
process (`multiprocessing`'s fork server) that has imported the commands. Each command still has a process of
its own, with its arguments, folder, exit code and output. Tests of the start of the command, and of variables
that Python reads at its start (PYTHONPATH, PYTHONHASHSEED), use `subprocess`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.processes import DEADLINE_S, last_lines

#: Imported once. A module that cannot be imported is left to the command.
_PRELOADED = [
    "groupstorm.cli.app",
    "groupstorm.cli.assign",
    "groupstorm.cli.run",
    "groupstorm.cli.compare",
    "groupstorm.cli.trace",
    "groupstorm.cli.check_assignor",
    "groupstorm.cli.advise",
    "groupstorm.cli.explain",
    "groupstorm.cli.import_logs",
    "groupstorm.cli.report",
    "groupstorm.cli.rollout",
    "groupstorm.cli.script",
    "groupstorm.cli.sweep",
    "groupstorm.cli.watch",
    "groupstorm.pytest_plugin",
    "groupstorm.testing",
    "hypothesis",
    "pytest",
    "tests.broker.wire",
    "tests.testing.members",
]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(_PRELOADED)


def run_module(
    module: str, arguments: Sequence[str], cwd: Path, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m module arguments`` in ``cwd`` and wait for its end, which has a deadline.

    ``given``: its standard input.
    """
    with tempfile.TemporaryDirectory() as folder, _own_main():
        files = [Path(folder, name) for name in ("given", "out", "err")]
        files[0].write_text(given, "utf-8")
        process = _CONTEXT.Process(target=_run, args=(module, list(arguments), cwd, files, dict(os.environ)))
        process.start()
        process.join(DEADLINE_S)
        if process.exitcode is None:
            process.kill()
            said = last_lines(*(file.read_bytes() for file in files[1:])) if files[2].exists() else ""
            raise AssertionError(f"{module} {arguments} has not ended within {DEADLINE_S:g} s{said}")
        code = process.exitcode
        process.close()
        return subprocess.CompletedProcess([module, *arguments], code, *map(Path.read_text, files[1:]))


@contextlib.contextmanager
def _own_main() -> Iterator[None]:
    """Hide this process's main module, pytest's: the new process would import it first."""
    main = sys.modules["__main__"]
    spec, main.__spec__ = main.__spec__, None
    file = main.__dict__.pop("__file__", None)
    try:
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file


def _run(module: str, arguments: list[str], cwd: Path, files: list[Path], variables: dict[str, str]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    for number, file in enumerate(files):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY)
        os.dup2(descriptor, number)
        os.close(descriptor)
    # multiprocessing has closed the one that there was
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.path.insert(0, str(cwd))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
