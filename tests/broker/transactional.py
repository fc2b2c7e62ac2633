"""The requests of a producer with a transactional id."""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import produce
from tests.broker.driver import Driver
from tests.broker.wire import milliseconds


class TransactionalProducer:
    """Sends the requests of a producer with a transactional id."""

    def __init__(self, driver: Driver, name: str = "t", version: int = 4) -> None:
        """``version`` of InitProducerId."""
        self.driver = driver
        self.name = name
        self.init(version)

    def init(self, version: int = 4, timeout_ms: int = 60_000, **more: Any) -> Error:
        fields = {"producer_id": -1, "producer_epoch": -1, **more}
        answer = self.driver.ask(
            wire.INIT_PRODUCER_ID,
            version,
            transactional_id=self.name,
            transaction_timeout=milliseconds(timeout_ms),
            **fields,
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequence = 0
        return Error(answer.error_code)

    def add(self, version: int = 3, *partitions: int) -> Error:
        own = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        topic = {"name": "orders", "partitions": partitions or (0,)}
        if version < 4:
            answer = self.driver.ask(
                wire.ADD_PARTITIONS_TO_TXN,
                version,
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=(topic,),
            )
            (result,) = answer.results_by_topic_v3_and_below
        else:
            one = {"transactional_id": self.name, "topics": (topic,), **own}
            answer = self.driver.ask(wire.ADD_PARTITIONS_TO_TXN, version, transactions=(one,))
            (result,) = answer.results_by_transaction[0].topic_results
        return Error(result.results_by_partition[0].partition_error_code)

    def produce(self, version: int = 9, value: bytes = b"value", partition: int = 0) -> Error:
        batch = wire.batch(
            [value], producer_id=self.producer_id, epoch=self.epoch, sequence=self.sequence, attributes=0x10
        )
        more = {"transactional_id": self.name}
        answer = produce(self.driver, version, partition, batch, **more)
        self.sequence += answer.error_code == 0
        return Error(answer.error_code)

    def _own(self) -> dict[str, Any]:
        return {"transactional_id": self.name, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def add_offsets(self, version: int = 3, group: str = "g") -> Error:
        answer = self.driver.ask(wire.ADD_OFFSETS_TO_TXN, version, group_id=group, **self._own())
        return Error(answer.error_code)

    def commit_offset(self, version: int = 3, offset: int = 5, partition: int = 0, **more: Any) -> Error:
        asked = {"partition_index": partition, "committed_offset": offset, "committed_metadata": None}
        known = self.driver.ask(wire.METADATA, 10, topics=None).topics
        names = next({"name": one.name, "topic_id": one.topic_id} for one in known if one.name == "orders")
        topic = {"partitions": (asked,), **names}
        fields = {"group_id": "g", "generation_id": -1, "member_id": "", **self._own(), **more}
        answer = self.driver.ask(wire.TXN_OFFSET_COMMIT, version, topics=(topic,), **fields)
        return Error(answer.topics[0].partitions[0].error_code)

    def end(self, version: int = 3, commit: bool = True) -> Error:
        answer = self.driver.ask(wire.END_TXN, version, committed=commit, **self._own())
        if version >= 5 and not answer.error_code:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return Error(answer.error_code)
