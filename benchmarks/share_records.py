"""The broker's cost of a share group's records, acknowledged with the next fetch, beside a consumer's.

    python -m benchmarks.share_records [--records 50000] [--rounds 5]

One broker without sockets, one partition, 500 records a fetch, both kinds in turn. CPU microseconds per
record, the least of all rounds, and how many times a share group's record costs an ordinary one.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.broker import Broker
from groupstorm.broker.requests import Peer
from groupstorm.protocol.endpoints import Endpoint
from tests.broker import wire

_PEER = Peer("/127.0.0.1", Endpoint("127.0.0.1", 9092))
_AT_ONCE = 500
_NOW_MS = 1_700_000_000_000
_SIZES = (1, 10, 100)


class _Client:
    """One connection to a broker; the CPU time of its requests is counted."""

    def __init__(self, records_in_batch: int, records: int) -> None:
        self.broker: Broker = make_broker({}, {"t": 1}, now_ms=_NOW_MS)
        data = wire.batch([b"x" * 100] * records_in_batch)
        for _ in range(records // records_in_batch):
            self.broker.append("t", 0, data, _NOW_MS)
        self.batch_bytes = len(data)
        self.cpu_s = 0.0

    def ask(self, key: int, version: int, **fields: Any) -> Any:
        frame = wire.request(key, version, 1, **fields)
        begun_s = time.process_time()
        effects = self.broker.receive(1, _PEER, frame, _NOW_MS)
        while not effects.outputs:
            effects = self.broker.fire(_NOW_MS)
        self.cpu_s += time.process_time() - begun_s
        payload = effects.outputs[0].payload
        assert payload is not None
        return wire.parse_response(key, version, payload[4:])[1]


def _ordinary_us(records_in_batch: int, records: int) -> float:
    client = _Client(records_in_batch, records)
    most = client.batch_bytes * _AT_ONCE // records_in_batch
    offset = 0
    while offset < records:
        partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": most}
        topic = {"topic": "t", "partitions": (partition,)}
        answer = client.ask(
            wire.FETCH,
            12,
            max_wait=wire.milliseconds(0),
            min_bytes=1,
            topics=(topic,),
            forgotten_topics_data=(),
        )
        got = len(answer.responses[0].partitions[0].records)
        offset += got // client.batch_bytes * records_in_batch
    return client.cpu_s / records * 1e6


def _shared_us(records_in_batch: int, records: int) -> float:
    client = _Client(records_in_batch, records)
    state = client.broker.state
    state.configure_group("g", {"share.auto.offset.reset": "earliest"})
    topic = state.topics.get("t")
    assert topic is not None
    key = wire.ALTER_SHARE_OFFSETS
    altered = {"topic_name": "t", "partitions": ({"partition_index": 0, "start_offset": 0},)}
    client.ask(key, 0, group_id="g", topics=(altered,))
    client.cpu_s = 0.0
    count, epoch = 0, 0
    ranges: list[Any] = []
    while count < records:
        acknowledged = [
            {"first_offset": one.first_offset, "last_offset": one.last_offset, "acknowledge_types": (1,)}
            for one in ranges
        ]
        asked = {"partition_index": 0, "acknowledgement_batches": acknowledged}
        answer = client.ask(
            wire.SHARE_FETCH,
            2,
            group_id="g",
            member_id="m",
            share_session_epoch=epoch,
            max_wait=wire.milliseconds(100),
            min_bytes=1,
            max_records=_AT_ONCE,
            batch_size=_AT_ONCE,
            topics=({"topic_id": topic.topic_id, "partitions": (asked,)},),
            forgotten_topics_data=(),
        )
        epoch += 1
        ranges = list(answer.responses[0].partitions[0].acquired_records)
        count += sum(one.last_offset - one.first_offset + 1 for one in ranges)
    return client.cpu_s / records * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="What records cost the broker, shared or not.")
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for size in _SIZES:
        rounds = [
            (_ordinary_us(size, options.records), _shared_us(size, options.records))
            for _ in range(options.rounds)
        ]
        ordinary, shared = (min(one) for one in zip(*rounds, strict=True))
        print(
            f"{size:3} records a batch: ordinary {ordinary:6.3f} us, shared {shared:6.3f} us a record, "
            f"{shared / ordinary:4.1f} times"
        )


if __name__ == "__main__":
    main()
