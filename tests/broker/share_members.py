"""Members of share groups that fetch and acknowledge on a driven broker."""

from __future__ import annotations

from typing import Any

from groupstorm.broker.log.partition import PartitionLog
from tests.broker import wire
from tests.broker.asking import alter_configs, produce, share_beat, topic_id
from tests.broker.driver import Driver

GROUP = 32


class Sharing(Driver):
    """A broker with the topic orders, whose records the share group g gets from the first one on."""

    def __init__(self, brokers: int = 1, **options: str) -> None:
        super().__init__(options, {"orders": 2}, brokers)
        self.epochs: dict[str, int] = {}
        self.configure("share.auto.offset.reset", "earliest")
        self.beat("a", 0)

    def configure(self, name: str, value: str) -> None:
        alter_configs(self, 1, (name, 0, value), kind=GROUP, name="g")

    def beat(self, member: str, epoch: int, group: str = "g") -> Any:
        answer = self.ask(wire.SHARE_GROUP_HEARTBEAT, 1, **share_beat(group, member, epoch, "orders"))
        self.advance(0)  # the broker asks for the share partitions behind the answer
        return answer

    def produce(self, *values: bytes, partition: int = 0) -> None:
        """Each value is a batch of its own."""
        for value in values:
            produce(self, 9, partition, wire.batch([value]))

    def log(self) -> PartitionLog:
        """Partition 0."""
        log = self.broker.state.topics.partition("orders", 0)
        assert log is not None
        return log

    def partitions(self, acks: tuple[Any, ...], *numbers: int) -> tuple[Any, ...]:
        """The topics of a request. ``acks``: of partition 0, (first, last, type)."""

        def batches(number: int) -> tuple[Any, ...]:
            return tuple(
                {
                    "first_offset": first,
                    "last_offset": last,
                    "acknowledge_types": types if isinstance(types, tuple) else (types,),
                }
                for first, last, types in (acks if number == 0 else ())
            )

        listed = tuple(
            {"partition_index": number, "acknowledgement_batches": batches(number)} for number in numbers
        )
        return ({"topic_id": topic_id(self), "partitions": listed},)

    def send_fetch(self, member: str = "a", *acks: Any, epoch: int | None = None, **more: Any) -> int:
        """The connection of a fetch from both partitions, or only with acknowledgements."""
        at = self.epochs.get(member, 0) if epoch is None else epoch
        self.epochs[member] = at + 1
        numbers = (0, 1) if at == 0 else (0,)
        values = {
            "group_id": "g",
            "member_id": member,
            "share_session_epoch": at,
            "max_wait": wire.milliseconds(more.pop("wait_ms", 0)),
            "min_bytes": 1,
            "max_bytes": 1_000_000,
            "max_records": 500,
            "batch_size": 500,
            "topics": self.partitions(acks, *numbers) if at <= 0 or acks else (),
        }
        return self.send(wire.SHARE_FETCH, 2, **(values | more))

    def fetch(self, member: str = "a", *acks: Any, **more: Any) -> list[tuple[int, int, int]]:
        """The records of partition 0 that the member gets: (first, last, delivery count)."""
        return acquired(self.answer(member, *acks, **more))

    def answer(self, member: str, *acks: Any, **more: Any) -> Any:
        """The answer to a fetch that does not wait."""
        connection = self.send_fetch(member, *acks, **more)
        self.advance(0)
        return self.answers[connection]

    def send_acknowledgement(self, member: str, *acks: Any, epoch: int | None = None) -> int:
        """The connection of the request."""
        at = self.epochs.get(member, 0) if epoch is None else epoch
        self.epochs[member] = at + 1
        return self.send(
            wire.SHARE_ACKNOWLEDGE,
            2,
            group_id="g",
            member_id=member,
            share_session_epoch=at,
            topics=self.partitions(acks, 0),
        )

    def acknowledge(self, member: str, *acks: Any, epoch: int | None = None) -> Any:
        """The error of partition 0, or of the whole request."""
        answer = self.answers[self.send_acknowledgement(member, *acks, epoch=epoch)]
        if answer.error_code or not answer.responses:
            return answer.error_code
        return answer.responses[0].partitions[0].error_code

    def hang_up(self, connection: int) -> None:
        """The client closes the connection."""
        self.collect(self.broker.forget(connection, self.now_ms))


def acquired(answer: Any, partition: int = 0) -> list[tuple[int, int, int]]:
    assert answer.error_code == 0, answer
    return [
        (one.first_offset, one.last_offset, one.delivery_count)
        for topic in answer.responses
        for found in topic.partitions
        if found.partition_index == partition
        for one in found.acquired_records
    ]
