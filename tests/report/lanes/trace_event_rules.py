"""The rules of Chrome's trace-event format, from its description ("Trace Event Format", Chromium), and of how
Perfetto reads it (docs/getting-started/other-formats, and the synthetic TrackEvent page on slices that nest).

A reader sorts events by their time; events of one time stay in the file's order.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]

#: Phase -> the fields that it must have besides "ph" and "pid".
FIELDS: Mapping[str, Sequence[str]] = {
    "M": ("name", "args"),
    "B": ("name", "ts", "tid"),
    "E": ("ts", "tid"),
    "X": ("name", "ts", "tid", "dur"),
    "i": ("name", "ts", "tid", "s"),
    "C": ("name", "ts", "args"),
    "s": ("name", "ts", "tid", "id", "cat"),
    "f": ("name", "ts", "tid", "id", "cat", "bp"),
}
METADATA = {
    "process_name": "name",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def read_events(path: Path) -> list[Event]:
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    assert document["displayTimeUnit"] in ("ms", "ns")
    events: list[Event] = document["traceEvents"]
    return events


def check_events(events: Sequence[Event]) -> None:
    """Fails if an event breaks a rule of the format."""
    for event in events:
        _check_fields(event)
    _check_names(events)
    timed = sorted((event for event in events if event["ph"] != "M"), key=lambda event: event["ts"])
    open_slices: defaultdict[tuple[int, int], list[Event]] = defaultdict(list)
    flows: dict[Any, Event] = {}
    ended: set[Any] = set()
    for event in timed:
        if event["ph"] == "C":
            continue
        lane = event["pid"], event["tid"]
        slices = open_slices[lane]
        if event["ph"] == "B":
            slices.append(event)
        elif event["ph"] == "E":
            assert slices, f"ends, but nothing is open: {event}"
            slices.pop()
        elif event["ph"] == "s":
            assert slices, f"a flow begins outside of every slice: {event}"
            assert event["id"] not in flows, f"two flows with one id: {event}"
            flows[event["id"]] = event
        elif event["ph"] == "f":
            assert slices, f"a flow ends outside of every slice: {event}"
            assert event["id"] not in ended, f"a flow ends twice: {event}"
            begun = flows[event["id"]]
            assert (begun["name"], begun["cat"]) == (event["name"], event["cat"])
            ended.add(event["id"])
    assert ended == flows.keys(), "flows that do not end"
    assert not any(open_slices.values()), "slices that do not end"


def _check_fields(event: Event) -> None:
    assert event["ph"] in FIELDS, f"an unknown phase: {event}"
    assert isinstance(event["pid"], int)
    for name in FIELDS[event["ph"]]:
        assert name in event, f"no {name}: {event}"
    if "ts" in event:
        assert isinstance(event["ts"], int | float)
        assert event["ts"] >= 0, event
    if event["ph"] == "X":
        assert event["dur"] >= 0, event
    if event["ph"] == "i":
        assert event["s"] in ("t", "p", "g"), event
    if event["ph"] == "f":
        assert event["bp"] == "e", event
    if event["ph"] == "C":
        assert event["args"]
        assert all(isinstance(value, int | float) for value in event["args"].values()), event
    assert isinstance(event.get("args", {}), dict)


def _check_names(events: Sequence[Event]) -> None:
    """Every process and thread is named once, before its first event."""
    named: set[tuple[str, int, int | None]] = set()
    for event in events:
        if event["ph"] == "M":
            assert METADATA[event["name"]] in event["args"], event
            key = event["name"], event["pid"], event.get("tid")
            assert key not in named, event
            named.add(key)
        else:
            assert ("process_name", event["pid"], None) in named, event
            assert event["ph"] == "C" or ("thread_name", event["pid"], event["tid"]) in named, event
