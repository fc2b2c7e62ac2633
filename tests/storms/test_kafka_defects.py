"""A scenario can have the defects of Kafka 4.3.1's assignors."""

from __future__ import annotations

from tests.storms.storms_in_memory import scenario, storm

STEPS = [
    {"at_ms": 0, "do": "start"},
    {"at_ms": 60_000, "do": "delete-topic", "topic": "topic-1"},
    {"at_ms": 60_000, "do": "create-topic", "topic": "topic-1", "partitions": 2},
]
SETTINGS = {
    "members": 3,
    "topics": 2,
    "partitions": 6,
    "net_latency_ms": 1,
    "metadata.max.age.ms": 20_000,
    "commits": "never",
    "partition.assignment.strategy": ["cooperative-sticky"],
    "settle_timeout_ms": 60_000,
}


def test_a_topic_created_anew_with_fewer_partitions_kills_one_leader_after_the_other() -> None:
    as_kafka = storm(scenario(STEPS, **SETTINGS, kafka_defects=True))
    died = [event.error for _, event in as_kafka.events("member_failed")]
    assert died
    assert set(died) == {"IllegalStateException"}
    repaired = storm(scenario(STEPS, **SETTINGS))
    assert not repaired.events("member_failed")
    assert repaired.broken == {}
