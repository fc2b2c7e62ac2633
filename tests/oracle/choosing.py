"""Chooses golden cases among many: first the shortest that reach something new, then any."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Golden(NamedTuple):
    """A case, and Kafka's answer."""

    case: Any
    answer: Any


def read_golden(path: Path, name: str = "case") -> Iterator[Golden]:
    """The cases of a file, which stand under that name, and Kafka's answers to them."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            value = json.loads(line)
            yield Golden(value[name], value["answer"])


class Candidate(NamedTuple):
    """A golden line; ``reached``: what its case reached; ``sequences``: what it reached together."""

    number: int
    line: str
    reached: frozenset[tuple[str, ...]]
    sequences: frozenset[tuple[str, ...]]


def choose(candidates: Iterable[Candidate], count_max: int, bytes_max: int) -> list[Candidate]:
    """Choose those with something new, then those with a new sequence, then any, the shortest first; by
    number."""
    chosen = _Chosen(count_max, bytes_max)
    by_size = sorted(candidates, key=lambda candidate: (len(candidate.line), candidate.number))
    for candidate in by_size:
        if not candidate.reached <= chosen.reached:
            chosen.add(candidate)
    for candidate in by_size:
        if not candidate.sequences <= chosen.sequences:
            chosen.add(candidate)
    for candidate in by_size:
        chosen.add(candidate)
    return sorted(chosen.candidates.values(), key=lambda candidate: candidate.number)


class _Chosen:
    """Candidates by number, as many as fit."""

    def __init__(self, count_max: int, bytes_max: int) -> None:
        self.candidates: dict[int, Candidate] = {}
        self.reached: set[tuple[str, ...]] = set()
        self.sequences: set[tuple[str, ...]] = set()
        self._count_max = count_max
        self._bytes_left = bytes_max

    def add(self, candidate: Candidate) -> None:
        size = len(candidate.line.encode())
        full = len(self.candidates) == self._count_max or size > self._bytes_left
        if candidate.number in self.candidates or full:
            return
        self.candidates[candidate.number] = candidate
        self.reached |= candidate.reached
        self.sequences |= candidate.sequences
        self._bytes_left -= size
