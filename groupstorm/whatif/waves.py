"""Rolling restarts among the starts and stops of processes: one step in the place of many."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from groupstorm.whatif.lives import STOP, Lives, Stint

#: Processes that stop longer than this after the one before has come back belong to another deployment.
QUIET_US: Final = 600_000_000
#: A process that has worked until it stops closes its consumer within this time.
_CLOSE_US: Final = 1_000_000
#: Fewer processes than this are no deployment.
_LEAST: Final = 2


class Wave(NamedTuple):
    """A deployment that replaced all processes one after the other.

    ``names``: in the order of their replacement. ``start_ms``: from the end of each to the first poll() of
    its successor. ``ready_ms``: from there to the next stop. ``unavailable``: how many were away at once.
    """

    at_us: int
    last_stop_us: int
    names: tuple[str, ...]
    start_ms: tuple[int, ...]
    ready_ms: tuple[int, ...]
    unavailable: int
    stints: frozenset[int]
    """The identities of the stints that the wave ends and begins."""


class Restart(NamedTuple):
    name: str
    before: Stint
    after: Stint
    stop_us: int
    start_us: int


def find_waves(lives: Lives) -> list[Wave]:
    """The deployments that a rolling-restart step repeats exactly; all others stay single steps."""
    waves = [wave for chain in _chains(restarts_of(lives)) if (wave := _wave(chain, lives)) is not None]
    return [wave for wave in waves if wave.unavailable == waves[0].unavailable]


def restarts_of(lives: Lives) -> list[Restart]:
    """Processes that stopped and came back under their names, by the times of their stops."""
    by_name: dict[str, list[Stint]] = {}
    for stint in lives.stints:
        by_name.setdefault(stint.name, []).append(stint)
    found = [
        Restart(name, before, after, before.end.at_us, after.start.at_us)
        for name, stints in by_name.items()
        for before, after in pairwise(stints)
        if before.end is not None and before.end.do == STOP
    ]
    return sorted(found, key=lambda restart: restart.stop_us)


def _chains(restarts: Sequence[Restart]) -> list[list[Restart]]:
    """Restarts that follow one another; a name that comes again begins another deployment."""
    chains: list[list[Restart]] = []
    for restart in restarts:
        chain = chains[-1] if chains else []
        back_us = max((one.start_us for one in chain), default=0)
        if not chain or restart.stop_us - back_us > QUIET_US or restart.name in {one.name for one in chain}:
            chains.append([restart])
        else:
            chain.append(restart)
    return chains


def _wave(chain: Sequence[Restart], lives: Lives) -> Wave | None:
    """The wave of a chain; None if a rolling restart would do something else."""
    first_us, last_us = chain[0].stop_us, max(one.start_us for one in chain)
    names = {one.name for one in chain}
    own = {id(stint) for one in chain for stint in (one.before, one.after)}
    running = {
        stint.name
        for stint in lives.stints
        if stint.start.at_us < first_us and (stint.end is None or stint.end.at_us >= first_us)
    }
    others = [
        stint
        for stint in lives.stints
        if id(stint) not in own
        and (
            first_us <= stint.start.at_us <= last_us
            or (stint.end is not None and first_us <= stint.end.at_us <= last_us)
        )
    ]
    # work before a stop keeps its time: a step that stopped the process sooner or later would not move it
    works = any(
        name == one.name and pause.at_us <= one.stop_us <= pause.at_us + pause.for_us + _CLOSE_US
        for name, pause in lives.pauses
        for one in chain
    )
    if len(chain) < _LEAST or names != running or others or works:
        return None
    starts = sorted(one.start_us for one in chain)
    away = [sum(one.stop_us <= later.stop_us < one.start_us for one in chain) for later in chain]
    unavailable = max(away)
    # where all are away at once, nobody has waited for another: how long one takes to be ready is not known
    if unavailable == len(chain) or any(
        count != min(number + 1, unavailable) for number, count in enumerate(away)
    ):
        return None
    ready = {
        start_us: chain[unavailable + number].stop_us - start_us
        for number, start_us in enumerate(starts[: len(chain) - unavailable])
    }
    usual = int(median(ready.values()))
    return Wave(
        first_us,
        chain[-1].stop_us,
        tuple(one.name for one in chain),
        tuple((one.start_us - one.stop_us) // 1000 for one in chain),
        tuple(ready.get(one.start_us, usual) // 1000 for one in chain),
        unavailable,
        frozenset(own),
    )
