"""Runs scripts of records, and finds their events."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from groupstorm.coordinator.script.scenario import read_scenario
from groupstorm.share_records.script import run_records

GOLDEN = Path(__file__).parent / "golden"

Event = dict[str, Any]


def golden(name: str) -> list[tuple[str, str]]:
    """Pairs of a script and Kafka's answer."""
    files = [GOLDEN / f"{name}.{kind}.jsonl.gz" for kind in ("cases", "kafka-4.4.0")]
    cases, answers = (gzip.decompress(file.read_bytes()).decode().splitlines() for file in files)
    return list(zip(cases, answers, strict=True))


def run_line(line: str) -> dict[str, Any]:
    """The answer to a script, as it is printed."""
    answer: dict[str, Any] = json.loads(json.dumps(run_records(read_scenario(line, "test"))))
    return answer


def run(*steps: Event, **config: Any) -> list[Event]:
    """The events of a script with one topic of one partition, `foo-0`, from its start."""
    base = {"topics": {"foo": 1}, "groups": {"g": {"share.auto.offset.reset": "earliest"}}}
    line = json.dumps({"id": "test", "config": base | config, "steps": steps})
    events: list[Event] = run_line(line)["events"]
    return events


def of_kind(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["kind"] == kind]


def acquired(event: Event, partition: str = "foo-0") -> list[list[int]]:
    """The ranges [first, last, count] that a fetch's answer gives."""
    return [one for part in event.get("parts", ()) if part["p"] == partition for one in part["acquired"]]


def last_state(events: list[Event], part: str, key: str) -> Any:
    """The last state that was printed of a share partition, a session, a stored state or a log."""
    found = [event[part][key] for event in of_kind(events, "state") if key in event.get(part, {})]
    return found[-1]
