"""`./dev oracle group-member` and `streams-thread`: members against Kafka's own classes, in virtual time."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.oracle.build import Built, build, build_streams_thread
from tests.oracle.group_member import drawing, playing
from tests.oracle.group_member.playing import Json
from tests.oracle.group_member.situation import Situation
from tests.oracle.jvm import Jvm
from tests.oracle.streams_thread import drawing as thread_drawing
from tests.oracle.streams_thread import playing as thread_playing

COUNT = 5_000

#: A recording: what has changed with each step of the situation.
Recording = list[Json]
Ask = Callable[[Iterable[Situation]], Iterator[Recording]]


class MemberKind(NamedTuple):
    """A kind of member: its scripts by number, and who plays them.

    ``ask``: what Kafka's classes do in each situation. ``kept``: the scripts whose recordings are kept.
    ``throws``: a script may end where Kafka's classes contradict themselves and throw.
    """

    title: str
    draw: Callable[[int], Situation]
    play: Callable[[Situation], list[Json]]
    ask: Ask
    kept: Sequence[int]
    golden: Path
    throws: bool = False

    def differing(self, recordings: Iterable[tuple[int, Recording]]) -> list[Difference]:
        """The scripts in which our member does not do what Kafka's did."""
        return [found for one in recordings if (found := self._difference(*one)) is not None]

    def _difference(self, number: int, kafka: Recording) -> Difference | None:
        situation = self.draw(number)
        ours = changes(self.play(situation))
        for at, (expected, found) in enumerate(zip(kafka, ours, strict=not self.throws)):
            if expected != found:
                return Difference(situation, at, expected, found)
        return None

    def record(self, numbers: Sequence[int]) -> Iterator[tuple[int, Recording]]:
        """Ask Kafka's classes."""
        return zip(numbers, self.ask(map(self.draw, numbers)), strict=True)

    def read_golden(self) -> Mapping[int, Recording]:
        """Recordings by the number of their script."""
        with self.golden.open(encoding="utf-8") as lines:
            return {int(one["script"]): one["steps"] for one in map(json.loads, lines)}

    def write_golden(self) -> None:
        lines = [
            json.dumps({"script": str(number), "steps": steps}, separators=(",", ":"), sort_keys=True)
            for number, steps in self.record(self.kept)
        ]
        self.golden.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{len(lines)} recordings of Kafka's classes written to {self.golden}")


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


def _asked(built: Callable[[], Built], command: str) -> Ask:
    """Ask a JVM's command what happens in each situation."""

    def ask(situations: Iterable[Situation]) -> Iterator[Recording]:
        with Jvm(built(), command, heap="256m") as jvm:
            for situation in situations:
                line = jvm.ask(json.dumps({"options": situation.options, "steps": situation.steps}))
                yield changes(json.loads(line))

    return ask


def _golden(of: str, kafka: str) -> Path:
    return Path(__file__).resolve().parents[1] / of / "golden" / f"recordings.kafka-{kafka}.jsonl"


KINDS = {
    "group-member": MemberKind(
        "A member of a consumer group against Kafka's own classes, in virtual time.",
        drawing.draw,
        playing.play,
        _asked(build, "consumer-member"),
        drawing.KEPT,
        _golden("group_member", "4.3.1"),
    ),
    "streams-thread": MemberKind(
        "A member of a streams group against Kafka's own classes, in virtual time.",
        thread_drawing.draw,
        thread_playing.play,
        _asked(lambda: build_streams_thread("4.4.0"), ""),
        range(60),
        _golden("streams_thread", "4.4.0"),
        throws=True,
    ),
}


def add_arguments(parser: argparse.ArgumentParser, kind: MemberKind) -> None:
    """The command's options."""
    parser.add_argument(
        "--count", type=int, default=COUNT, help=f"how many scripts to draw (default {COUNT})"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first script (default 0)")
    parser.add_argument("--write-golden", action="store_true", help=f"record {kind.golden.name} anew as well")


def run(options: argparse.Namespace, kind: MemberKind) -> int:
    """0: no difference; 1: one at least."""
    if options.write_golden:
        kind.write_golden()
    differing = kind.differing(kind.record(range(options.first, options.first + options.count)))
    for found in differing:
        print(found)
    print(f"scripts: {options.count:,}; different: {len(differing)}")
    return 1 if differing else 0
