"""A member in real time whose application polls too rarely leaves the group, and learns it at its poll()."""

from __future__ import annotations

import pytest

from groupstorm.clients.brokers import emulated
from groupstorm.storms.live.play import play
from tests.storms.storms_in_memory import START, MemorySink, scenario

SETTINGS = {
    "members": 1,
    "partitions": 2,
    "group__initial__rebalance__delay__ms": 0,
    "heartbeat__interval__ms": 100,
    "session__timeout__ms": 6_000,
    "poll_interval_ms": 2_000,
    "max__poll__interval__ms": 700,
    "tail_ms": 100,
    "least_duration_ms": 3_500,
    "settle_timeout_ms": 0,
    "if_never_settled": "report",
}


@pytest.mark.slow
def test_a_member_that_polls_too_rarely_leaves_and_learns_of_it_at_its_poll() -> None:
    settings = {name.replace("__", "."): value for name, value in SETTINGS.items()}
    sink = MemorySink()
    play(scenario([START], **settings).resolve(None, 0, {}), emulated, sink)
    seen = [(time_us, event) for time_us, source, event in sink.rows if source == "member"]
    begun_us = next(time_us for time_us, event in seen if type(event).__name__ == "PartitionsAssigned")
    left_us = next(t for t, event in seen if getattr(event, "cause", None) == "poll-timeout")
    lost_us = next(time_us for time_us, event in seen if type(event).__name__ == "PartitionsLost")
    assert 700_000 <= left_us - begun_us < 1_500_000
    assert 1_900_000 <= lost_us - begun_us < 3_000_000
