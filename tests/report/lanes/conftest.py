"""Storms that several files draw: small ones, each run once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.explain.explaining import storm

SIZE: dict[str, Any] = {"members": 5, "partitions": 12, "phases": "aligned"}


@pytest.fixture(scope="session")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return storm(tmp_path_factory.mktemp("lanes") / "eager", "rolling-deploy", "eager", SIZE)


@pytest.fixture(scope="session")
def cooperative(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return storm(tmp_path_factory.mktemp("lanes") / "cooperative", "rolling-deploy", "cooperative", SIZE)


@pytest.fixture(scope="session")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Members of KIP-848; some stand still, one crashes, some come."""
    folder = tmp_path_factory.mktemp("lanes") / "consumer"
    return storm(folder, "new-protocol", "consumer", {"partitions": 24})


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A member with a slow batch, in an eager group, with callbacks that take time."""
    settings = {**SIZE, "revoke_callback_ms": 200, "assign_callback_ms": 300}
    return storm(tmp_path_factory.mktemp("lanes") / "slow", "slow-member-hostage", "eager", settings)
