"""A word count of Kafka Streams with ``group.protocol=streams``, on the emulator and on Kafka 4.4.0."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.client_libraries.conftest import checked
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.applications import RUNNING, Instance, stopping
from tests.conformance.backends import Backend
from tests.conformance.conftest import RecordProperty
from tests.conformance.reading import newest_values, own_configs
from tests.needs import needed
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

LINES_PARTITIONS = 2
#: Transactions of an instance that is killed hold up readers for so long.
_EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2", "producer.transaction.timeout.ms": "3000"}
#: What Kafka creates of the repartition topic and of the changelog: the configurations that it sets.
_INTERNAL = {
    "by-word-repartition": {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
        "segment.bytes": "52428800",
    },
    "counts-changelog": {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"},
}
_TEXT = ("the quick brown fox", "jumps over the lazy dog", "the end")


def _lines(start: int, count: int) -> list[tuple[int, str]]:
    """By partition; each third line is the same."""
    return [
        (number % LINES_PARTITIONS, f"{_TEXT[number % len(_TEXT)]} {number % 10}")
        for number in range(start, start + count)
    ]


def _counted(lines: Iterable[tuple[int, str]]) -> Mapping[str, str]:
    words = Counter(word for _, line in lines for word in line.split(" "))
    return {word: str(count) for word, count in words.items()}


def test_two_instances_count_every_word_once_although_one_is_killed(
    streams: Backend, tmp_path: Path, record_property: RecordProperty
) -> None:
    checked("confluent-kafka")
    topics = streams.topic(LINES_PARTITIONS, "lines"), streams.topic(1, "counts")
    group = streams.group("count")

    def counts() -> Mapping[str, str]:
        for instance in living:
            instance.check()
        return newest_values(streams.address, topics[1])

    began_s = time.monotonic()
    with needed():
        first, second = (
            Instance(streams.address, group, topics, tmp_path / str(number), _EXACTLY_ONCE)
            for number in range(2)
        )
    with stopping([first, second]):
        living = [first, second]
        wait_until(lambda: first.state == second.state == RUNNING, "both run")
        record_property("both run after s", f"{time.monotonic() - began_s:.1f}")
        lines = _lines(0, 300)
        sent_s = time.monotonic()
        produce_with_confluent(streams.address, lines, topics[0])
        wait_until(lambda: counts() == _counted(lines), "300 lines are counted")
        record_property("300 lines counted after s", f"{time.monotonic() - sent_s:.1f}")
        first.kill()
        killed_s = time.monotonic()
        living = [second]
        lines += _lines(300, 300)
        produce_with_confluent(streams.address, lines[300:], topics[0])
        wait_until(lambda: counts() == _counted(lines), "600 lines are counted")
        assert {name: own_configs(streams.address, f"{group}-{name}") for name in _INTERNAL} == {
            name: (LINES_PARTITIONS, configs) for name, configs in _INTERNAL.items()
        }
        record_property("600 lines counted s after the kill", f"{time.monotonic() - killed_s:.1f}")
