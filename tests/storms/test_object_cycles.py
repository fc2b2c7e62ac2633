"""Objects that runs leave behind are given back to a process that does many of them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from groupstorm.storms.world import simulation
from groupstorm.storms.world.simulation import ObjectCycles


class Node:
    """An object that refers to itself."""

    __slots__ = ("__weakref__", "itself")

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _no_look_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(simulation, "_THRESHOLDS", (1_000_000_000, 50, 1000))
    before = gc.get_threshold()
    gc.set_threshold(1_000_000_000)
    yield
    gc.set_threshold(*before)


def run(cycles: ObjectCycles, objects: int) -> weakref.ref[Node]:
    """A run that leaves so many objects behind, at least; one of them is returned."""
    with cycles.rarely_looked_for():
        nodes = [Node() for _ in range(objects)]
        return weakref.ref(nodes[0])


@pytest.mark.slow
def test_a_run_begins_with_a_look_if_others_have_left_much_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of small runs adds up; the look gives it back, and the next runs count anew."""
    monkeypatch.setattr(simulation, "_LEFT_BEHIND_MAX", 1_900)
    cycles = ObjectCycles()
    first = run(cycles, 700)
    for _ in range(2):
        run(cycles, 700)
        assert first() is not None
    second = run(cycles, 10)
    assert first() is None
    run(cycles, 10)
    assert second() is not None
