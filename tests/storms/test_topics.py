"""Topics that are created, grow and are deleted, and members that subscribe to them by a pattern."""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.world.topics import Topics
from tests.storms.storms_in_memory import Storm, scenario, storm

START = {"at_ms": 0, "do": "start"}
CREATE = {"at_ms": 60_000, "do": "create-topic", "topic": "topic-new", "partitions": 6}
FIXED = {
    "phases": "aligned", "members": 3, "partitions": 6, "net_latency_ms": 1, "poll_interval_ms": 10,
    "partition.assignment.strategy": ["cooperative-sticky"], "metadata.max.age.ms": 30_000,
}  # fmt: skip


def test_topics_know_what_was_when_and_count_only_what_members_subscribe_to() -> None:
    topics = Topics({"a": 2}, lambda name: name != "other")
    assert topics.grow("b", 1, 10) == (TopicPartition("b", 0),)
    assert topics.grow("other", 3, 15) == ()
    assert topics.grow("a", 3, 20) == (TopicPartition("a", 2),)
    assert topics.delete("b", 30) == (TopicPartition("b", 0),)
    assert topics.delete("b", 31) == ()
    then = [sorted(topics.at(time)) for time in (9, 10, 15, 30)]
    assert then == [["a"], ["a", "b"], ["a", "b", "other"], ["a", "other"]]
    assert [str(partition) for partition in topics.partitions] == ["a-0", "a-1", "a-2"]
    assert "b" in topics.deleted
    topics.grow("b", 2, 40)
    assert "b" not in topics.deleted


def test_one_created_topic_costs_one_round_since_members_refresh_before_they_join() -> None:
    """KAFKA-7126: members that joined at different times refresh at different times."""
    spread = [{**START, "over_ms": 20_000}, CREATE]
    settings = {**FIXED, "members": 8, "metadata.max.age.ms": 30_000}
    java, librdkafka = (
        storm(scenario(spread, **settings, topic_pattern="topic-.*", client_profile=profile))
        for profile in ("java", "librdkafka")
    )

    def rounds_after_creation(result: Storm) -> int:
        changes = result.events("group_state_changed", state="CompletingRebalance")
        return sum(at_us > 60_000_000 for at_us, _ in changes)

    assert rounds_after_creation(java) == 1
    assert rounds_after_creation(librdkafka) > 1


def test_without_a_pattern_a_new_topic_changes_nothing() -> None:
    result = storm(scenario([START, CREATE], **FIXED, tail_ms=100_000))
    assert result.figures.generations == 1
