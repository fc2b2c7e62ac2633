"""kill -9 while a member of a share group acknowledges: what was answered is kept, the rest comes again."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.broker import wire
from tests.broker.test_serve import serving
from tests.broker.wire import RawClient
from tests.soaking import one_in

_RECORDS = 40
_GROUP_KIND, _SET, _ACCEPT = 32, 0, 1


class _Member:
    """A member of the share group g, on a connection of its own."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        answer = self.ask(wire.METADATA, 12, topics=None, allow_auto_topic_creation=False)
        self.topic_id: uuid.UUID = answer.topics[0].topic_id
        self.epoch = 0

    def ask(self, key: int, version: int, **fields: Any) -> Any:
        return self.client.ask(key, version, **fields)

    def _topics(self, key: int, kind: str, *offsets: int) -> tuple[Any, ...]:
        batches = tuple(
            wire.structure(
                key,
                2,
                "AcknowledgementBatch",
                first_offset=one,
                last_offset=one,
                acknowledge_types=(_ACCEPT,),
            )
            for one in offsets
        )
        partition = wire.structure(
            key, 2, f"{kind}Partition", partition_index=0, acknowledgement_batches=batches
        )
        return (wire.structure(key, 2, f"{kind}Topic", topic_id=self.topic_id, partitions=(partition,)),)

    def fetch(self) -> list[int]:
        """The offsets that it gets."""
        answer = self.ask(
            wire.SHARE_FETCH,
            2,
            group_id="g",
            member_id="m",
            share_session_epoch=self.epoch,
            max_wait=wire.milliseconds(1_000),
            min_bytes=1,
            max_records=2 * _RECORDS,
            batch_size=1,
            topics=self._topics(wire.SHARE_FETCH, "Fetch"),
            forgotten_topics_data=(),
        )
        self.epoch += 1
        assert answer.error_code == 0
        return [
            offset
            for topic in answer.responses
            for partition in topic.partitions
            for one in partition.acquired_records
            for offset in range(one.first_offset, one.last_offset + 1)
        ]

    def send_acknowledgement(self, offset: int) -> None:
        """Without waiting for the answer."""
        key = wire.SHARE_ACKNOWLEDGE
        fields: dict[str, Any] = {
            "group_id": "g",
            "member_id": "m",
            "share_session_epoch": self.epoch,
            "topics": self._topics(key, "Acknowledge", offset),
        }
        self.epoch += 1
        self.client.send(wire.framed(wire.request(key, 2, self.epoch, **fields)))

    def is_acknowledged(self, correlation_id: int) -> bool:
        answer = self.client.answer(wire.SHARE_ACKNOWLEDGE, 2, correlation_id)
        return not answer.error_code and not answer.responses[0].partitions[0].error_code


def _prepare(member: _Member) -> None:
    config = wire.structure(
        wire.INCREMENTAL_ALTER_CONFIGS,
        1,
        "AlterableConfig",
        name="share.auto.offset.reset",
        config_operation=_SET,
        value="earliest",
    )
    group = wire.structure(
        wire.INCREMENTAL_ALTER_CONFIGS,
        1,
        "AlterConfigsResource",
        resource_type=_GROUP_KIND,
        resource_name="g",
        configs=(config,),
    )
    member.ask(wire.INCREMENTAL_ALTER_CONFIGS, 1, resources=(group,), validate_only=False)
    topic = wire.structure(
        wire.ALTER_SHARE_OFFSETS,
        0,
        "AlterShareGroupOffsetsRequestTopic",
        topic_name="orders",
        partitions=(
            wire.structure(
                wire.ALTER_SHARE_OFFSETS,
                0,
                "AlterShareGroupOffsetsRequestPartition",
                partition_index=0,
                start_offset=0,
            ),
        ),
    )
    assert member.ask(wire.ALTER_SHARE_OFFSETS, 0, group_id="g", topics=(topic,)).error_code == 0
    data = wire.structure(
        wire.PRODUCE, 9, "PartitionProduceData", index=0, records=wire.batch([b"value"] * _RECORDS)
    )
    produced = wire.structure(wire.PRODUCE, 9, "TopicProduceData", name="orders", partition_data=(data,))
    member.ask(
        wire.PRODUCE,
        9,
        transactional_id=None,
        acks=-1,
        timeout=wire.milliseconds(5_000),
        topic_data=(produced,),
    )


@pytest.mark.parametrize("answers", one_in(3, [17, 0, 1]))
def test_an_answered_acknowledgement_survives_kill_9(tmp_path: Path, answers: int) -> None:
    data = ("--data", str(tmp_path / "data"), "--topic", "orders:1")
    with serving(*data) as (process, address), RawClient(address) as client:
        member = _Member(client)
        _prepare(member)
        assert member.fetch() == list(range(_RECORDS))
        first = member.epoch
        for offset in range(_RECORDS):
            member.send_acknowledgement(offset)
        answered = [member.is_acknowledged(first + 1 + number) for number in range(answers)]
        process.kill()
        process.wait()
        assert all(answered)
    with serving(*data) as (_, address), RawClient(address) as client:
        left = _Member(client).fetch()
    assert left == list(range(left[0] if left else _RECORDS, _RECORDS))
    assert not set(left) & set(range(answers))
