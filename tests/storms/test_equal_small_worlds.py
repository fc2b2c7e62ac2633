"""Small groups under faults give the same rows whether what is periodic is computed or simulated.

The ways between clients and coordinator take up to 0.9 s, so requests and responses are under way most of the
time when something happens. The faults come at instants that are spread over an interval of heartbeats.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.soaking import one_in
from tests.storms.storms_in_memory import FIXED, START, scenario, storm

WORLD: dict[str, Any] = {
    "members": 3, "partitions": 5, "start_ms": 2_000, "stop_grace_ms": 100, "tail_ms": 2_000,
    "net_latency_ms": {"uniform": [20, 900]}, "heartbeat_lateness_ms": 0, "append_latency_ms": 30,
    "poll_interval_ms": 200, "record_rate": 20, "process_ms": {"uniform": [1, 9]},
    "auto.commit.interval.ms": 2_000, "session.timeout.ms": 10_000, "heartbeat.interval.ms": 3_000,
    "max.poll.interval.ms": 20_000, "request.timeout.ms": 15_000, "metadata.max.age.ms": 20_000,
    "group.initial.rebalance.delay.ms": 1_000, "settle_timeout_ms": 60_000, "if_never_settled": "report",
    "partition.assignment.strategy": ["cooperative-sticky"],
}  # fmt: skip
ONE: dict[str, Any] = {"members": [0]}
FAULTS: dict[str, dict[str, Any]] = {
    "stop": {"do": "stop", **ONE},
    "restart": {"do": "restart", **ONE},
    "crash": {"do": "crash-restart", **ONE},
    "pause": {"do": "pause", "for_ms": 5_000, **ONE},
    "long pause": {"do": "pause", "for_ms": 16_000, **ONE},
    "busy": {"do": "busy", "for_ms": 5_000, **ONE},
    "long batch": {"do": "busy", "for_ms": 25_000, **ONE},
    "disconnect": {"do": "disconnect", "for_ms": 2_500, **ONE},
    "long disconnect": {"do": "disconnect", "for_ms": 14_000, **ONE},
    "requests": {"do": "partition", "direction": "requests", "for_ms": 5_000, **ONE},
    "responses": {"do": "partition", "direction": "responses", "for_ms": 18_000, **ONE},
    "both": {"do": "partition", "direction": "both", "for_ms": 18_000, **ONE},
    "failover": {"do": "coordinator-failover", "for_ms": 4_000},
    "slow appends": {"do": "slow-appends", "for_ms": 5_000, "append_ms": 4_000},
    "failing appends": {"do": "failing-appends", "for_ms": 3_000},
    "more partitions": {"do": "add-partitions", "topic": "topic-0", "partitions": 8},
}
#: What else happens: a member more, and the end of another one.
THEN = ({"at_ms": 34_100, "do": "add"}, {"at_ms": 50_300, "do": "crash", "members": [1]})

VARIANTS: dict[str, dict[str, Any]] = {
    "cooperative": {},
    "eager": {"partition.assignment.strategy": ["range"], "revoke_callback_ms": 700},
    "static": {"group.instance.id": "ordinal", "assign_callback_ms": 300},
    "librdkafka": {"client_profile": "librdkafka"},
    "consumer": {
        "group.protocol": "consumer", "group.consumer.heartbeat.interval.ms": 3_000,
        "group.consumer.session.timeout.ms": 10_000, "revoke_callback_ms": 700,
    },
}  # fmt: skip


def of_variant(name: str) -> dict[str, Any]:
    settings = WORLD | VARIANTS[name]
    if name == "consumer":
        for classic in ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"):
            del settings[classic]
    return settings


#: Each case has an instant of its own, within one interval of heartbeats.
CASES = [
    (fault, variant, 30_000 + 1_117 * number % 3_000)
    for number, (fault, variant) in enumerate(product(FAULTS, VARIANTS))
]


def check(steps: list[dict[str, Any]], settings: dict[str, Any], seed: int) -> None:
    world = scenario([START, *steps], **settings)
    computed, simulated = (storm(world, seed=seed, exact=exact) for exact in (False, True))
    for row, (one, other) in enumerate(zip(computed.rows, simulated.rows, strict=False)):
        assert one == other, f"row {row}"
    assert len(computed.rows) == len(simulated.rows)


@pytest.mark.parametrize(("fault", "variant", "at_ms"), one_in(8, CASES))
def test_exact_and_computed_rows_are_equal(fault: str, variant: str, at_ms: int) -> None:
    check([{"at_ms": at_ms, **FAULTS[fault]}, *THEN], of_variant(variant), seed=at_ms)


#: Every way takes 2 ms, so that requests of a member arrive at the instant of something else.
TOGETHER: dict[str, Any] = {**FIXED, "net_latency_ms": 2, "append_latency_ms": 30, "revoke_callback_ms": 0}
#: Last heartbeats leave at one instant and arrive in one millisecond, so sessions end together.
ALIKE: dict[str, Any] = {"members": 8, "partitions": 12, "net_latency_ms": {"uniform": [0.1, 0.9]}}
#: The round trip of up to 1.8 s and a second behind it outlast the interval of heartbeats.
WAITS: dict[str, Any] = {"retry.backoff.ms": 1_000, "group.consumer.heartbeat.interval.ms": 2_000}
DRIFTS: dict[str, Any] = {"member_settings": [{"members": [0], "settings": {"clock_drift_ppm": 100_000}}]}
DIE = [{"at_ms": 30_000, "do": "crash", "members": [0, 2, 3, 4]}, *THEN]
#: What the two had committed shows when they die.
COMMITTED = [{"at_ms": 30_019, **FAULTS["responses"]}, {"at_ms": 60_701, "do": "crash", "members": [1, 2]}]
UNWRITTEN = [
    {"at_ms": 30_000, "do": "add"},
    {"at_ms": 34_837, **FAULTS["failing appends"]},
    {"at_ms": 42_287, "do": "crash", "members": [1, 2]},
]


@pytest.mark.parametrize(
    ("variant", "steps", "settings", "seed"),
    [
        *((variant, DIE, ALIKE, 3) for variant in ("cooperative", "static", "consumer")),
        *(
            ("consumer", [{"at_ms": 31_700, **FAULTS[fault]}, *THEN], settings, 3)
            for settings, faults in (
                (WAITS, ("pause", "responses", "failover")),
                (DRIFTS, ("pause", "busy", "failover")),
            )
            for fault in faults
        ),
        # a commit arrives together with a heartbeat of its member, and comes first
        ("cooperative", COMMITTED, TOGETHER | {"auto.commit.interval.ms": 3_000}, 1),
        # a commit arrives when a timer of the coordinator is due, and comes behind it
        ("consumer", COMMITTED, TOGETHER | {"auto.commit.interval.ms": 1_000}, 1),
        # commits behind one whose write failed count
        ("consumer", UNWRITTEN, {"auto.commit.interval.ms": 1_000, "assign_callback_ms": 2_000,
                                 "net_latency_ms": {"uniform": [1, 20]}}, 87),
    ],
)  # fmt: skip
def test_exact_and_computed_rows_of_odd_worlds_are_equal(
    variant: str, steps: list[dict[str, Any]], settings: dict[str, Any], seed: int
) -> None:
    check(steps, of_variant(variant) | settings, seed)
