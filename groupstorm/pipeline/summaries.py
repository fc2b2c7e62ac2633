"""The slowest handovers of a group and its rounds by cause, from the rows of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any

from groupstorm.pipeline.results import Handover, Round, TableRow

#: The tables whose rows are summed up.
SUMMED_UP = ("handovers", "rounds")

_LONGEST = attrgetter("gap_us", "partition", "from_us")


@dataclass(slots=True)
class _Rounds:
    """The rounds of one cause."""

    count: int = 0
    stable: int = 0
    members: int | None = None
    latencies: int = 0
    latency_sum_us: int = 0
    latency_max_us: int | None = None


class Summary:
    """Takes the rows of one group's tables as they are complete."""

    def __init__(self) -> None:
        #: (round, beginning, ended_by, cause) -> the gaps of this kind: their number, and the longest one.
        self._gaps: dict[tuple[Any, ...], tuple[int, Handover]] = {}
        self._rounds: dict[str, _Rounds] = {}

    def add(self, rows: Iterable[TableRow]) -> None:
        """Take rows; those of other tables than `SUMMED_UP` are passed over."""
        for row in rows:
            if isinstance(row, Handover):
                self._add_gap(row)
            elif isinstance(row, Round):
                self._add_round(row)

    def slowest_handovers(self, most: int) -> Iterator[Sequence[Any]]:
        """The longest gaps, at most so many, those of one kind that one round closed in one row: columns as
        in `SlowHandover`."""
        found = []
        for (round_us, *_), (number, worst) in self._gaps.items():
            numbers = (worst.partition, number, worst.from_us, worst.gap_us)
            names = (worst.old_owner, worst.new_owner, worst.generations, worst.ended_by, worst.cause)
            found.append((*numbers, *names, round_us, worst.rebalance_cause))
        return islice(sorted(found, key=lambda row: (-row[3], row[2], row[0])), most)

    def rounds_by_cause(self) -> list[Sequence[Any]]:
        """Columns as in `RoundsByCause`, the most frequent cause first."""
        found = [
            (
                *(cause, one.count, one.stable, one.members),
                one.latency_sum_us / one.latencies if one.latencies else None,
                one.latency_max_us,
            )
            for cause, one in self._rounds.items()
        ]
        return sorted(found, key=lambda row: (-row[1], row[0]))

    def _add_gap(self, gap: Handover) -> None:
        generations = gap.generations
        round_us = gap.prepared_us if generations is None or generations > 0 else None
        alone_us = gap.from_us if round_us is None else None
        kind = round_us, alone_us, gap.ended_by, gap.cause
        number, worst = self._gaps.get(kind, (0, gap))
        if gap.gap_us >= worst.gap_us and _LONGEST(gap) > _LONGEST(worst):
            worst = gap
        self._gaps[kind] = number + 1, worst

    def _add_round(self, row: Round) -> None:
        one = self._rounds.setdefault(row.cause, _Rounds())
        one.count += 1
        one.stable += row.stable_us is not None
        if row.members is not None:
            one.members = max(row.members, one.members or 0)
        latency_us = row.latency_us
        if latency_us is not None:
            one.latencies += 1
            one.latency_sum_us += latency_us
            one.latency_max_us = max(latency_us, one.latency_max_us or 0)
