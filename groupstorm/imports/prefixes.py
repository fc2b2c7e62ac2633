"""The beginnings of messages that say who wrote them: the coordinator, a client, a thread."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple


class Writer(StrEnum):
    """Who wrote a message, and so the table of templates that it comes from; or what was read in place of a
    log."""

    BROKER = "broker"
    JAVA = "java"
    STREAMS = "streams"
    RDKAFKA = "librdkafka"
    BARE = "bare"
    AIOKAFKA = "aiokafka"
    KAFKA_PYTHON = "kafka-python"
    FRANZ_GO = "franz-go"
    KAFKAJS = "kafkajs"
    SARAMA = "sarama"
    KAFKA_GO = "segmentio/kafka-go"
    BROD = "brod"
    RUBY_KAFKA = "ruby-kafka"
    SPRING = "Spring Kafka"
    OFFSETS_TOPIC = "__consumer_offsets"
    GROUPS_COMMAND = "kafka-consumer-groups"
    CAPTURE = "capture"


class Prefix(NamedTuple):
    """``start``: where the envelope ends; ``message``: where the message begins. ``group``: "" if the prefix
    does not name it."""

    writer: Writer
    start: int
    message: int
    group: str = ""
    client: str | None = None
    instance: str | None = None
    #: The group's partition of __consumer_offsets, or the broker: what a coordinator's prefix says.
    place: str | None = None
    #: A worker of Kafka Connect, whose group has no partitions.
    is_worker: bool = False


#: Each way begins with a character of its own: a search looks for these first.
_PREFIX = re.compile(
    r"\[(?:GroupCoordinator (?P<coordinator>\d+\]|id=\d+[^\]]*\]):? "
    r"|GroupMetadataManager (?P<manager>brokerId=-?\d+\]):? "
    r"|(?P<client>Consumer|ShareConsumer|Worker|Schema registry) (?:instanceId=(?P<instance>.*?), )?"
    r"clientId=(?P<id>.*?), groupId=(?P<group>.*?)\] "
    r"|thrd:(?P<thread>[^\]]*)\]: ?"
    r"|(?P<bare_client>Consumer) clientId=(?P<bare_id>[^\],]*)\] ?)"
    r"|stream-(?:thread|client) \[(?P<stream>[^\]]*)\] "
    r"|#(?P<handle>consumer-\d+)(?::|\|(?:[A-Z]+\|)?) (?!\[)"  # librdkafka before 0.11
    # messages of librdkafka as an application prints them
    r"|G(?P<group_said>roup \"[^\"]+\"(?:: | (?:changed|heartbeat|is rebalancing|initiating) ))"
    r"|J(?P<joined>oinGroup response: GenerationId )"
    r"|S(?P<synced>yncGroup response: )"
)
#: The prefix is the message's own beginning.
_OWN: Final = frozenset({"group_said", "joined", "synced"})
#: A consumer of no group, as the one that restores the state of Kafka Streams.
_NO_GROUP = "null"
#: By the last group of a prefix.
_WRITERS = {
    "coordinator": Writer.BROKER,
    "manager": Writer.BROKER,
    "group": Writer.JAVA,
    "thread": Writer.RDKAFKA,
    "handle": Writer.RDKAFKA,
    "bare_id": Writer.JAVA,
    "stream": Writer.STREAMS,
}


def find_prefix(text: str) -> Prefix | None:
    """The first prefix in a line; None if there is none."""
    found = _PREFIX.search(text)
    if found is None:
        return None
    if found.lastgroup in _OWN:
        return Prefix(Writer.RDKAFKA, found.start(), found.start())
    return _read(found[0], found.start())


@lru_cache(maxsize=4096)
def _read(text: str, start: int) -> Prefix:
    """The prefix that ``text`` is: a log has few, in many lines."""
    found = _PREFIX.match(text)
    assert found is not None
    writer = _WRITERS[str(found.lastgroup)]
    client = found["id"] if found["bare_id"] is None else found["bare_id"]
    if writer is Writer.STREAMS:
        client = found["stream"]
    return Prefix(
        writer,
        start + max(0, found.end("handle")),
        start + found.end(),
        "" if found["group"] in (None, _NO_GROUP) else found["group"],
        client,
        found["instance"],
        found["coordinator"] or found["manager"],
        found["client"] == "Worker",
    )
