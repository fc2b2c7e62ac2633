"""Rounds of mutated frames on a broker, what came of them, and the frames at which it failed."""

from __future__ import annotations

import gc
import random
import resource
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tests.broker.frames.harness import ANSWERED, World, check_answer, cpu_limit
from tests.broker.frames.mutations import mutated
from tests.broker.frames.requests import Requests
from tests.broker.wire import framed

#: Frames per broker. A new broker begins with an empty state.
ROUND = 2_000
#: Frames between two steps of the clock.
_STEP = 50
_STEP_MS = 7_000
#: What one frame may add to the largest memory that the process has used.
MOST_GROWTH_KIB = 100 * 1024


@dataclass
class Tally:
    """``failures``: the sort of a failure, and the last frame before it."""

    tried: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[str, bytes] = field(default_factory=dict)
    rss_kib: list[int] = field(default_factory=list)


def sends(frame: bytes, draw: random.Random) -> bytes:
    """The frame with its length, which is wrong at times, or with the beginning of a second one."""
    choice = draw.random()
    if choice < 0.03:
        return draw.choice((0, 2**31 - 1, 2**32 - 1, len(frame) + 1, 3)).to_bytes(4, "big") + frame
    if choice < 0.06:
        return framed(frame) + framed(frame)[: draw.randrange(len(frame) + 4)]
    return framed(frame)


def frames_of(seed: int, world: World) -> Iterator[bytes]:
    """Return the frames that the clients of one round send. The same seed gives the same bytes."""
    draw = random.Random(seed)
    members: list[str] = []
    requests = Requests(draw, members)
    for _ in range(ROUND):
        frame = requests.frame()
        if draw.random() < 0.75:
            frame = mutated(frame, requests.frame(), draw)
        members[:] = member_ids(world)[:8]
        yield sends(frame, draw)


def member_ids(world: World) -> list[str]:
    """The ids of members that the journal names: what clients learn from their answers."""
    return sorted(
        {
            member.member_id
            for change in world.kept[-40:]
            for member in getattr(change, "members", ()) or ()
            if hasattr(member, "member_id")
        }
    )


def attempt(world: World, data: bytes) -> tuple[str, str | None]:
    """Send the bytes and return what became of them, with the sort of a failure if they made one."""
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        outcome, written = world.try_bytes(data)
        if outcome == ANSWERED:
            check_answer(data[4:], written[: 4 + int.from_bytes(written[:4], "big")])
    except Exception as problem:  # noqa: BLE001 - every sort of exception is a finding, and is reported
        return "raised", _sort_of(problem)
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib > MOST_GROWTH_KIB:
        return outcome, f"more than {MOST_GROWTH_KIB} KiB for one frame"
    return outcome, None


def _sort_of(problem: Exception) -> str:
    last = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{type(problem).__name__} at {last.filename.rpartition('/')[2]}:{last.lineno} ({problem})"[:200]


def run_round(seed: int, tally: Tally, report: Callable[[str], None]) -> None:
    """Try the frames of one seed; failures go into the tally, and the memory that is in use afterwards."""
    _try_frames(seed, tally, report)
    gc.collect()
    tally.rss_kib.append(rss_kib())


def _try_frames(seed: int, tally: Tally, report: Callable[[str], None]) -> None:
    world = World()
    data = b""
    for number, data in enumerate(frames_of(seed, world)):
        with cpu_limit():
            outcome, failure = attempt(world, data)
        tally.tried += 1
        tally.outcomes[outcome] += 1
        if number % _STEP == 0 and failure is None:
            failure = _failure_of(partial(world.advance, _STEP_MS))
        if failure is not None:
            _note(tally, seed, failure, data, report)
            return
    failure = _failure_of(world.check_restart)
    if failure is not None:
        _note(tally, seed, f"restart: {failure}", data, report)


def _failure_of(act: Callable[[], object]) -> str | None:
    try:
        with cpu_limit():
            act()
    except Exception as problem:  # noqa: BLE001 - every sort of exception is a finding, and is reported
        return _sort_of(problem)
    return None


def _note(tally: Tally, seed: int, failure: str, frame: bytes, report: Callable[[str], None]) -> None:
    kind = failure.partition(" (")[0]
    if kind not in tally.failures:
        tally.failures[kind] = frame
        report(f"seed {seed}: {failure}: {frame.hex()}")


def rss_kib() -> int:
    """The memory that this process has in use."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() // 1024
