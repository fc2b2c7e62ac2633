"""A member of a share group: an answered acknowledgement is kept, and all other records come again."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.kills.requests import send
from tests.broker.wire import RawClient, milliseconds

SHARED = "shared"
_GROUP = "sharing"
_GROUP_KIND, _SET, _ACCEPT = 32, 0, 1
_CLOSES = -1
#: Records of a batch. Their acknowledgements are sent before the first of them is answered.
_RECORDS = 10


class SharedTopic:
    """The records of a topic of one partition that a share group reads, over all lives of a broker."""

    def __init__(self) -> None:
        self._is_created = False
        self._members = itertools.count(1)
        #: The offsets whose Produce was acknowledged, and those whose acceptance was sent or answered.
        self.produced: set[int] = set()
        self.tried: set[int] = set()
        self.accepted: set[int] = set()
        #: Of the group.
        self.epoch = 0

    def create(self, client: RawClient) -> None:
        """Let the group begin with the first record, if that was not acknowledged before."""
        if self._is_created:
            return
        option = {"name": "share.auto.offset.reset", "value": "earliest", "config_operation": _SET}
        named = {"resource_type": _GROUP_KIND, "resource_name": _GROUP, "configs": (option,)}
        (altered,) = client.ask(wire.INCREMENTAL_ALTER_CONFIGS, 1, resources=(named,)).responses
        assert altered.error_code == Error.NONE, altered
        first = {"partition_index": 0, "start_offset": 0}
        topic = {"topic_name": SHARED, "partitions": (first,)}
        altered = client.ask(wire.ALTER_SHARE_OFFSETS, 0, group_id=_GROUP, topics=(topic,))
        assert altered.error_code == Error.NONE
        self._is_created = True

    def work(self, client: RawClient) -> None:
        """A member joins, accepts the records of a batch, and leaves: both count the group epoch up."""
        member = f"member-{next(self._members)}"
        assert _beat(client, member, 0).error_code == Error.NONE
        (group,) = client.ask(wire.SHARE_GROUP_DESCRIBE, 1, group_ids=(_GROUP,)).groups
        assert group.group_epoch > self.epoch, (group.group_epoch, self.epoch)
        self.epoch = group.group_epoch
        answer = send(client, SHARED, 0, wire.batch([b"value"] * _RECORDS))
        assert answer.error_code == Error.NONE, answer
        self.produced.update(range(answer.base_offset, answer.base_offset + _RECORDS))
        self.accept_all(client)
        assert _beat(client, member, -1).error_code == Error.NONE

    def accept_all(self, client: RawClient) -> int:
        """Accept the records that come, none of which was accepted before, and tell their number."""
        session = _Session(client)
        offsets = session.fetch()
        again = self.accepted.intersection(offsets)
        assert not again, f"accepted records come again: {sorted(again)}"
        self.tried.update(offsets)
        sent = {offset: session.send_acceptance(offset) for offset in offsets}
        for offset, number in sent.items():
            session.check_acceptance(number)
            self.accepted.add(offset)
        session.close()
        return len(offsets)

    def check(self, client: RawClient) -> None:
        """Each record was accepted before, or comes again."""
        if not self._is_created:
            return
        while self.accept_all(client):
            pass
        lost = self.produced - self.accepted - self.tried
        assert not lost, f"records are lost: {sorted(lost)}"


class _Session:
    """A share session, from its first fetch until it is closed."""

    def __init__(self, client: RawClient) -> None:
        self._client = client
        (topic,) = client.ask(wire.METADATA, 12, topics=({"name": SHARED},)).topics
        self._topic_id: UUID = topic.topic_id
        self._epoch = 0

    def fetch(self) -> list[int]:
        """The offsets that come at once."""
        answer = self._client.ask(
            wire.SHARE_FETCH,
            2,
            **self._own(),
            max_wait=milliseconds(0),
            min_bytes=1,
            max_bytes=1_000_000,
            max_records=10 * _RECORDS,
            batch_size=1,
            topics=self._topics(wire.SHARE_FETCH, "Fetch"),
        )
        self._epoch += 1
        assert answer.error_code == Error.NONE, answer
        return [
            offset
            for topic in answer.responses
            for partition in topic.partitions
            for one in partition.acquired_records
            for offset in range(one.first_offset, one.last_offset + 1)
        ]

    def send_acceptance(self, offset: int) -> int:
        """The number of the request, whose answer is not waited for."""
        key = wire.SHARE_ACKNOWLEDGE
        number = self._epoch
        request = wire.request(key, 2, number, **self._own(), topics=self._topics(key, "Acknowledge", offset))
        self._client.send(wire.framed(request))
        self._epoch += 1
        return number

    def check_acceptance(self, number: int) -> None:
        answer = self._client.answer(wire.SHARE_ACKNOWLEDGE, 2, number)
        assert answer.error_code == Error.NONE, answer
        assert answer.responses[0].partitions[0].error_code == Error.NONE, answer

    def close(self) -> None:
        """Give the records back that were not accepted."""
        self._epoch = _CLOSES
        assert self._client.ask(wire.SHARE_ACKNOWLEDGE, 2, **self._own()).error_code == Error.NONE

    def _own(self) -> dict[str, Any]:
        return {"group_id": _GROUP, "member_id": "m", "share_session_epoch": self._epoch}

    def _topics(self, key: int, kind: str, *offsets: int) -> tuple[Any, ...]:
        batches = tuple(
            {"first_offset": offset, "last_offset": offset, "acknowledge_types": (_ACCEPT,)}
            for offset in offsets
        )
        partition = {"partition_index": 0, "acknowledgement_batches": batches}
        return ({"topic_id": self._topic_id, "partitions": (partition,)},)


def _beat(client: RawClient, member: str, epoch: int) -> Any:
    who: dict[str, Any] = {"group_id": _GROUP, "member_id": member, "member_epoch": epoch, "rack_id": None}
    topics = (SHARED,) if epoch == 0 else None
    return client.ask(wire.SHARE_GROUP_HEARTBEAT, 1, **who, subscribed_topic_names=topics)
