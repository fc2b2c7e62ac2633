"""Small Kafka Streams applications for storms in tests."""

from __future__ import annotations

from typing import Any

from groupstorm.storms.scenario.files import Scenario
from tests.storms.storms_in_memory import FIXED, START, Storm, scenario

SECOND = 1_000_000
QUIET_MS = 1_800_000

#: Two instances, four tasks of 1 GB each, which a thread reads in 20 s; nothing is random.
SMALL = {
    "application": "streams", "members": 2, "partitions": 4, "state_bytes": 1_000_000_000, "restore_mb_s": 50,
    "record_rate": 10, "start_ms": {"exactly": 1_000}, "stop_grace_ms": 0, "settle_timeout_ms": 7_200_000,
    **FIXED,
}  # fmt: skip


def small(*steps: dict[str, Any], **settings: Any) -> Scenario:
    return scenario(
        [START, *steps], **{**SMALL, **{name.replace("__", "."): v for name, v in settings.items()}}
    )


def after(step: str, **fields: Any) -> dict[str, Any]:
    return {"at_ms": QUIET_MS, "do": step, **fields}


def require_invariants(found: Storm) -> Storm:
    assert found.broken == {}
    return found
