"""Runs tests in forked processes: to record them, and with a mutation in place."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import hypothesis
import pytest

from tests.mutation.mutations import Mutation
from tests.mutation.processes import Task, fork_each, limit_from_now
from tests.mutation.recording import CACHE, Recorded, Recorder, cached, key_of, shared_key, store
from tests.mutation.rooms import ROOT, Room
from tests.mutation.swapping import Functions, mutate_imports

#: What a run may compute: seconds for imports, and a multiple of what its tests took when they were traced.
_IMPORT_S: Final = 20
_SLOWER: Final = 3
_RECORDING_S: Final = 1200

#: Plugins of pytest that nothing here needs; two of them collect garbage at the end.
_WITHOUT: Final = ("cacheprovider", "unraisableexception", "threadexception", "faulthandler")

#: A forked process that could not swap the mutation in: it has to be imported.
CANNOT_SWAP: Final = 77


class Trial(NamedTuple):
    """A mutation and the tests that may notice it, in the order in which they run, with their seconds."""

    path: Path
    mutation: Mutation
    tests: Mapping[str, float]

    def cpu_s(self) -> float:
        return _IMPORT_S + _SLOWER * sum(self.tests.values())

    def cpu_s_of_one(self) -> float:
        """Of any of the tests, which may be the one that sets up what the others use, too."""
        return _IMPORT_S + _SLOWER * max(self.tests.values())


class TestsFail(Exception):
    """A test file that fails without any mutation."""


def record(name: str, room: Room, jobs: int) -> dict[Path, Recorded]:
    """What each test file of a room runs; from the cache if nothing has changed."""
    files, test_files = room.files(), room.test_files()
    shared = shared_key(files)
    keys = {path: key_of(shared, path) for path in test_files}
    missing = [path for path in test_files if cached(name, path, keys[path]) is None]
    codes: dict[int, int] = {}
    task = fork_each([Task(at, _RECORDING_S) for at in range(len(missing))], jobs, codes.__setitem__)
    if task is not None:
        os._exit(_record(name, missing[task.number], keys[missing[task.number]], files))
    for at, path in enumerate(missing):
        if codes[at]:
            output = _output(path).read_text("utf-8", errors="replace")[-3000:]
            raise TestsFail(f"{path.relative_to(ROOT)} fails without any mutation, mend it first:\n{output}")
    return {path: found for path in test_files if (found := cached(name, path, keys[path])) is not None}


def _record(name: str, test_file: Path, key: str, files: Sequence[Path]) -> int:
    _silence(_output(test_file))
    recorder = Recorder(files)
    code = int(pytest.main([*_options("--tb=short"), str(test_file)], plugins=[_Examples(), recorder]))
    recorded = recorder.recorded()
    if code in {0, 5}:  # 5: all its tests are slow
        store(name, test_file, key, recorded)
        return 0
    return code


def try_imported(trials: Sequence[Trial], jobs: int, done: Callable[[int, int], None]) -> None:
    """Trials whose mutation is in place before anything of the package is imported."""
    task = fork_each([Task(at, each.cpu_s()) for at, each in enumerate(trials)], jobs, done)
    if task is None:
        return
    trial = trials[task.number]
    _silence()
    mutate_imports(trial.path, trial.mutation)
    for test_file in dict.fromkeys(test.partition("::")[0] for test in trial.tests):
        # file by file, since most of the time goes to imports that a failure makes needless
        code = int(pytest.main([*_options("--tb=no"), test_file], plugins=[_Examples()]))
        if code not in {0, 5}:
            os._exit(code)
    os._exit(0)


def try_swapped(
    trials: Sequence[Trial],
    test_files: Sequence[Path],
    modules: Sequence[str],
    jobs: int,
    done: Callable[[int, int], None],
) -> None:
    """Trials whose mutation takes the place of functions that are imported.

    The tests are collected once, in a process that is forked from this one. `CANNOT_SWAP` is the code of a
    trial whose mutation has to be there before the imports.
    """
    read, write = os.pipe()
    server = os.fork()
    if server == 0:
        os.close(read)
        _silence()
        plugin = _Server(trials, modules, jobs, write)
        code = int(pytest.main([*_options("--tb=no"), *map(str, test_files)], plugins=[_Examples(), plugin]))
        os._exit(code)
    os.close(write)
    try:
        with os.fdopen(read) as answers:
            for line in answers:
                number, code = map(int, line.split())
                done(number, code)
    except BaseException:
        os.kill(server, signal.SIGTERM)
        raise
    finally:
        os.waitpid(server, 0)


class _Server:
    """A pytest plugin: after the collection, a forked process per trial runs the trial's tests."""

    def __init__(self, trials: Sequence[Trial], modules: Sequence[str], jobs: int, answers: int) -> None:
        self._trials, self._modules, self._jobs, self._answers = trials, modules, jobs, answers
        self.trial: Trial | None = None
        self.swapped = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None
        for name in self._modules:
            importlib.import_module(name)
        functions = Functions({each.path for each in self._trials})
        tasks = [Task(at, each.cpu_s()) for at, each in enumerate(self._trials)]
        gc.freeze()  # a forked process neither collects nor copies what is here
        task = fork_each(tasks, self._jobs, self._answer)
        if task is None:
            return True
        self.trial = self._trials[task.number]
        items = {item.nodeid: item for item in session.items}
        if not functions.swap(self.trial.path, self.trial.mutation):
            return True
        self.swapped = True
        session.items[:] = [items[test] for test in self.trial.tests]
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """A mutation may make a test run for ever: that is noticed before the time of all tests is over."""
        if self.trial is not None:
            limit_from_now(self.trial.cpu_s_of_one())

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """The fixtures of a trial have ended: what pytest does after that costs more than most tests."""
        if self.trial is not None:
            os._exit(int(exitstatus) if self.swapped else CANNOT_SWAP)

    def _answer(self, number: int, code: int) -> None:
        os.write(self._answers, f"{number} {code}\n".encode())


class _Examples:
    """A pytest plugin: properties try the same examples each time, do not shrink, and remember nothing."""

    def pytest_sessionstart(self) -> None:
        hypothesis.settings.register_profile(
            "mutation",
            derandomize=True,
            database=None,
            deadline=None,
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
            report_multiple_bugs=False,
            suppress_health_check=list(hypothesis.HealthCheck),
            max_examples=hypothesis.settings().max_examples,
        )
        hypothesis.settings.load_profile("mutation")


def import_outside(modules: Sequence[str]) -> None:
    """Import what the tests need from outside of the checkout, once for all forked processes."""
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def _options(traceback: str) -> list[str]:
    return ["-x", "-q", "-n0", "--assert=plain", traceback, *(f"-pno:{each}" for each in _WITHOUT)]


def _output(test_file: Path) -> Path:
    return CACHE / f"{'.'.join(test_file.relative_to(ROOT).with_suffix('').parts)}.txt"


def _silence(path: Path | None = None) -> None:
    """Standard output and error of this process go to a file, or nowhere."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    silent = os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    sys.stdout.flush()
    os.dup2(silent, 1)
    os.dup2(silent, 2)
