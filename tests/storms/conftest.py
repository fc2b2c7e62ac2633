"""Fixtures of the tests of storms."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor

import pytest

from tests.storms.seed_pool import processes


@pytest.fixture(scope="session")
def seed_processes() -> Iterator[Executor]:
    with processes() as executor:
        yield executor
