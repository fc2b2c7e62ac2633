"""For all tests: soaking tries more examples of each property; processes share a run."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.hypothesis_examples import load_profile, soak_properties

#: One process runs all tests of such a folder: they share a Spark session, or brokers that start slowly.
_ONE_PROCESS = frozenset({"conformance", "containers", "pipeline", "website"})

#: A slow test takes about as long as so many others.
_SLOW_WEIGHT = 50


# Bytecode is kept even where the environment says otherwise: each of a run's hundreds of processes would
# compile the package anew, and each of those that share the tests would rewrite all their assertions.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config: pytest.Config) -> None:
    load_profile(soaks=_soaks(config))
    # A shell starts background jobs with SIGINT ignored, and the commands under test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Python would look for cycles among ten thousand tests again and again: a quarter of their collection.
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _soaks(config):
        soak_properties(items)
    if hasattr(config, "workerinput"):
        _longest_first(items)


def _longest_first(items: list[pytest.Item]) -> None:
    """Order what the processes share: a long file that begins last keeps one of them busy alone."""
    weights: Counter[str] = Counter()
    for item in items:
        weights[one_process(item.nodeid)] += _SLOW_WEIGHT if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -weights[one_process(item.nodeid)])


def pytest_collection_finish() -> None:
    gc.freeze()  # nor look through ten thousand tests for each of the cycles that they make
    gc.enable()


def _soaks(config: pytest.Config) -> bool:
    return bool(config.getoption("markexpr") == "soak")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """For `-n auto`: this process alone for a single file, and for tests that write pages anew, since several
    files may write to one page. Else more than there are cores: tests wait for sockets and timers, and slow
    ones for JVMs and for sessions to end."""
    is_one_file = len(config.args) == 1 and not Path(config.args[0]).is_dir()
    if is_one_file or "GROUPSTORM_REWRITE" in os.environ:
        return 0
    cores = os.cpu_count() or 1
    return cores + 1 if "not slow" in config.getoption("markexpr") else 2 * cores


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file in one process, and those of some folders: they share their fixtures.

    xdist's own marker for this, xdist_group, has no effect with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return one_process(nodeid)

    return Together(config, log)


def one_process(nodeid: str) -> str:
    """The tests with the same answer run in one process. ``nodeid``: tests/ROOM/.../test_x.py::test."""
    file = nodeid.partition("::")[0]
    room = file.split("/")[1] if file.startswith("tests/") else ""
    return room if room in _ONE_PROCESS else file
