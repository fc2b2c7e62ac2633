"""Late heartbeat timers, in the figures of a storm: a heartbeat leaves an interval and a lateness behind the
one before. `tests/client_profiles` compares the latenesses of each client with recorded ones."""

from __future__ import annotations

from statistics import pvariance
from typing import Any

import pytest

from tests.soaking import one_in
from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

MEMBERS = 30
QUIET: dict[str, Any] = {
    **FIXED, "members": MEMBERS, "partitions": MEMBERS, "start_ms": 1_000, "record_rate": 0, "tail_ms": 1_000,
    "commits": "never", "heartbeat.interval.ms": 3_000, "session.timeout.ms": 45_000,
}  # fmt: skip


def quiet(for_s: int, steps: tuple[dict[str, Any], ...] = (), **settings: Any) -> Storm:
    return storm(scenario([START, *steps], **(QUIET | {"least_duration_ms": for_s * 1_000} | settings)))


@pytest.mark.parametrize(
    ("settings", "apart_ms"),
    one_in(
        2,
        [
            ({}, 3_000),
            ({"heartbeat_lateness_ms": {"uniform": [0, 1_000]}}, 3_500),
            # librdkafka's timer runs while it waits for the response, franz-go's begins when that has come
            ({"client_profile": "librdkafka", "net_latency_ms": 250}, 3_000),
            ({"client_profile": "librdkafka", "net_latency_ms": 250, "heartbeat_lateness_ms": 100}, 3_100),
            ({"client_profile": "franz-go", "net_latency_ms": 250, "heartbeat_lateness_ms": 100}, 3_600),
        ],
    ),
)
def test_heartbeats_are_an_interval_and_the_mean_lateness_apart(
    settings: dict[str, Any], apart_ms: int
) -> None:
    """Members have joined within ten seconds of two hours: less than 0.2 %."""
    ran = quiet(7_200, **settings)
    counted = (ran.figures.requests or {})["Heartbeat"]
    assert counted == pytest.approx(MEMBERS * 7_200_000 / apart_ms, rel=0.005)


@pytest.mark.parametrize(
    ("client", "backoff_ms", "late_ms"), [("java", 1_000, 100), ("java", 100, 25), ("kafka-python", 1_000, 0)]
)
def test_a_java_application_that_works_delays_heartbeats(client: str, backoff_ms: int, late_ms: int) -> None:
    """It works 400 ms in each 800 ms: half of the heartbeats wait for the end of a batch, 200 ms in the mean,
    or until the thread looks again, after retry.backoff.ms at most. Timers are late by a microsecond."""
    settings: dict[str, Any] = {
        "client_profile": client, "retry.backoff.ms": backoff_ms, "heartbeat_lateness_ms": 0.001,
        "record_rate": 1.25, "process_ms": 400, "poll_interval_ms": 800,
    }  # fmt: skip
    ran = quiet(7_200, **settings)
    counted = (ran.figures.requests or {})["Heartbeat"]
    assert counted == pytest.approx(MEMBERS * 7_200_000 / (3_000 + late_ms), rel=0.005)


def test_phases_of_members_drift_apart_with_the_root_of_time() -> None:
    """The variance of when the k-th heartbeat leaves grows with k, not with its square: 12 ms ** 2 / 12 for
    each heartbeat. A member more shows when the others' next heartbeats arrive, after k * 3 s."""
    for k in (16, 400):
        add_ms = 5_000 + k * 3_000
        steps: tuple[dict[str, Any], ...] = ({"at_ms": add_ms, "do": "add"},)
        lateness: dict[str, Any] = {"heartbeat_lateness_ms": {"uniform": [0, 12]}}
        ran = quiet(k * 3 + 20, steps, members=120, partitions=120, **lateness)
        asked = ran.events("rejoin_requested", cause="group-rebalancing")
        first_ms = [at_us / 1_000 for at_us, _ in asked if at_us > add_ms * 1_000][:120]
        assert len(first_ms) == 120
        assert pvariance(first_ms) == pytest.approx(k * 12**2 / 12, rel=0.5)
