"""Recordings of Kafka's classes in a situation: asked live, kept as golden JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.oracle.build import Built
from tests.oracle.group_member.playing import Json, play
from tests.oracle.group_member.situation import Situation
from tests.oracle.jvm import Jvm

GOLDEN = Path(__file__).resolve().parent / "golden" / "recordings.kafka-4.3.1.jsonl"

#: A recording: what has changed with each step of the situation.
Recording = list[Json]


class Difference(NamedTuple):
    """The first step of a situation that differs."""

    situation: Situation
    at: int
    kafka: Json
    ours: Json

    def __str__(self) -> str:
        steps = ", ".join(" ".join(map(str, step)) for step in self.situation.steps[: self.at + 1])
        return f"{self.situation}: {steps}\n    Kafka: {self.kafka}\n    ours:  {self.ours}"


def changes(states: Iterable[Json]) -> Recording:
    """Return of each state the fields that differ from the state before, and what was seen."""
    recording = []
    before: Mapping[str, Json] = {}
    for state in states:
        seen = {"seen": state["seen"]} if state["seen"] else {}
        now = {name: value for name, value in state.items() if name != "seen"}
        recording.append({name: value for name, value in now.items() if before.get(name) != value} | seen)
        before = now
    return recording


def ask(built: Built, situations: Iterable[Situation]) -> Iterator[tuple[Situation, Recording]]:
    """Ask Kafka's ConsumerMembershipManager and ConsumerHeartbeatRequestManager."""
    yield from asked(built, "consumer-member", situations)


def asked(
    built: Built, command: str, situations: Iterable[Situation]
) -> Iterator[tuple[Situation, Recording]]:
    """Ask a JVM's command what happens in each situation."""
    with Jvm(built, command, heap="256m") as jvm:
        for situation in situations:
            line = jvm.ask(json.dumps({"options": situation.options, "steps": situation.steps}))
            yield situation, changes(json.loads(line))


def difference(
    situation: Situation, kafka: Recording, play: Callable[[Situation], list[Json]] = play
) -> Difference | None:
    """Our member in that situation; None if it does what Kafka's does."""
    ours = changes(play(situation))
    for at, (expected, found) in enumerate(zip(kafka, ours, strict=True)):
        if expected != found:
            return Difference(situation, at, expected, found)
    return None


def read_golden() -> dict[str, Recording]:
    """Recordings by the name of their situation."""
    with GOLDEN.open(encoding="utf-8") as lines:
        recordings = [json.loads(line) for line in lines]
    return {recording["situation"]: recording["steps"] for recording in recordings}


def write_golden(recordings: Iterable[tuple[Situation, Recording]]) -> None:
    lines = [
        json.dumps({"situation": str(situation), "steps": recording}, separators=(",", ":"), sort_keys=True)
        for situation, recording in recordings
    ]
    GOLDEN.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
