"""The situations of the groups of every recording, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from tests.imports.recording.group import RecordedGroup
from tests.imports.recording.releases import LONG_SESSION_TIMEOUT_MS, MAX_POLL_INTERVAL_MS

#: What happens to a group.
Situation = Callable[[RecordedGroup], Awaitable[None]]

DYNAMIC, STATIC = "orders-dynamic", "orders-static"
FENCED, MOVED = "orders-fenced", "orders-moved"

_MEMBERS = ("app-0", "app-1", "app-2")
#: The static members: client id and instance.
SEATS: Mapping[str, str] = {"web-0": "seat-0", "web-1": "seat-1", "web-2": "seat-2"}
#: A second process with the instance of web-2.
_TWIN = {"web-3": SEATS["web-2"]}
#: Longer than the session after which a static member that was closed is out of its group.
_EXPIRY_S = LONG_SESSION_TIMEOUT_MS / 1000 + 2
#: Longer than max.poll.interval.ms and the next round.
_BUSY_S = MAX_POLL_INTERVAL_MS / 1000 + 6


async def dynamic_members(group: RecordedGroup) -> None:
    """Three members come, are deployed anew, one of them crashes, and one does not poll for too long."""
    await group.start(*_MEMBERS)
    await group.settled()
    for name in _MEMBERS:
        await group.restart(name)
        await group.settled()
    await group.kill("app-1")
    await group.settled()
    await group.start("app-1")
    await group.settled()
    await group.busy("app-2", _BUSY_S)
    await group.settled()
    await group.stop(*_MEMBERS)


async def static_members(group: RecordedGroup) -> None:
    """Three static members come, one is restarted, and all are closed: their sessions expire."""
    await group.start(*SEATS)
    await group.settled()
    await group.restart("web-1")
    await group.settled()
    await group.stop(*SEATS)
    await asyncio.sleep(_EXPIRY_S)


async def twins(group: RecordedGroup) -> None:
    """Three static members come, a fourth process has the instance of one of them, and all are closed: their
    sessions expire."""
    await group.start(*SEATS)
    await group.settled()
    await group.twin("web-3", "web-2")
    await group.settled()
    await group.stop(*group.living)
    await asyncio.sleep(_EXPIRY_S)


async def moved_members(group: RecordedGroup) -> None:
    """Three members come, their coordinator moves to the other broker, and one of them crashes there."""
    await group.start(*_MEMBERS)
    await group.settled()
    await group.fail_over()
    await group.settled()
    await group.kill("app-1")
    await group.settled()
    await group.stop("app-0", "app-2")


class Scene(NamedTuple):
    """``instances``: the static ids of the group's members."""

    group: str
    instances: Mapping[str, str]
    situation: Situation


SCENES: Final = (
    Scene(DYNAMIC, {}, dynamic_members),
    Scene(STATIC, SEATS, static_members),
    Scene(FENCED, {**SEATS, **_TWIN}, twins),
    Scene(MOVED, {}, moved_members),
)
