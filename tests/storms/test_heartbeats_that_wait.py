"""Heartbeats of consumer groups that wait for the answer to the one before: they are sent one by one."""

from __future__ import annotations

import pytest

from groupstorm.storms.world.environment import heartbeats_wait
from tests.storms.storms_in_memory import START, scenario


@pytest.mark.parametrize(
    ("latency_ms", "backoff_ms", "drift_ppm", "waits"),
    [
        # 2 * 450 ms and a millisecond for the clock leave 1,099 ms of 2 s
        (450, 1_099, 0, False),
        (450, 1_100, 0, True),
        # on a clock that is 10 % fast the round trip takes 990 ms
        (450, 1_009, 100_000, False),
        (450, 1_010, 100_000, True),
    ],
)
@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_heartbeats_wait_if_round_trip_and_backoff_outlast_the_interval(
    latency_ms: int, backoff_ms: int, drift_ppm: int, waits: bool, protocol: str
) -> None:
    drifts = {"members": [1], "settings": {"clock_drift_ppm": drift_ppm}}
    settings = {
        "group.protocol": protocol,
        "group.consumer.heartbeat.interval.ms": 2_000,
        "net_latency_ms": {"uniform": [1, latency_ms]},
        "retry.backoff.ms": backoff_ms,
        "member_settings": [drifts],
    }
    resolved = scenario([START], members=2, **settings).resolve(None, None, {})
    assert heartbeats_wait(resolved.settings) is (waits and protocol == "consumer")
