"""librdkafka's clients over many lives of one broker: nothing is lost, and nothing is there twice.

The clients live through all kills: they send again what a killed broker has not acknowledged, and the broker,
started again from its folder, its checkpoints and its compacted logs, has to know what it has already.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from groupstorm.clients.brokers.jvm import held_ports
from tests.broker.kills.served import BACKOFF_MS, ServedProcess, served
from tests.broker.test_serve import DEADLINE_S
from tests.waiting import wait_until

PLAIN, COMPACTED, FIRST, SECOND = "plain", "compacted", "first", "second"
TOPICS = (PLAIN, COMPACTED, FIRST, SECOND)
_GROUP, _SHARE_GROUP = "readers", "sharers"
_IN_FLIGHT = 40
_KEYS = 20
#: Of a broker, from its first line, in seconds: clients have to find it again.
_LIVES_S = (0.3, 2.0)
_COMPACTING = {
    "cleanup.policy": "compact",
    "segment.ms": "1",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
}


@dataclass
class Told:
    """The answers that clients got. Each value is written by one thread."""

    plain: list[str] = field(default_factory=list)
    """Values of acknowledged records, in the order of their sending."""
    newest: dict[str, int] = field(default_factory=dict)
    """Key -> number of the newest acknowledged record of the compacted topic."""
    sent: dict[str, int] = field(default_factory=dict)
    """Key -> number of the newest record that was sent."""
    committed: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    consumed: dict[int, str] = field(default_factory=dict)
    """Offset -> value of the records that the group's consumer has processed; it commits behind each."""
    position: int = 0
    """The highest offset whose commit was acknowledged."""
    shared: set[int] = field(default_factory=set)
    """Offsets of records that members of a share group got."""
    accepted: set[int] = field(default_factory=set)
    """Those whose acceptance was acknowledged."""
    problems: list[BaseException] = field(default_factory=list)

    @property
    def has_all_kinds(self) -> bool:
        """Whether there is something of each kind that a restart could lose."""
        return all((self.plain, self.committed, self.position, self.accepted))


