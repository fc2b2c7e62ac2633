"""Compares two answers to one script: the first difference, if there is one."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

Answer = dict[str, Any]
Event = dict[str, Any]


class Difference(NamedTuple):
    """The first event that differs; None: that side has no event there. ``place``: which one it is, -1
    where the answers differ in something else than events."""

    place: int
    kafkas: Any
    ours: Any


def plain(answer: Answer) -> Answer:
    """As JSON values, which is how answers are compared."""
    value: Answer = json.loads(json.dumps(answer))
    return value


def difference(kafkas: Answer, ours: Answer) -> Difference | None:
    """Where two answers part. What a scenario or a step fails of is free text and not compared."""
    if ("failed" in kafkas) != ("failed" in ours):
        return Difference(-1, _failed_or_ran(kafkas), _failed_or_ran(ours))
    if "failed" in kafkas:
        return None
    theirs, own = kafkas["events"], ours["events"]
    for index in range(max(len(theirs), len(own))):
        one = theirs[index] if index < len(theirs) else None
        other = own[index] if index < len(own) else None
        if _comparable(one) != _comparable(other):
            return Difference(index, one, other)
    if kafkas["ids"] != ours["ids"]:
        return Difference(-1, {"ids": kafkas["ids"]}, {"ids": ours["ids"]})
    return None


def _failed_or_ran(answer: Answer) -> Any:
    return {"failed": answer["failed"]} if "failed" in answer else "the scenario was run"


def _comparable(event: Event | None) -> Event | None:
    return {**event, "why": ""} if event is not None and event["kind"] == "invalid" else event


def changes_only(answer: Answer) -> Answer:
    """The answer without states that repeat the one before, as `groupstorm script --changes` gives it."""
    if "events" not in answer:
        return answer
    kept: list[Event] = []
    state: Any = None
    for event in answer["events"]:
        if event["kind"] != "state" or event["groups"] != state:
            kept.append(event)
        if event["kind"] == "state":
            state = event["groups"]
    return {**answer, "events": kept}
