"""For all tests: a run without the slow ones tries fewer examples of each property."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.hypothesis_examples import register_profiles


def pytest_configure(config: pytest.Config) -> None:
    register_profiles()
    settings.load_profile("fast" if config.getoption("markexpr") == "not slow" else "full")
