"""The small parts of a process's client, each by itself: timers, metadata, collections, draws."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from groupstorm.clients.operations import AwaitJoinInterval
from groupstorm.storms.randomness import Stream
from groupstorm.storms.scenario.distributions import parse
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.client_timers import ClientTimers
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.draws import ASSIGN, CALLBACK, ApplicationDraws
from groupstorm.storms.world.garbage_collections import GarbageCollections
from groupstorm.storms.world.metadata import ClientMetadata
from groupstorm.storms.world.pauses import Pauses
from groupstorm.storms.world.topics import Topics

MS, SECOND = 1_000, 1_000_000


def until(clock: Clock, end_us: int) -> None:
    """Everything that is due by then."""
    clock.limit_us = end_us + 1
    clock.run()
    clock.advance_to(end_us)


# --- timers


@pytest.mark.parametrize(
    ("drift_ppm", "ms", "us"),
    [
        (0, 3, 3_000),
        (250_000, 1_000, 800_000),  # a fast clock counts 1,000 ms in 800
        (-200_000, 1_000, 1_250_000),
        (3, 1, 999),  # 999.997 us, rounded down
        (-3, 1, 1_000),  # 1,000.003 us
    ],
)
def test_a_timer_takes_as_long_as_its_machines_clock_says(drift_ppm: int, ms: int, us: int) -> None:
    assert ClientTimers(drift_ppm).us(ms) == us


# --- metadata


class Client:
    """A client whose metadata age at most 30 s, of a cluster whose topic ``t`` has one partition at first."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.cluster = Topics({"t": 1})
        self.refreshed_us: list[int] = []
        self.metadata = ClientMetadata(
            self.clock, self.cluster, 30 * SECOND, lambda: self.refreshed_us.append(self.clock.now_us)
        )

    def grow(self, count: int) -> None:
        self.cluster.grow("t", count, self.clock.now_us)
        self.metadata.topics_changed()

    def knows(self) -> int:
        return self.metadata.topics()["t"]


def test_a_client_sees_a_change_at_its_next_regular_refresh() -> None:
    """It starts at 5 s, so it refreshes at 35 s and at 65 s."""
    client = Client()
    until(client.clock, 5 * SECOND)
    client.metadata.start()
    until(client.clock, 10 * SECOND)
    client.grow(2)
    until(client.clock, 35 * SECOND - 1)
    assert (client.knows(), client.refreshed_us) == (1, [])
    until(client.clock, 35 * SECOND)
    assert (client.knows(), client.refreshed_us) == (2, [35 * SECOND])
    until(client.clock, 100 * SECOND)
    assert client.refreshed_us == [35 * SECOND], "nothing has changed since"


def test_changes_between_two_refreshes_are_seen_together() -> None:
    client = Client()
    client.metadata.start()
    until(client.clock, 1 * SECOND)
    client.grow(2)
    until(client.clock, 2 * SECOND)
    client.grow(3)
    until(client.clock, 30 * SECOND)
    assert (client.knows(), client.refreshed_us) == (3, [30 * SECOND])


def test_a_change_at_the_instant_of_a_refresh_is_announced_by_the_next_one() -> None:
    client = Client()
    client.metadata.start()
    until(client.clock, 30 * SECOND)
    client.grow(2)
    until(client.clock, 59 * SECOND)
    assert client.refreshed_us == []
    until(client.clock, 70 * SECOND)
    client.grow(3)
    until(client.clock, 100 * SECOND)
    assert client.refreshed_us == [60 * SECOND, 90 * SECOND]


def test_an_extra_refresh_shows_what_is_there_and_puts_the_next_one_off() -> None:
    """Refreshed at 10 s, the client does so again at 40 s and at 70 s."""
    client = Client()
    client.metadata.start()
    until(client.clock, 8 * SECOND)
    client.cluster.grow("t", 2, 8 * SECOND)
    until(client.clock, 10 * SECOND)
    assert client.knows() == 1
    client.metadata.refresh()
    assert client.knows() == 2
    client.grow(3)
    until(client.clock, 39 * SECOND)
    assert client.refreshed_us == []
    client.cluster.grow("t", 4, 39 * SECOND)
    until(client.clock, 69 * SECOND)
    assert (client.knows(), client.refreshed_us) == (4, [40 * SECOND])


# --- collections


class Paused:
    """In the place of `Pauses`: when the process stood still, and for how long."""

    def __init__(self, clock: Clock) -> None:
        self.at: list[tuple[int, int]] = []
        self._clock = clock

    def pause(self, duration_us: int) -> None:
        self.at.append((self._clock.now_us, duration_us))