def kill_repeatedly(folder: Path, count: int, seed: int) -> Told:
    """Kill the broker ``count`` times under its clients. Raises AssertionError if a record or a commit that
    was acknowledged is missing, or if a record is there twice."""
    draw, told = random.Random(seed), Told()
    with held_ports(1) as (port,):
        address = f"127.0.0.1:{port}"
        with _served(folder / "data", port):
            _create_topics(address)
        is_over = threading.Event()
        threads = [
            threading.Thread(target=_kept, args=(act, address, told, is_over), name=act.__name__)
            for act in (_produce, _transact, _consume, _share)
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in range(count):
                with _served(folder / "data", port) as broker:
                    time.sleep(draw.uniform(*_LIVES_S))
                    wait_until(lambda: told.has_all_kinds or told.problems, "something of each kind to lose")
                    broker.kill()
                    assert "Traceback" not in broker.log(), broker.log()
                    assert told.problems == [], told.problems
        finally:
            is_over.set()
            with _served(folder / "data", port):
                for thread in threads:
                    thread.join(DEADLINE_S)
        assert not any(thread.is_alive() for thread in threads), [one.name for one in threads]
        assert told.problems == [], told.problems
        with _served(folder / "data", port):
            _check(address, told)
    return told


def _served(data: Path, port: int) -> AbstractContextManager[ServedProcess]:
    settings = ("group.initial.rebalance.delay.ms=0", f"log.cleaner.backoff.ms={BACKOFF_MS}")
    return served(data, *(f"--set={one}" for one in settings), port=port)


def _create_topics(address: str) -> None:
    topics = [NewTopic(name, 1, 1, config=_COMPACTING if name == COMPACTED else {}) for name in TOPICS]
    admin = AdminClient({"bootstrap.servers": address})
    for created in admin.create_topics(topics).values():
        created.result(DEADLINE_S)
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    own = ConfigResource(ResourceType.GROUP, _SHARE_GROUP, incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([own]).values():
        altered.result(DEADLINE_S)


_Act = Callable[[dict[str, Any], Told, threading.Event], None]


def _kept(act: _Act, address: str, told: Told, is_over: threading.Event) -> None:
    """A client that goes on looking for a broker that was killed."""
    options = {
        "bootstrap.servers": address,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 50,
        "retry.backoff.ms": 20,
        "log_level": 0,
    }
    try:
        act(options, told, is_over)
    except (AssertionError, KafkaException) as problem:
        told.problems.append(problem)


def _produce(options: dict[str, Any], told: Told, is_over: threading.Event) -> None:
    """An idempotent producer: each record once, in order, however often it was sent."""
    producer = Producer(options | {"enable.idempotence": True, "linger.ms": 0})

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            told.problems.append(KafkaException(error))
            return
        key, value = message.key(), message.value()
        assert value is not None
        if key is None:
            told.plain.append(value.decode())
        else:
            told.newest[key.decode()] = int(value)

    for number in itertools.count():
        if is_over.is_set():
            break
        key = f"key-{number % _KEYS}"
        producer.produce(PLAIN, str(number), on_delivery=delivered)
        producer.produce(COMPACTED, str(number), key, on_delivery=delivered)
        told.sent[key] = number
        while len(producer) > _IN_FLIGHT:
            producer.poll(0.01)
        producer.poll(0.002)
    assert producer.flush(DEADLINE_S) == 0


def _transact(options: dict[str, Any], told: Told, is_over: threading.Event) -> None:
    """Transactions over two topics; every third one is aborted."""
    producer = Producer(options | {"transactional.id": "t", "transaction.timeout.ms": 600_000})
    _repeated(producer.init_transactions)
    for number in itertools.count():
        if is_over.is_set():
            break
        value = str(number)
        producer.begin_transaction()
        commits = number % 3 != 0
        for topic in (FIRST, SECOND):
            producer.produce(topic, value)
        # an abort of partitions that the broker has not heard of is refused by Kafka as well
        assert producer.flush(DEADLINE_S) == 0
        _repeated(producer.commit_transaction if commits else producer.abort_transaction)
        (told.committed if commits else told.aborted).append(value)


def _repeated(act: Callable[[float], object]) -> None:
    while True:
        try:
            act(5.0)
        except KafkaException as problem:
            if not problem.args[0].retriable():
                raise
        else:
            return


def _consume(options: dict[str, Any], told: Told, is_over: threading.Event) -> None:
    """A member of a group that commits behind each record before it takes the next one."""
    group = {"group.id": _GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer(options | group | {"isolation.level": "read_committed", "session.timeout.ms": 6_000})
    consumer.subscribe([PLAIN])
    while not is_over.is_set():
        message = consumer.poll(0.1)
        if message is None or message.error() is not None:
            continue
        offset, value = message.offset(), message.value()
        assert offset is not None
        assert value is not None
        assert offset >= told.position, (
            f"a record in front of the committed offset {told.position} comes again"
        )
        told.consumed[offset] = value.decode()
        try:
            consumer.commit(offsets=[TopicPartition(PLAIN, 0, offset + 1)], asynchronous=False)
        except KafkaException:
            continue  # not acknowledged
        told.position = offset + 1
    consumer.close()


def _share(options: dict[str, Any], told: Told, is_over: threading.Event) -> None:
    """A member of a share group that accepts every record, and waits for the answer before it gets more."""
    group = {"group.id": _SHARE_GROUP, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer(options | group)
    consumer.subscribe([PLAIN])
    while not is_over.is_set():
        _repeated(lambda _: _accept(consumer, told))
    consumer.close()


def _accept(consumer: ShareConsumer, told: Told) -> None:
    """Accept the records of a poll."""
    messages = [one for one in consumer.poll(timeout=0.1) if one.error() is None]
    offsets = {offset for one in messages if (offset := one.offset()) is not None}
    again = sorted(offsets & told.accepted)
    assert not again, f"records that were accepted come again: {again}"
    told.shared |= offsets
    for one in messages:
        consumer.acknowledge(one)
    answers = consumer.commit_sync(timeout=5.0)
    if messages and set(answers.values()) == {None}:
        told.accepted |= offsets


def _check(address: str, told: Told) -> None:
    found = {topic: _values(address, topic) for topic in TOPICS}
    plain = [value for _, value in found[PLAIN]]
    assert plain == told.plain, "each acknowledged record once, in the order of sending"
    assert len(found[COMPACTED]) < len(plain) / 2, "nothing was compacted"
    newest = {key: int(value) for key, value in found[COMPACTED]}
    assert newest == told.newest == told.sent
    first, second = ([value for _, value in found[one]] for one in (FIRST, SECOND))
    assert first == second, "a transaction is in one topic and not in the other"
    assert first == told.committed, "a committed transaction is lost or an aborted one there"
    assert told.consumed == dict(enumerate(plain[: len(told.consumed)])), "the group skipped a record"
    (committed,) = Consumer({"bootstrap.servers": address, "group.id": _GROUP}).committed(
        [TopicPartition(PLAIN, 0)], DEADLINE_S
    )
    assert told.position <= max(0, committed.offset) <= len(told.consumed), (told.position, committed)
    is_over = threading.Event()
    sharing = threading.Thread(target=_kept, args=(_share, address, told, is_over))
    sharing.start()
    wait_until(lambda: len(told.shared) == len(plain) or told.problems, "the share group gets every record")
    is_over.set()
    sharing.join(DEADLINE_S)
    assert told.problems == [], told.problems


def _values(address: str, topic: str) -> list[tuple[str, str]]:
    """Key, "" without one, and value of each committed record, as a consumer reads them."""
    options = {"bootstrap.servers": address, "group.id": "check", "enable.partition.eof": True}
    consumer = Consumer(options | {"isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[str, str]] = []
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None, f"nothing more comes of {topic}"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            consumer.close()
            return found
        value = message.value()
        assert value is not None
        found.append(((message.key() or b"").decode(), value.decode()))
