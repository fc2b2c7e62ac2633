"""Traces are those that were recorded: a change of the world, of a client or of the coordinator shows here.

    GROUPSTORM_REWRITE=1 pytest tests/storms/test_recorded_traces.py

writes `recorded_traces.json` anew. Do so only for a change of behaviour that is intended: users compare runs
of different versions, so CHANGELOG.md has to name it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from groupstorm.storms.scenario.files import load
from groupstorm.trace.rows import event_name
from tests.storms import test_equal_small_worlds as small
from tests.storms.storms_in_memory import START, Storm, scenario, storm

HERE = Path(__file__).parent
RECORDED = HERE / "recorded_traces.json"
ALL_STEPS = HERE / "all-steps.yaml"
ALL_DEPLOYMENTS = HERE / "deployments" / "all-deployments.yaml"
ALL_OF_THE_WORLD = HERE / "all-of-the-world.yaml"
STREAMS = HERE / "streams" / "all-steps.yaml"
SEED = 3


def of_file(path: Path, variant: str) -> Callable[[], Storm]:
    return lambda: storm(str(path), SEED, variant)


def of_small_world(fault: str, variant: str, at_ms: int) -> Callable[[], Storm]:
    steps = [START, {"at_ms": at_ms, **small.FAULTS[fault]}, *small.THEN]
    return lambda: storm(scenario(steps, **small.of_variant(variant)), seed=at_ms)


CASES: Mapping[str, Callable[[], Storm]] = {
    **{f"small world, {fault}, {of}": of_small_world(fault, of, at_ms) for fault, of, at_ms in small.CASES},
    **{
        f"{path.stem}, {variant}": of_file(path, variant)
        for path in (ALL_STEPS, ALL_DEPLOYMENTS)
        for variant in load(str(path)).variants
    },
    "all-of-the-world, cooperative": of_file(ALL_OF_THE_WORLD, "cooperative"),
    "streams, shipped": of_file(STREAMS, "shipped"),
}


def recorded(done: Storm) -> dict[str, Any]:
    """Return what is kept of a trace: how many rows of each event it has, and a hash of them all."""
    digest = hashlib.sha256()
    for row in done.rows:
        digest.update(repr(row).encode())
    counts = Counter(event_name(event.__class__) for _, _, event in done.rows)
    return {"events": dict(sorted(counts.items())), "sha256": digest.hexdigest()}


#: All of them take half a minute: the loop of a working day has one variant of each world.
SLOW = {name for name in CASES if not name.endswith("cooperative")} | {"all-of-the-world, cooperative"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in CASES]
)
def test_the_trace_is_the_recorded_one(name: str) -> None:
    found = recorded(CASES[name]())
    kept = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    before = kept.get(name)
    if os.environ.get("GROUPSTORM_REWRITE") and found != before:
        kept[name] = found
        lines = (f"{json.dumps(each)}: {json.dumps(kept[each])}" for each in CASES if each in kept)
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    assert found == before


def test_nothing_else_is_recorded() -> None:
    assert list(json.loads(RECORDED.read_text("utf-8"))) == list(CASES)
