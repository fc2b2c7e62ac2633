"""What happens between SIGTERM and a process's end: it notices it after 2 s, drains, or is killed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.storms.deployments.shutdown import Shutdown
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.clock import Clock
from tests.storms.test_clients_by_hand import until

MS = 1_000


class Ending:
    """The process p1 with two threads, beside p10. ``said``: (ms, what); ``drawn``: the settings drawn."""

    def __init__(self, **settings: Any) -> None:
        self.said: list[tuple[int, str]] = []
        self.drawn: list[str] = []
        self.clock = Clock()
        self._settings = Settings(("", {"stop_grace_ms": 2_000, **settings}))
        self.process: Any = SimpleNamespace(
            name="p1", alive=True, stop=lambda: self._note("close"), crash=lambda: self._note("crash")
        )
        names = ("p1-StreamThread-1", "p1-StreamThread-2", "p10")
        host = SimpleNamespace(
            clock=self.clock,
            settings=self._settings,
            consumers={name: SimpleNamespace(pauses=self._pauses(name)) for name in names},
        )
        steps: Any = SimpleNamespace(host=host, duration_us=self._duration_us, emit_step=self._emit_step)
        Shutdown(steps).begin(self.process, "stop")

    def _pauses(self, name: str) -> Any:
        return SimpleNamespace(busy=lambda us: self._note(f"{name} busy for {us} us"))

    def _duration_us(self, setting: str) -> int:
        self.drawn.append(setting)
        return self._settings.distribution(setting).largest_us

    def _emit_step(self, do: str, member: str | None, detail: str) -> None:
        self._note(f"{do} {member}: {detail}")

    def _note(self, what: str) -> None:
        self.said.append((self.clock.now_us // MS, what))

    def until(self, ms: int) -> list[tuple[int, str]]:
        """All that is said by then."""
        until(self.clock, ms * MS)
        return self.said


def test_a_process_that_does_not_drain_closes_when_it_notices_sigterm() -> None:
    ending = Ending()
    assert ending.until(1_999) == []
    assert ending.until(2_000) == [(2_000, "close")]
    assert ending.until(1_000_000) == [(2_000, "close")], "nobody kills it"
    assert ending.drawn == ["stop_grace_ms"]


def test_a_process_that_drains_works_on_with_all_its_threads_and_closes_then() -> None:
    ending = Ending(drain_ms=500)
    busy = [(2_000, f"p1-StreamThread-{number} busy for 500000 us") for number in (1, 2)]
    assert ending.until(2_499) == busy
    assert ending.until(1_000_000) == [*busy, (2_500, "close")]
    assert ending.drawn == ["stop_grace_ms", "drain_ms"]


def test_a_drain_may_be_as_short_as_a_microsecond() -> None:
    ending = Ending(drain_ms="1us")
    assert ending.until(2_000)[0] == (2_000, "p1-StreamThread-1 busy for 1 us")


def test_a_process_drains_if_its_longest_drain_takes_time() -> None:
    """Of the durations from 0 to 1 s the longest is drawn here."""
    ending = Ending(drain_ms={"uniform": [0, 1_000]})
    assert ending.until(10_000)[-1] == (3_000, "close")


def test_a_process_is_killed_when_its_grace_period_is_over() -> None:
    ending = Ending(drain_ms=60_000, termination_grace_ms=30_000)
    assert len(ending.until(29_999)) == 2
    assert ending.until(30_000)[2:] == [
        (30_000, "stop p1: SIGKILL 30000 ms after SIGTERM"),
        (30_000, "crash"),
    ]


def test_without_a_grace_period_a_process_is_killed_at_once() -> None:
    assert Ending(termination_grace_ms=0).until(0) == [
        (0, "stop p1: SIGKILL 0 ms after SIGTERM"),
        (0, "crash"),
    ]


@pytest.mark.parametrize("gone_at_ms", [2_000, 29_999])
def test_a_process_that_is_gone_is_not_killed(gone_at_ms: int) -> None:
    ending = Ending(termination_grace_ms=30_000)
    ending.until(gone_at_ms)
    ending.process.alive = False
    assert ending.until(60_000) == [(2_000, "close")]
