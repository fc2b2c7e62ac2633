"""`./dev oracle member`: our member over TCP against Kafka's Java consumer, in a table of situations."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping

from tests.oracle.build import build
from tests.oracle.member.comparison import Difference, differences
from tests.oracle.member.known_differences import unexpected
from tests.oracle.member.members import OurMember
from tests.oracle.member.playing import TIMEOUT_S as PATIENT_S
from tests.oracle.member.playing import DidNotEnd, play
from tests.oracle.member.recordings import GOLDEN, named, record, write_golden
from tests.oracle.member.requests import Json
from tests.oracle.member.situation import Situation
from tests.oracle.member.situations import SITUATIONS

#: A situation takes at most 1.2 s. One that does not end is broken off after this time.
TIMEOUT_S = 4.0
#: Meetings mostly wait: so many at a time.
AT_A_TIME = 8
#: Time is real here: where the machine stands still for a tenth of a second, requests pass each other. What
#: differs beside others is met again alone, so often.
ATTEMPTS = 3

Recordings = Mapping[str, dict[str, Json]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--write-golden", action="store_true", help=f"record {GOLDEN.name} anew as well")


def run(options: argparse.Namespace) -> int:
    """0: nothing differs but what is known to; 1: something does."""
    recordings = asyncio.run(record(build(), SITUATIONS))
    if options.write_golden:
        write_golden(recordings)
        print(f"{len(recordings)} recordings of Kafka's Java consumer written to {GOLDEN}")
    kafka = {named(recording): recording for recording in recordings}
    found = asyncio.run(meet_all(kafka))
    unknown = 0
    for situation in SITUATIONS:
        differing = found[str(situation)]
        sentences = not_expected(situation, differing)
        unknown += bool(sentences)
        asked = len(kafka[str(situation)]["requests"])
        said = "; ".join(sentences) or ("equal, known differences aside" if differing else "equal")
        print(f"{situation}: {asked} requests, {said}")
        for one in differing if sentences else ():
            print(f"  {one}")
    kinds = len({situation.name for situation in SITUATIONS})
    print(f"situations: {len(SITUATIONS)} of {kinds} kinds; with unknown differences: {unknown}")
    return 1 if unknown else 0


async def meet_all(kafka: Recordings) -> dict[str, list[Difference]]:
    """Our member in every situation: what differs from the recordings of Kafka's."""
    places = asyncio.Semaphore(AT_A_TIME)

    async def beside_others(situation: Situation) -> list[Difference]:
        async with places:
            return await _compare(situation, kafka[str(situation)], TIMEOUT_S)

    met = await asyncio.gather(*map(beside_others, SITUATIONS))
    found = dict(zip(map(str, SITUATIONS), met, strict=True))
    for situation in SITUATIONS:
        for _ in range(ATTEMPTS):
            if not not_expected(situation, found[str(situation)]):
                break
            found[str(situation)] = await _compare(situation, kafka[str(situation)], PATIENT_S)
    return found


def not_expected(situation: Situation, differing: list[Difference]) -> list[str]:
    """A sentence for each difference that is not known, and for each known one that is not there."""
    return unexpected(situation.name, situation.variant, [one.what for one in differing])


async def _compare(situation: Situation, kafka: dict[str, Json], timeout_s: float) -> list[Difference]:
    try:
        ours = await play(situation, OurMember(), timeout_s)
    except DidNotEnd as endless:
        return [Difference("end", [request["api"] for request in kafka["requests"]], str(endless))]
    return list(differences(kafka, ours))
