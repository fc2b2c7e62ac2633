"""The requests of a script's steps, with their defaults filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.script.clients import InvalidStep
from groupstorm.coordinator.script.fields import LONG_MAX, Fields, whole_number
from groupstorm.share_records.acknowledgement import AcknowledgementBatch, is_valid
from groupstorm.share_records.messages import INITIAL_EPOCH, Acknowledgements, ShareAcknowledge, ShareFetch
from groupstorm.share_records.ports import StateBatch, TopicPartition
from groupstorm.share_records.script.clients import Client
from groupstorm.share_records.script.log import ScriptCluster
from groupstorm.share_records.states import RecordState

GROUP = "g"
_FIRST_WITH_RENEWAL = 2
_EPOCH = re.compile(r"\$([+-]\d+)?")


def read_fetch(step: Fields, label: str, client: Client, cluster: ScriptCluster) -> ShareFetch:
    """The request of a `fetch` step; the client remembers the partitions that it wants."""
    is_renewal = step.flag("renew")
    epoch = _read_epoch(step.value("epoch", "$"), client)
    acks = {one: batches for one, batches in _read_acks(step, client).items() if batches}
    forgotten = [partition_of(name) for name in step.listed("forget")]
    wanted = list(cluster.logs) if client.wanted is None else client.wanted
    named: list[TopicPartition] = []
    if "topics" in step:
        named = wanted = [partition_of(name) for name in step.listed("topics")]
    elif epoch == INITIAL_EPOCH:
        named = wanted
    if forgotten or "topics" in step:
        client.wanted = [one for one in wanted if one not in forgotten]
    max_records = step.int32("max_records", 0 if is_renewal else 500)
    mode = step.text("mode", "batch_optimized")
    if mode not in ("batch_optimized", "record_limit"):
        raise InvalidStep(f"mode: {mode!r} is neither batch_optimized nor record_limit")
    knows_renewal = _knows_renewal(step)
    return ShareFetch(
        step.text("group", GROUP),
        step.text("member", label),
        epoch,
        _grouped(named, acks),
        is_renewal and knows_renewal,
        malformed=_malformed(acks, knows_renewal, is_renewal and knows_renewal),
        forgotten=forgotten,
        max_wait_ms=step.int32("wait", 0 if is_renewal else 500),
        min_bytes=step.int32("min_bytes", 0 if is_renewal else 1),
        max_bytes=step.int32("max_bytes", 0 if is_renewal else 52_428_800),
        max_records=max_records,
        batch_size=step.int32("batch_size", max_records),
        has_record_limit=mode == "record_limit" and knows_renewal,
        connection=step.text("conn", label),
    )


def read_acknowledge(step: Fields, label: str, client: Client, _cluster: ScriptCluster) -> ShareAcknowledge:
    """The request of an `ack` step."""
    acks, knows_renewal = _read_acks(step, client), _knows_renewal(step)
    is_renewal = step.flag("renew") and knows_renewal
    return ShareAcknowledge(
        step.text("group", GROUP),
        step.text("member", label),
        _read_epoch(step.value("epoch", "$"), client),
        _grouped((), acks),
        is_renewal,
        malformed=_malformed(acks, knows_renewal, is_renewal),
    )


def _knows_renewal(step: Fields) -> bool:
    """Whether the request is of the version that has renewal and acquire modes."""
    return step.version(2, 1, 2) >= _FIRST_WITH_RENEWAL


def _malformed(acks: Acknowledgements, knows_renewal: bool, is_renewal: bool) -> list[TopicPartition]:
    return [
        one
        for one, batches in acks.items()
        if not all(
            is_valid(batch, before, knows_renewal=knows_renewal, is_renewal=is_renewal)
            for batch, before in zip(batches, (-1, *(batch.last_offset for batch in batches)), strict=False)
        )
    ]


def _read_acks(step: Fields, client: Client) -> dict[TopicPartition, list[AcknowledgementBatch]]:
    table = {partition_of(name): entries for name, entries in step.table("acks").items()}
    return {one: client.acknowledgements(one, entries) for one, entries in table.items()}


def partition_of(name: Any) -> TopicPartition:
    """`foo-0` as a partition. Raises InvalidStep."""
    topic, dash, number = name.rpartition("-") if isinstance(name, str) else ("", "", "")
    if not dash or not number.isdecimal():
        raise InvalidStep(f"{name!r} is no partition")
    return TopicPartition(topic, whole_number("partition", int(number), 2**31 - 1))


def name_of(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _grouped(partitions: Iterable[TopicPartition], acks: Acknowledgements) -> Acknowledgements:
    """The partitions of a request: by topic, in the order in which they are first mentioned."""
    by_topic: dict[str, dict[TopicPartition, Sequence[AcknowledgementBatch]]] = {}
    for one in (*partitions, *acks):
        by_topic.setdefault(one.topic, {})[one] = acks.get(one, ())
    return {one: batches for own in by_topic.values() for one, batches in own.items()}


def _read_epoch(value: Any, client: Client) -> int:
    found = _EPOCH.fullmatch(value) if isinstance(value, str) else None
    if found:
        value = client.epoch + int(found[1] or 0)
    return whole_number("epoch", value, 2**31 - 1)


def read_error(step: Fields) -> Error | None:
    name = step.optional_text("error")
    if name is not None and name not in Error.__members__:
        raise InvalidStep(f"error: {name!r} is no error of Kafka")
    return None if name is None else Error[name]


def read_batch(value: Any) -> StateBatch:
    if not isinstance(value, list) or len(value) != 4 or str(value[2]) not in RecordState.__members__:
        raise InvalidStep(f"batches: {value!r} is no [first, last, state, count]")
    first, last, count = (whole_number("batches", value[index], LONG_MAX) for index in (0, 1, 3))
    return StateBatch(first, last, RecordState[str(value[2])], count)
