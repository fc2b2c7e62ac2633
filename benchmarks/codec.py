"""Our codec beside its peers: kio's own serialisation and kafka-python's, in one run.

    python -m benchmarks.codec [--repeat 7] [--markdown]

CPU microseconds per message, the least of ``--repeat`` runs. kio's reader is native code and trusts
what it reads; kafka-python's classes are made from the same schemas when they are first used.
"""

from __future__ import annotations

import argparse
import gc
import io
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kio.serial import entity_reader, entity_writer

from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import decoder, encoder, request_type, response_types
from groupstorm.protocol.codec.shape import MILLISECOND, shapes_of


class Row(NamedTuple):
    what: str
    ours_us: float
    kio_us: float
    kafka_python_us: float | None


def messages() -> Iterator[tuple[str, Any]]:
    """Named messages, small and large."""
    yield (
        "Heartbeat request",
        _make(request_type(12, 4), group_id="group", generation_id=7, member_id="m" * 50),
    )
    yield "JoinGroup request, 2 protocols of 2 KB", _join_request()
    yield "JoinGroup response, 1,000 members of 2 KB", _join_response(1000)
    yield "Metadata response, 100 topics of 100 partitions", _metadata_response(100, 100)
    yield "Fetch request, 10 topics of 100 partitions", _fetch_request(10, 100)
    yield "OffsetCommit request, 10 topics of 100 partitions", _commit_request(10, 100)


def _make(kind: Any, **values: Any) -> Any:
    return kind(
        **{
            shape.name: values.get(shape.name, () if shape.array else shape.default)
            for shape in shapes_of(kind)
        }
    )


def _join_request() -> Any:
    kind = request_type(11, 9)
    protocol = _structure(kind, "protocols")
    return _make(
        kind,
        group_id="group",
        session_timeout=45_000 * MILLISECOND,
        rebalance_timeout=300_000 * MILLISECOND,
        member_id="m" * 50,
        protocol_type="consumer",
        protocols=tuple(
            protocol(name=name, metadata=b"x" * 2048) for name in ("range", "cooperative-sticky")
        ),
    )


def _join_response(members: int) -> Any:
    types = response_types(11, 9)
    return types.response(
        error_code=Error.NONE,
        generation_id=7,
        protocol_type="consumer",
        protocol_name="range",
        leader="member-0",
        member_id="member-0",
        members=tuple(
            types.make(
                "JoinGroupResponseMember",
                member_id=f"member-{number}-{uuid.UUID(int=number)}",
                group_instance_id=None,
                metadata=b"x" * 2048,
            )
            for number in range(members)
        ),
    )


def _metadata_response(topics: int, partitions: int) -> Any:
    types = response_types(3, 12)
    return types.response(
        brokers=(),
        cluster_id="cluster",
        controller_id=1,
        topics=tuple(
            types.make(
                "MetadataResponseTopic",
                error_code=Error.NONE,
                name=f"topic-{topic}",
                topic_id=uuid.UUID(int=topic + 1),
                is_internal=False,
                topic_authorized_operations=0,
                partitions=tuple(
                    types.make(
                        "MetadataResponsePartition",
                        error_code=Error.NONE,
                        partition_index=partition,
                        leader_id=1,
                        leader_epoch=0,
                        replica_nodes=(1, 2, 3),
                        isr_nodes=(1, 2, 3),
                        offline_replicas=(),
                    )
                    for partition in range(partitions)
                ),
            )
            for topic in range(topics)
        ),
    )


def _fetch_request(topics: int, partitions: int) -> Any:
    kind = request_type(1, 12)
    topic_kind = _structure(kind, "topics")
    partition_kind = _structure(topic_kind, "partitions")
    asked = tuple(
        _make(partition_kind, partition=number, fetch_offset=number * 1000, partition_max_bytes=1_048_576)
        for number in range(partitions)
    )
    return _make(
        kind,
        max_wait=500 * MILLISECOND,
        min_bytes=1,
        topics=tuple(topic_kind(topic=f"topic-{number}", partitions=asked) for number in range(topics)),
    )


def _commit_request(topics: int, partitions: int) -> Any:
    kind = request_type(8, 9)
    topic_kind = _structure(kind, "topics")
    partition_kind = _structure(topic_kind, "partitions")
    committed = tuple(
        partition_kind(partition_index=number, committed_offset=number * 1000, committed_metadata="")
        for number in range(partitions)
    )
    return _make(
        kind,
        group_id="group",
        generation_id_or_member_epoch=7,
        member_id="m" * 50,
        topics=tuple(topic_kind(name=f"topic-{number}", partitions=committed) for number in range(topics)),
    )


def _structure(kind: Any, field: str) -> Any:
    return next(shape.entity for shape in shapes_of(kind) if shape.name == field)


def _kafka_python(kind: Any) -> Any:
    """kafka-python's class of the same message, or None where it is not installed."""
    try:
        from kafka.protocol import consumer, metadata
    except ImportError:
        return None
    for module in (consumer, metadata):
        if hasattr(module, kind.__name__):
            return getattr(module, kind.__name__)[kind.__version__]
    return None


def least_us(work: Callable[[], object], repeat: int) -> float:
    """CPU microseconds of one call, the least of so many measurements of about 20 ms each."""
    work()
    started_ns = time.process_time_ns()
    work()
    once_ns = max(1, time.process_time_ns() - started_ns)
    calls = max(1, 20_000_000 // once_ns)
    gc.disable()
    best = float("inf")
    for _ in range(repeat):
        started_ns = time.process_time_ns()
        for _ in range(calls):
            work()
        best = min(best, (time.process_time_ns() - started_ns) / calls / 1000)
    gc.enable()
    return best


def measure(what: str, message: Any, repeat: int) -> Iterator[Row]:
    """One row for writing and one for reading the message. Raises ValueError if the codecs disagree."""
    kind = message.__class__
    encode, decode = encoder(kind), decoder(kind)
    write_kio, read_kio = entity_writer(kind), entity_reader(kind)
    theirs = _kafka_python(kind)
    data = b"".join(encode(message))
    parsed = None if theirs is None else theirs.decode(data)

    def kio_write() -> bytes:
        buffer = io.BytesIO()
        write_kio(buffer, decoded)
        return buffer.getvalue()

    decoded, _ = decode(data, 0)
    if kio_write() != data or (parsed is not None and parsed.encode() != data):
        raise ValueError(f"{what}: the codecs write different bytes")
    yield Row(
        f"write {what}",
        least_us(lambda: b"".join(encode(decoded)), repeat),
        least_us(kio_write, repeat),
        None if parsed is None else least_us(parsed.encode, repeat),
    )
    yield Row(
        f"read {what}",
        least_us(lambda: decode(data, 0), repeat),
        least_us(lambda: read_kio(data, 0), repeat),
        None if theirs is None else least_us(lambda: theirs.decode(data), repeat),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--markdown", action="store_true", help="a table for a document")
    options = parser.parse_args()
    left, middle, right = ("| ", " | ", " |") if options.markdown else ("", "  ", "")
    head = ("CPU microseconds", "groupstorm", "kio", "kafka-python")
    print(left + middle.join((f"{head[0]:56}", *(f"{name:>12}" for name in head[1:]))) + right)
    if options.markdown:
        print("|---|---:|---:|---:|")
    for what, message in messages():
        for row in measure(what, message, options.repeat):
            cells = (f"{value:12,.1f}" if value is not None else f"{'-':>12}" for value in row[1:])
            print(left + middle.join((f"{row.what:56}", *cells)) + right, flush=True)


if __name__ == "__main__":
    main()
