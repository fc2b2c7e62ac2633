"""Mutated requests: each is answered or closes its connection, and the broker goes on as small as before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.broker.broker import Broker
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.driver import PEER, Driver
from tests.broker.frames.harness import ANSWERED, CLOSED, Hang, World, cpu_limit
from tests.broker.frames.trying import ROUND, Tally, attempt, run_round
from tests.broker.wire import framed
from tests.soaking import sizes

#: Frames that the broker once failed on, shrunk: what was wrong, and the bytes of each connection.
CORPUS: dict[str, list[str]] = json.loads((Path(__file__).parent / "corpus.json").read_text("utf-8"))
#: MiB that 100,000 frames may add to what the process needs after the first round.
MOST_GROWTH_MIB = 40


@pytest.mark.slow
def test_a_round_of_mutated_requests_raises_nothing() -> None:
    tally = tried(1, seed=5)
    assert tally.tried == ROUND
    assert min(tally.outcomes[ANSWERED], tally.outcomes[CLOSED]) > ROUND // 4, tally.outcomes


@pytest.mark.slow
@pytest.mark.parametrize("count", sizes(10_000, 1_000_000, within_minutes=60))
def test_mutated_requests_raise_nothing_and_leave_nothing(count: int) -> None:
    tally = tried(count // ROUND, seed=900)
    assert tally.tried == count
    assert tally.rss_kib[-1] - tally.rss_kib[0] < MOST_GROWTH_MIB * 1024, tally.rss_kib


def tried(rounds: int, seed: int) -> Tally:
    tally = Tally()
    for number in range(rounds):
        run_round(seed + number, tally, pytest.fail)
    assert tally.failures == {}
    return tally


@pytest.mark.parametrize("sort", CORPUS)
def test_frames_that_once_failed_are_answered_or_close_their_connection(sort: str) -> None:
    world = World()
    for data in CORPUS[sort]:
        assert attempt(world, bytes.fromhex(data)) in ((ANSWERED, None), (CLOSED, None))
    world.check_restart()


@pytest.mark.slow
def test_a_failure_is_found_with_its_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = Broker.receive

    def failing(self: Broker, connection: int, peer: Any, frame: bytes, now_ms: int) -> Any:
        if frame[1:2] == bytes((wire.FIND_COORDINATOR,)):
            raise RuntimeError("planted")
        return receive(self, connection, peer, frame, now_ms)

    monkeypatch.setattr(Broker, "receive", failing)
    tally = Tally()
    run_round(1, tally, lambda _: None)
    ((sort, frame),) = tally.failures.items()
    assert sort.startswith("RuntimeError at test_frames.py:")
    assert frame[5] == wire.FIND_COORDINATOR


@given(st.binary(max_size=200))
def test_random_bytes(frame: bytes) -> None:
    driver = Driver()
    effects = driver.broker.receive(1, PEER, frame, driver.now_ms)
    assert len(effects.outputs) <= 1
    assert driver.ask(wire.API_VERSIONS, 0).error_code == Error.NONE


def test_a_frame_that_takes_too_long_is_found() -> None:
    def forever() -> Iterator[None]:
        while True:
            yield

    with pytest.raises(Hang), cpu_limit(0.05):
        for _ in forever():
            pass


def test_the_length_of_a_frame_is_checked_before_its_bytes_have_come() -> None:
    world = World()
    assert attempt(world, (2**31 - 1).to_bytes(4, "big") + b"\x00")[0] == CLOSED
    assert attempt(world, framed(wire.request(wire.API_VERSIONS, 0)))[0] == ANSWERED
