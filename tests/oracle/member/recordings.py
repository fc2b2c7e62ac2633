"""Recordings of Kafka's Java consumer in every situation: recorded live, kept as golden JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.oracle.build import Built
from tests.oracle.member.members import JavaMember
from tests.oracle.member.playing import play
from tests.oracle.member.requests import Json
from tests.oracle.member.situation import Situation
from tests.oracle.member.situations import SITUATIONS

GOLDEN = Path(__file__).resolve().parent / "golden" / "recordings.kafka-4.3.1.jsonl"


async def record(built: Built, situations: Iterable[Situation]) -> list[dict[str, Json]]:
    """Play them with the Java consumer, one after another in one JVM."""
    async with JavaMember(built) as member:
        # The first situation of a JVM loads classes while time passes: it is not counted.
        await play(SITUATIONS[0], member)
        return [await play(situation, member) for situation in situations]


def read_golden() -> dict[str, dict[str, Json]]:
    """Recordings by the name of their situation."""
    with GOLDEN.open(encoding="utf-8") as lines:
        recordings = [json.loads(line) for line in lines]
    return {named(recording): recording for recording in recordings}


def write_golden(recordings: Iterable[dict[str, Json]]) -> None:
    GOLDEN.write_text("".join(_lines(recordings)), encoding="utf-8")


def named(recording: dict[str, Json]) -> str:
    """As `Situation` prints itself."""
    return str(Situation(recording["situation"], recording["variant"], {}, ()))


def _lines(recordings: Iterable[dict[str, Json]]) -> Iterator[str]:
    for recording in recordings:
        yield json.dumps(recording, separators=(",", ":"), sort_keys=True) + "\n"
