"""Members that went and came back, or were replaced: the raw material of deployments, waves and scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from groupstorm.explain.history import REPLACED, Change, History

#: A process that stops is back under its name so soon: Kubernetes' restarts take seconds to minutes.
BACK_US: Final = 600_000_000
#: A process of another name comes so close to one that stops, before (max_surge) or after it.
REPLACEMENT_US: Final = 60_000_000

#: Causes of removal that a process gives itself by stopping in order.
PLANNED: Final = frozenset({"left", REPLACED})


class Restart(NamedTuple):
    """``went`` and ``came``: a process stopped, and this one took its place."""

    went: Change
    came: Change

    @property
    def down_us(self) -> int:
        """When the process stopped, as far as the trace knows: a static member says nothing to the
        coordinator."""
        if self.went.cause == REPLACED and self.went.alive is not None:
            return int(self.went.alive["time_us"])
        return self.went.time_us

    @property
    def up_us(self) -> int:
        return self.came.time_us

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.went.member, self.came.member)))


def find_restarts(history: History) -> list[Restart]:
    """Pair every departure with the arrival that replaces it: of the same name, else of the nearest new
    name."""
    came = history.came()
    taken: set[int] = set()
    restarts: list[Restart] = []
    alone: list[Change] = []
    by_name: dict[str, list[int]] = {}
    for number, change in enumerate(came):
        by_name.setdefault(change.member, []).append(number)
    for went in history.went():
        same = _same_name(went, came, by_name.get(went.member, ()), taken)
        if same is None:
            alone.append(went)
        else:
            taken.add(same)
            restarts.append(Restart(went, came[same]))
    first = 0
    for went in alone:
        while first < len(came) and came[first].time_us < went.time_us - REPLACEMENT_US:
            first += 1
        other = _other_name(went, came, first, taken)
        if other is not None:
            taken.add(other)
            restarts.append(Restart(went, came[other]))
    return sorted(restarts, key=lambda one: one.down_us)


def _same_name(went: Change, came: Sequence[Change], numbers: Sequence[int], taken: set[int]) -> int | None:
    for number in numbers:
        change = came[number]
        if number in taken or (change.member_id == went.member_id and went.cause != REPLACED):
            continue
        same_row = went.cause == REPLACED and change.row is went.row
        if same_row or (
            went.cause != REPLACED and -REPLACEMENT_US <= change.time_us - went.time_us <= BACK_US
        ):
            return number
    return None


def _other_name(went: Change, came: Sequence[Change], first: int, taken: set[int]) -> int | None:
    """The nearest arrival of another name around a departure."""
    best: int | None = None
    for number in range(first, len(came)):
        distance = came[number].time_us - went.time_us
        if distance > REPLACEMENT_US:
            break
        if number in taken or came[number].member == went.member:
            continue
        if best is None or abs(distance) < abs(came[best].time_us - went.time_us):
            best = number
    return best


def away_most(restarts: Sequence[Restart]) -> int:
    """The largest number of processes that were away at one instant."""
    steps = sorted(
        step for one in restarts if one.up_us > one.down_us for step in ((one.down_us, 1), (one.up_us, -1))
    )
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most