def collections(pause_ms: Any, interval_ms: Any) -> tuple[Clock, Paused, GarbageCollections]:
    clock = Clock()
    paused = Paused(clock)
    settings = Settings(("", {"gc_pause_ms": pause_ms, "gc_interval_ms": interval_ms}))
    stream = Stream(1, "gc", "m", 1)
    return clock, paused, GarbageCollections(clock, cast(Pauses, paused), settings, stream)


def test_a_collection_comes_an_interval_after_the_last_one_has_ended() -> None:
    clock, paused, found = collections(200, 10_000)
    found.start()
    until(clock, 31 * SECOND)
    assert paused.at == [(at_ms * MS, 200 * MS) for at_ms in (10_000, 20_200, 30_400)]
    found.stop()
    until(clock, 100 * SECOND)
    assert len(paused.at) == 3


def test_without_pauses_nothing_is_scheduled() -> None:
    clock, paused, found = collections(0, 10_000)
    found.start()
    until(clock, 60 * SECOND)
    assert paused.at == []


def test_without_an_interval_collections_are_a_microsecond_apart() -> None:
    clock, paused, found = collections(1, 0)
    found.start()
    until(clock, 3 * MS)
    assert paused.at == [(1, MS), (1 + MS + 1, MS), (2 * (1 + MS) + 1, MS)]


def test_intervals_and_pauses_are_drawn_by_counter() -> None:
    clock, paused, found = collections({"uniform": [1, 1_000]}, {"uniform": [1_000, 9_000]})
    found.start()
    until(clock, 60 * SECOND)
    pause = parse("gc_pause_ms", {"uniform": [1, 1_000]})
    interval = parse("gc_interval_ms", {"uniform": [1_000, 9_000]})
    draws = Stream(1, "gc", "m", 1)
    expected, at_us, number = [], interval.at(draws.pair(1)[0]), 2
    while at_us <= 60 * SECOND:
        pause_us = pause.at(draws.pair(number)[1])
        expected.append((at_us, pause_us))
        at_us += pause_us + interval.at(draws.pair(number + 1)[0])
        number += 2
    assert paused.at == expected
    assert len(expected) > 5


# --- draws


def test_what_an_application_draws_depends_on_who_it_is_on_the_time_and_on_the_purpose() -> None:
    clock = Clock()
    mine = ApplicationDraws(clock, 1, "m", 1)
    others = [ApplicationDraws(clock, *who) for who in ((2, "m", 1), (1, "n", 1), (1, "m", 2))]
    drawn = {mine.draw(ASSIGN), mine.draw(CALLBACK)} | {other.draw(ASSIGN) for other in others}
    clock.advance_to(1)
    drawn |= {mine.draw(ASSIGN), mine.draw(CALLBACK)}
    assert len(drawn) == 7
    stream = Stream(1, "application", "m", 1)
    assert (mine.draw(ASSIGN), mine.draw(CALLBACK)) == (stream.at(2), stream.at(3))
    assert mine.draw(ASSIGN) == mine.draw(ASSIGN)


def test_a_duration_is_drawn_unless_it_is_constant() -> None:
    clock = Clock()
    clock.advance_to(7)
    draws = ApplicationDraws(clock, 1, "m", 1)
    assert draws.duration_us(parse("x", 20), CALLBACK) == 20 * MS
    spread = parse("x", {"uniform": [1, 9]})
    assert draws.duration_us(spread, CALLBACK) == spread.at(draws.draw(CALLBACK))
    assert draws.duration_us(spread, ASSIGN) == spread.at(draws.draw(ASSIGN))


@pytest.mark.parametrize(
    ("joined_us", "waits_us"),
    [(None, None), (2_000_000, None), (2_000_001, 1_000_000), (3_000_000, 1_000_000)],
)
def test_a_member_joins_once_in_an_interval(joined_us: int | None, waits_us: int | None) -> None:
    """At 3 s, with an interval of 1 s; None: it does not wait."""
    member: Any = SimpleNamespace(
        clock=SimpleNamespace(now_us=3_000_000),
        timers=SimpleNamespace(us=lambda ms: ms * 1_000),
        _joined_us=joined_us,
        later=lambda delay_us: delay_us,
    )
    assert VirtualConsumer._await_join_interval(member, AwaitJoinInterval(1_000)) == waits_us
