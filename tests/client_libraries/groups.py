"""Helpers for tests of groups of real clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from tests.client_libraries.conftest import PARTITIONS
from tests.client_libraries.members import Member

ALL_PARTITIONS = frozenset(range(PARTITIONS))
COOPERATIVE = "cooperative-sticky"


class _Stopped(Protocol):
    def stop(self) -> None: ...


_M = TypeVar("_M", bound=_Stopped)


@contextmanager
def stopping(members: list[_M]) -> Iterator[list[_M]]:
    """Stops the members of the list at the end, also if the test fails."""
    try:
        yield members
    finally:
        for member in members:
            member.stop()


def is_shared_out(members: list[Member]) -> bool:
    """Whether all members own the same number of partitions and every partition has one owner."""
    for member in members:
        assert member.failure is None
    owned = [partition for member in members for partition in member.owned]
    return sorted(owned) == sorted(ALL_PARTITIONS) and len({len(member.owned) for member in members}) == 1


def records(start: int, count: int) -> list[tuple[int, str]]:
    return [(number % PARTITIONS, f"record-{number}") for number in range(start, start + count)]
