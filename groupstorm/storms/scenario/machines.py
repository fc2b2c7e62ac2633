"""`machines`: members that share a machine, and how slow it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import is_member_list, plain, thousandths

MAX_FACTOR = 1_000


@dataclass(frozen=True, slots=True)
class Machine:
    """``factor``, in thousandths: how many times longer work on records takes here."""

    members: frozenset[int]
    factor: int


@dataclass(frozen=True, slots=True)
class Machines:
    machines: tuple[Machine, ...] = ()

    @property
    def as_written(self) -> list[dict[str, Any]]:
        return [{"members": sorted(one.members), "factor": plain(one.factor)} for one in self.machines]

    def factor(self, index: int) -> int:
        """The factor of this member's machine, in thousandths; 1,000 if none is named."""
        return next((one.factor for one in self.machines if index in one.members), 1_000)


def read_machines(where: str, written: Any) -> Machines:
    """Raises InputError that names the machine and the field."""
    if not isinstance(written, list):
        raise InputError(f"{where}: {written!r}: expected a list of {{members: [0, 1], factor: 3}}")
    machines: list[Machine] = []
    for number, one in enumerate(written, start=1):
        place = f"{where}: {number}"
        if not isinstance(one, Mapping) or set(one) != {"members", "factor"}:
            raise InputError(f"{place}: {one!r}: expected {{members: [0, 1], factor: 3}}")
        members = one["members"]
        if not is_member_list(members):
            raise InputError(f"{place}: members: {members!r}: expected a list of numbers of members")
        twice = [m for m in members if any(m in other.members for other in machines)]
        if twice:
            raise InputError(f"{place}: members: {twice[0]} is on another machine already")
        factor = thousandths(f"{place}: factor", one["factor"], MAX_FACTOR)
        if factor == 0:
            raise InputError(f"{place}: factor: 0: expected more than 0")
        machines.append(Machine(frozenset(members), factor))
    return Machines(tuple(machines))
