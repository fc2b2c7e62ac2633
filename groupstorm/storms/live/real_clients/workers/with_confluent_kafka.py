"""confluent-kafka: librdkafka's consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from groupstorm.storms.live.real_clients.workers.application import (
    Application,
    Fatal,
    Order,
    Record,
    names_of,
    on_assigned,
    on_revoked,
)


class ConfluentClient:
    rebalances_in_background = False

    def __init__(self, order: Order, application: Application) -> None:
        self._fatal: str | None = None
        self._consumer = Consumer({**order.config, "error_cb": self._on_error})
        self._consumer.subscribe(
            list(order.topics),
            on_assign=lambda _, partitions: on_assigned(application, names_of(partitions)),
            on_revoke=lambda _, partitions: on_revoked(application, names_of(partitions)),
            on_lost=lambda _, partitions: on_revoked(application, names_of(partitions), lost=True),
        )

    def poll(self, timeout_s: float, most: int) -> Sequence[Record]:
        messages = self._consumer.consume(most, timeout_s)
        if self._fatal is not None:
            raise Fatal(self._fatal)
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(Record(f"{message.topic()}-{message.partition()}", message.offset()))
            elif error.fatal():
                raise Fatal(_name(error))
        return records

    def close(self) -> None:
        try:
            self._consumer.close()
        except KafkaException as problem:
            raise Fatal(_name(problem.args[0])) from problem

    def _on_error(self, error: Any) -> None:
        if error.fatal():
            self._fatal = _name(error)


def _name(error: Any) -> str:
    """librdkafka's name of an error: FENCED_INSTANCE_ID, or _FATAL for one of its own."""
    return str(KafkaError(error.code()).name())


connect = ConfluentClient
