"""Small groups under faults give the same rows whether what is periodic is computed or simulated.

The ways between clients and coordinator take up to 0.9 s, so requests and responses are under way most of the
time when something happens. The faults come at instants that are spread over an interval of heartbeats.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.storms.storms_in_memory import START, scenario, storm

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


@pytest.mark.parametrize(("fault", "variant", "at_ms"), CASES)
def test_exact_and_computed_rows_are_equal(fault: str, variant: str, at_ms: int) -> None:
    world = scenario([START, {"at_ms": at_ms, **FAULTS[fault]}, *THEN], **of_variant(variant))
    computed, simulated = (storm(world, seed=at_ms, exact=exact) for exact in (False, True))
    for row, (one, other) in enumerate(zip(computed.rows, simulated.rows, strict=False)):
        assert one == other, f"row {row}"
    assert len(computed.rows) == len(simulated.rows)
