"""Plays one situation with one member: its requests, and what its application observes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tests.oracle.member.members import Member, Observations
from tests.oracle.member.requests import Json, collapse
from tests.oracle.member.scripted_broker import Recording
from tests.oracle.member.situation import CONFIG, TOPICS, After, Situation, WhenEnded, WhenQuiet

#: A situation takes less than a second. One that does not end is broken off after this time.
TIMEOUT_S = 20.0


class DidNotEnd(Exception):
    """The member did not do what the situation waits for."""


class EndedEarly(Exception):
    """It has ended while the situation still waits for something."""


async def play(situation: Situation, member: Member, timeout_s: float = TIMEOUT_S) -> dict[str, Json]:
    """A recording: ``requests`` and ``observed``. Raises DidNotEnd."""
    member.observed = Observations()
    async with Recording(TOPICS, situation.script) as recording:
        why = ""
        try:
            async with asyncio.timeout(timeout_s):
                await _play_steps(situation, member, recording)
        except TimeoutError:
            why = "nothing more before the timeout"
        except EndedEarly:
            why = "its end"
        if why:
            asked = ", ".join(request["api"] for request in collapse(list(recording.requests)))
            raise DidNotEnd(f"{situation}: {asked}, then {why}; observed {member.observed}")
    return {
        "situation": situation.name,
        "variant": situation.variant,
        "requests": collapse(list(recording.requests)),
        "observed": list(member.observed),
    }


async def _play_steps(situation: Situation, member: Member, recording: Recording) -> None:
    config = {**CONFIG, **situation.config}
    await member.start(recording.endpoint, config, situation.subscribed)
    life = asyncio.ensure_future(member.ended())
    begun = 0
    try:
        for step in situation.acts:
            match step:
                case After(api, nth, act, generation):
                    await _first_of(recording.until(api, nth, generation, begun), life)
                    await member.act(act)
                case WhenQuiet(quiet_ms, act):
                    await _first_of(recording.until_quiet(quiet_ms), life)
                    await member.act(act)
                case WhenEnded():
                    await life
                    begun = len(recording.requests)
                    await member.start(recording.endpoint, config, situation.subscribed)
                    life = asyncio.ensure_future(member.ended())
        await life
    finally:
        life.cancel()


async def _first_of(seen: Coroutine[Any, Any, None], life: asyncio.Future[None]) -> None:
    """Wait until the broker has seen it; raises EndedEarly if the member ends before."""
    waits = asyncio.ensure_future(seen)
    await asyncio.wait({waits, life}, return_when=asyncio.FIRST_COMPLETED)
    if not waits.done():
        waits.cancel()
        await life
        raise EndedEarly
