"""One member meets one situation: what it asked and what its application saw."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tests.oracle.member.members import Member, Told
from tests.oracle.member.requests import Json, collapse
from tests.oracle.member.scripted_broker import Recording
from tests.oracle.member.situation import CONFIG, TOPICS, After, Situation, WhenEnded, WhenQuiet

#: A meeting takes less than a second; this is how long a broken one may take.
PATIENCE_S = 20.0


class DidNotEnd(Exception):
    """The member did not do what the situation waits for."""


class EndedEarly(Exception):
    """It has ended while the situation still waits for something."""


async def meet(situation: Situation, member: Member, patience_s: float = PATIENCE_S) -> dict[str, Json]:
    """A recording: ``requests`` and ``told``. Raises DidNotEnd."""
    member.told = Told()
    async with Recording(TOPICS, situation.script) as recording:
        why = ""
        try:
            async with asyncio.timeout(patience_s):
                await _live(situation, member, recording)
        except TimeoutError:
            why = "nothing more within the patience of a test"
        except EndedEarly:
            why = "its end"
        if why:
            asked = ", ".join(request["api"] for request in collapse(list(recording.requests)))
            raise DidNotEnd(f"{situation}: {asked}, then {why}; told {member.told}")
    return {
        "situation": situation.name,
        "variant": situation.variant,
        "requests": collapse(list(recording.requests)),
        "told": list(member.told),
    }


async def _live(situation: Situation, member: Member, recording: Recording) -> None:
    config = {**CONFIG, **situation.config}
    await member.start(recording.endpoint, config, situation.subscribed)
    life = asyncio.ensure_future(member.ended())
    try:
        for step in situation.acts:
            match step:
                case After(api, nth, act, generation):
                    await _first_of(recording.until(api, nth, generation), life)
                    await member.act(act)
                case WhenQuiet(quiet_ms, act):
                    await _first_of(recording.until_quiet(quiet_ms), life)
                    await member.act(act)
                case WhenEnded():
                    await life
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
