"""Prints a script with Kafka's answers for people, and both answers at the first difference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.oracle.comparison import Answer, Difference, Event, difference

_WIDTH = 160


def transcript(script: dict[str, Any], kafkas: Answer, ours: Answer) -> str:
    """Steps, and under each what came of it, up to the first difference."""
    return "\n".join(_lines(script, kafkas, difference(kafkas, ours)))


def _lines(script: dict[str, Any], kafkas: Answer, found: Difference | None) -> Iterator[str]:
    yield f"script {script['id']}  config {_short(script.get('config', {}))}"
    events: list[Event] = kafkas.get("events", [])
    shown = len(events) if found is None or found.place < 0 else found.place
    groups: Any = {}
    place = 0
    for index, step in enumerate(script["steps"]):
        yield f"  {index:>3} {_step(step)}"
        while place < shown and _belongs(events, place, index):
            event = events[place]
            if event["kind"] != "state" or event["groups"] != groups:
                yield f"      {_event(event)}"
            groups = event["groups"] if event["kind"] == "state" else groups
            place += 1
        if place == shown and shown < len(events) and _belongs(events, place, index):
            break
    if found is not None:
        yield f"      KAFKA  {_event(found.kafkas)}"
        yield f"      OURS   {_event(found.ours)}"
        yield from _fields(found)


def _belongs(events: list[Event], place: int, step: int) -> bool:
    """Whether an event came about during this step: answers bear their request's step, states their own."""
    for event in events[place:]:
        if event["kind"] in ("state", "invalid"):
            return int(event["step"]) == step
    return True


def _step(step: dict[str, Any]) -> str:
    rest = {name: value for name, value in step.items() if name not in ("op", "as")}
    who = f" {step['as']}" if "as" in step else ""
    return f"{step.get('op')}{who} {_short(rest)}"


def _event(event: Any) -> str:
    if not isinstance(event, dict) or "kind" not in event:
        return "nothing" if event is None else _short(event)
    if event["kind"] == "state":
        return f"{event['t']} ms  " + ("; ".join(map(_group, event["groups"].items())) or "no groups")
    rest = {name: value for name, value in event.items() if name not in ("t", "step", "kind", "as")}
    who = f" {event['as']}" if "as" in event else ""
    return f"{event['t']} ms  {event['kind']}{who} (step {event['step']}) {_short(rest)}"


def _group(item: tuple[str, dict[str, Any]]) -> str:
    """A group's state in a few words: what is empty or null is left out."""
    name, group = item
    rest = {field: value for field, value in group.items() if value and field not in ("type", "state")}
    return f"{name} {group['state']} {_short(rest)}"


def _fields(found: Difference) -> Iterator[str]:
    """The fields in which two events of one kind differ, in full."""
    if not isinstance(found.kafkas, dict) or not isinstance(found.ours, dict):
        return
    for name in {**found.kafkas, **found.ours}:
        one, other = found.kafkas.get(name), found.ours.get(name)
        if one != other:
            yield f"      {name}: Kafka {json.dumps(one, ensure_ascii=False)}"
            yield f"      {' ' * len(name)}  ours  {json.dumps(other, ensure_ascii=False)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
