"""A service of its own process for chaos runs: `python service.py MODE`, with confluent-kafka.

Modes: careful; commits-first; reverses (processes a batch from its end); prints (says on standard output what
it has processed, and when); prints-untimed (the same, and not when); transactions; half-transactions (the
offsets are in the transaction, the output is not; one transaction of each process is aborted and done again);
fails (ends after ten records).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from types import FrameType
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

WORK_S = 0.02


def told(name: str) -> str:
    return os.environ[f"GROUPSTORM_{name}"]


class Service:
    """Polls a few records, processes each, and commits them."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.is_over = False
        self.processed = self.batches = 0
        transactional = mode in ("transactions", "half-transactions")
        own: dict[str, Any] = {"bootstrap.servers": told("BOOTSTRAP_SERVERS"), "client.id": told("CLIENT_ID")}
        self.consumer = Consumer(
            {
                **own,
                "group.id": told("GROUP_ID"),
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 500,
            }
        )
        if instance_id := told("INSTANCE_ID"):
            own["group.instance.id"] = instance_id
        self.outside = Producer(own)
        self.producer = Producer({**own, "transactional.id": told("CLIENT_ID")} if transactional else own)
        if transactional:
            self.producer.init_transactions(30)
        self.is_transactional = transactional
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        self.is_over = True

    def run(self) -> None:
        self.consumer.subscribe(told("TOPICS").split(","))
        while not self.is_over:
            messages = [one for one in self.consumer.consume(5, 0.2) if one.error() is None]
            if messages:
                self.work(messages[::-1] if self.mode == "reverses" else messages)
        self.consumer.close()

    def work(self, messages: list[Message]) -> None:
        if self.is_transactional:
            self.work_in_transaction(messages)
            return
        if self.mode == "commits-first":
            self.commit()
        for message in messages:
            self.process(message, self.producer)
        self.producer.flush()
        if self.mode != "commits-first":
            self.commit()

    def work_in_transaction(self, messages: list[Message]) -> None:
        self.producer.begin_transaction()
        try:
            for message in messages:
                self.process(message, self.outside if self.mode == "half-transactions" else self.producer)
            self.outside.flush()
            self.batches += 1
            if self.mode == "half-transactions" and self.batches == 3:
                self.do_again(messages)
                return
            positions = self.consumer.position(self.consumer.assignment())
            group = self.consumer.consumer_group_metadata()
            self.producer.send_offsets_to_transaction(positions, group)
            self.producer.commit_transaction()
        except KafkaException as problem:
            print(f"aborted: {problem}", flush=True)
            self.producer.abort_transaction()
            sys.exit(1)  # the offsets begin anew with the next process

    def do_again(self, messages: list[Message]) -> None:
        self.producer.abort_transaction()
        first: dict[tuple[str, int], int] = {}
        for one in messages:
            first.setdefault((str(one.topic()), int(one.partition() or 0)), int(one.offset() or 0))
        for (topic, partition), offset in first.items():
            self.consumer.seek(TopicPartition(topic, partition, offset))

    def process(self, message: Message, producer: Producer) -> None:
        time.sleep(WORK_S)
        number = message.value()
        if self.mode in ("prints", "prints-untimed"):
            place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            at = {"at_ms": time.time() * 1000} if self.mode == "prints" else {}
            print(json.dumps({"processed": place, **at}), flush=True)
        else:
            producer.produce(told("OUTPUT_TOPIC"), key=number, headers={"by": told("CLIENT_ID")})
        self.processed += 1
        if self.mode == "fails" and self.processed == 10:
            raise RuntimeError("ten records are enough")

    def commit(self) -> None:
        try:
            self.consumer.commit(asynchronous=False)
        except KafkaException as problem:
            print(f"not committed: {problem}", flush=True)


if __name__ == "__main__":
    Service(sys.argv[1]).run()
