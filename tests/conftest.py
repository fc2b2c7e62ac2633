"""For all tests: a run without the slow ones tries fewer examples of each property; processes share a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.hypothesis_examples import register_profiles

#: One process runs all tests of such a folder: they share a Spark session, or brokers that start slowly.
_ONE_PROCESS = frozenset({"conformance", "containers", "pipeline"})


def pytest_configure(config: pytest.Config) -> None:
    register_profiles()
    settings.load_profile("fast" if config.getoption("markexpr") == "not slow" else "full")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """For `-n auto`: this process alone for a single file, and for tests that write pages anew, since several
    files may write to one page; else pytest-xdist decides."""
    is_one_file = len(config.args) == 1 and not Path(config.args[0]).is_dir()
    return 0 if is_one_file or "GROUPSTORM_REWRITE" in os.environ else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one process: they share its fixtures."""
    tests = Path(__file__).parent
    for item in items:
        inside = item.path.relative_to(tests).parts if item.path.is_relative_to(tests) else item.path.parts
        item.add_marker(pytest.mark.xdist_group(inside[0] if inside[0] in _ONE_PROCESS else "/".join(inside)))
