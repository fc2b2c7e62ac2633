"""A trace as the records of a Kafka topic: for runs that have no end, and readers elsewhere."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from groupstorm.problems import InputError, OutputError
from groupstorm.trace.rows import TracedEvent, TraceSink, as_mapping
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import encode_row

_ADDRESS: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^:/\[\],\s]+):[0-9]{1,5}")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")

#: The time that the broker may take to answer at the start, and to take the last rows at the end.
_ANSWER_S: Final = 10.0
#: The time that a record may wait for the broker before the trace ends.
_RECORD_TIMEOUT_MS: Final = 30_000
#: Records that may wait for the broker.
_WAITING_MAX: Final = 200_000


class TopicAddress(NamedTuple):
    """``bootstrap``: HOST:PORT, several with commas."""

    bootstrap: str
    topic: str

    def __str__(self) -> str:
        return f"{self.bootstrap}/{self.topic}"


def check_bootstrap(option: str, written: str) -> None:
    """Raises InputError if it is not HOST:PORT[,HOST:PORT...]."""
    if not all(_ADDRESS.fullmatch(one) for one in written.split(",")):
        raise InputError(f"{option} {written}: expected HOST:PORT")


def check_topic(option: str, written: str) -> None:
    """Raises InputError if no topic of Kafka's may have this name."""
    if not _TOPIC.fullmatch(written) or written in (".", ".."):
        raise InputError(f"{option} {written}: expected a topic's name: letters, digits, '.', '_' and '-'")


def read_topic_address(option: str, written: str) -> TopicAddress:
    """``HOST:PORT[,HOST:PORT...]/TOPIC``. Raises InputError."""
    bootstrap, slash, topic = written.partition("/")
    if not slash:
        raise InputError(f"{option} {written}: expected HOST:PORT/TOPIC")
    check_bootstrap(option, bootstrap)
    check_topic(option, topic)
    return TopicAddress(bootstrap, topic)


class TopicSink(TraceSink):
    """Produces each row as one record: the key is the group, the value the line of `JsonLinesWriter`.

    Rows go to the broker in the background. ``may_wait``: `add` waits if the broker is slower than the run;
    otherwise it raises OutputError when too many records wait. ``named``: the option, for messages.
    Raises InputError if the broker cannot be reached, or if the topic holds records: two runs must not be
    mixed. A topic that does not exist is created, with one partition.
    """

    def __init__(self, address: TopicAddress, named: str, may_wait: bool) -> None:
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError as missing:
            raise InputError(
                f"{named}: confluent-kafka is not installed: pip install 'groupstorm[kafka]'"
            ) from missing
        self._address = address
        self._may_wait = may_wait
        self._rows = 0
        self._delivered = 0
        self._failure = ""
        client = {"bootstrap.servers": address.bootstrap, "log_level": 2, "error_cb": _ignore}
        try:
            _make_empty_topic(client, address.topic, named)
        except KafkaException as problem:
            raise InputError(f"{named}: {problem.args[0].str()}") from problem
        self._producer = Producer(
            client
            | {
                "enable.idempotence": True,
                "linger.ms": 50,
                "message.timeout.ms": _RECORD_TIMEOUT_MS,
                "queue.buffering.max.messages": _WAITING_MAX,
            }
        )

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        row = as_mapping(self._rows, time_us, source, event)
        self._rows += 1
        self._produce(row["group"], encode_row(row))

    @property
    def readable_rows(self) -> int:
        """The number of rows that the broker has acknowledged."""
        return self._delivered

    def rotate(self) -> None:
        """Take notice of what the broker has acknowledged. Raises OutputError."""
        self._producer.poll(0)
        self._check()

    def close(self) -> None:
        """Wait until the broker has all rows. Raises OutputError."""
        waiting = self._producer.flush(_ANSWER_S)
        self._check()
        if waiting:
            raise self._problem(f"{waiting} rows were not acknowledged within {_ANSWER_S:g} s")

    def discard(self) -> None:
        """Drop the rows that wait for the broker."""
        self._producer.purge()
        self._producer.flush(0)

    def _produce(self, group: str, line: str) -> None:
        while True:
            try:
                self._producer.produce(
                    self._address.topic, line.encode(), group.encode(), on_delivery=self._done
                )
            except BufferError as full:
                if not self._may_wait:
                    raise self._problem("the broker takes the rows too slowly") from full
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return
            finally:
                self._check()

    def _done(self, error: Any, _record: Any) -> None:
        if error is None:
            self._delivered += 1
        else:
            self._failure = self._failure or str(error.str())

    def _check(self) -> None:
        if self._failure:
            raise self._problem(self._failure)

    def _problem(self, why: str) -> OutputError:
        return OutputError(f"{self._address}: cannot be written: {why}")


def _make_empty_topic(client: dict[str, Any], topic: str, named: str) -> None:
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient(client)
    found = admin.list_topics(timeout=_ANSWER_S).topics.get(topic)
    if found is None:
        admin.create_topics([NewTopic(topic, 1)], operation_timeout=_ANSWER_S)[topic].result()
        return
    consumer = Consumer(client | {"group.id": "groupstorm-trace"})  # which joins no group
    try:
        for number in found.partitions:
            if consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_ANSWER_S)[1] > 0:
                raise InputError(f"{named}: the topic holds records already: name another or delete it")
    finally:
        consumer.close()


def _ignore(_error: Any) -> None:
    """A broker that is away for a moment: records wait for it."""
