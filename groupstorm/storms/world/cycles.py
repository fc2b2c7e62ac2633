"""Looks of an application that has all that it can do: from some look on they repeat.

What a look takes depends on how far each partition lags behind its log, on whose turn it is, and on what is
left of its fetch. If all of that is as it was some looks before, and neither rates nor times change, all that
came since then comes again and again. A partition that lags behind by more than a fetch gives a whole fetch:
how far it lags makes no difference as long as that holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RECORD
from groupstorm.storms.world.batches import Batch, Cycle

#: The search ends behind so many looks that have not come again: it takes memory, and a tenth of their time.
_LOOKS_AT_MOST: Final = 1_000


class CycleSearch:
    """Remembers the looks since the last change. ``fetch_records``: the most that one fetch gives."""

    __slots__ = ("_batches", "_enough", "_lags", "_seen")

    def __init__(self, fetch_records: int) -> None:
        #: A partition that lags behind by so much, in records times RECORD, gives a whole fetch.
        self._enough = (fetch_records + 1) * RECORD
        self._seen: dict[tuple[int, ...], int] = {}
        self._batches: list[Batch] = []
        self._lags: list[list[int]] = []

    def restart(self) -> None:
        """Something has changed: what was seen says nothing any more."""
        if self._batches or self._seen:
            self._seen.clear()
            self._batches, self._lags = [], []

    def closed_by(self, look: Batch, positions: Mapping[TopicPartition, int]) -> tuple[Cycle, int] | None:
        """The cycle that is closed as ``look`` comes, which has taken nothing yet, and how many of its looks
        come until it ends (0: it does not)."""
        batches = self._batches
        if len(batches) >= _LOOKS_AT_MOST:
            return None
        look_us = look.look_us
        grown = {curve: curve.grown(look_us) for curve in set(look.curves)}  # most logs grow alike
        lags = [
            grown[curve] - positions[partition] * RECORD
            for partition, curve in zip(look.order, look.curves, strict=True)
        ]
        enough = self._enough
        state = (look.turn, look.left, *[lag if lag < enough else enough for lag in lags])
        first = self._seen.get(state)
        if first is not None:
            cycle = self._cycle(first, look_us, lags)
            if cycle is not None:
                return cycle
        self._seen[state] = len(batches)
        self._lags.append(lags)
        return None

    def add(self, batch: Batch, positions: Mapping[TopicPartition, int]) -> None:
        """A look that `closed_by` was asked about, and the positions behind it."""
        if len(self._batches) < _LOOKS_AT_MOST:
            batch.behind = {partition: positions[partition] for partition in batch.order}
            self._batches.append(batch)

    def _cycle(self, first: int, look_us: int, lags: list[int]) -> tuple[Cycle, int] | None:
        """None if its looks are not alike, or if a partition soon gives less than a whole fetch."""
        looks = self._batches[first:]
        span_us = look_us - looks[0].look_us
        if span_us <= 0 or len({(look.took_all, look.is_long) for look in looks}) > 1:
            return None
        rounds = self._rounds(first, lags)
        if rounds is None:
            return None
        moved = dict.fromkeys(looks[0].behind, 0)
        for look in looks:
            for partition, _, count, _, _ in look.stretches:
                moved[partition] += count
        return Cycle(looks, span_us, moved), rounds * len(looks)

    def _rounds(self, first: int, lags: list[int]) -> int | None:
        """Return how often the looks from ``first`` on come again (0: for ever; None: not once).

        If a partition lags behind by more or less than then, there is more than a fetch at each look.
        """
        rounds = 0
        for at, (lag, before) in enumerate(zip(lags, self._lags[first], strict=True)):
            grown, enough = lag - before, self._enough
            if not grown:
                continue
            if lag + grown < enough:
                return None
            spare = min([seen[at] for seen in self._lags[first:]]) - enough
            if spare + grown < 0 or spare < 0:
                return None
            if grown < 0:
                left = spare // -grown
                rounds = min(rounds, left) if rounds else left
        return rounds
