"""A script's clients: their memory (session epochs, wanted partitions, the records that they hold), and the
requests of their steps, with defaults filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.script.clients import PENDING, InvalidStep
from groupstorm.coordinator.script.fields import LONG_MAX, Fields, whole_number
from groupstorm.problems import not_one_of
from groupstorm.share_records.acknowledgement import AcknowledgementBatch, is_valid
from groupstorm.share_records.acquisition import Range, rest_of
from groupstorm.share_records.messages import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Acknowledgements,
    Request,
    Response,
    ShareAcknowledge,
    ShareFetch,
    ShareFetchResponse,
)
from groupstorm.share_records.ports import StateBatch, TopicPartition
from groupstorm.share_records.script.log import ScriptCluster
from groupstorm.share_records.sessions import next_epoch
from groupstorm.share_records.states import AcknowledgeType, RecordState

Ranges = list[Range]
_FORGETS_EPOCH = (
    Error.SHARE_SESSION_NOT_FOUND,
    Error.INVALID_SHARE_SESSION_EPOCH,
    Error.SHARE_SESSION_LIMIT_REACHED,
)


def kind_of(request: Request) -> str:
    return "fetch" if isinstance(request, ShareFetch) else "ack"


class Client:
    """The state that a script keeps for one client label."""

    def __init__(self) -> None:
        self.epoch = INITIAL_EPOCH
        #: None: all partitions.
        self.wanted: list[TopicPartition] | None = None
        #: The kind and the error of the last answer; "" if it has asked nothing yet.
        self.last = ""
        self._held: dict[TopicPartition, Ranges] = {}

    def matches(self, words: Any) -> bool:
        """Whether the last answer, whole or its error alone, is one of these."""
        listed = words if isinstance(words, list) else [words]
        return self.last in listed or (bool(self.last) and self.last.partition(":")[2] in listed)

    def disconnected(self) -> None:
        self.epoch = INITIAL_EPOCH
        self._held.clear()

    def sent(self, request: Request) -> None:
        """A request is under way: the records that it names are no longer held, renewed ones excepted."""
        self.last = f"{kind_of(request)}:{PENDING}"
        for one, batches in request.partitions.items():
            named = [range_ for batch in batches for range_ in _given_up(batch)]
            if named and one in self._held:
                self._held[one] = _without(self._held[one], named)

    def answered(self, request: Request, response: Response) -> None:
        self.last = f"{kind_of(request)}:{response.error.name}"
        if response.error in _FORGETS_EPOCH:
            self.epoch = INITIAL_EPOCH
        if response.error is not Error.NONE:
            return
        self.epoch = INITIAL_EPOCH if request.epoch == FINAL_EPOCH else next_epoch(request.epoch)
        if isinstance(response, ShareFetchResponse):
            for one, found in response.partitions.items():
                new = [(first, last) for first, last, _ in found.acquired]
                if new:
                    self._held[one] = _without(self._held.get(one, []), new) + new
        if request.epoch == FINAL_EPOCH:
            self._held.clear()

    def acknowledgements(self, one: TopicPartition, entries: Any) -> list[AcknowledgementBatch]:
        """The ranges that a step's entries name. Raises InvalidStep."""
        is_single = not isinstance(entries, list) or (entries and isinstance(entries[0], int))
        held = self._held.get(one, [])
        return [
            batch for entry in ([entries] if is_single else entries) for batch in _read_entry(entry, held)
        ]


def _read_entry(entry: Any, held: Ranges) -> Iterable[AcknowledgementBatch]:
    if isinstance(entry, str):
        entry = {"held": "all", "type": entry}
    if isinstance(entry, list) and len(entry) == 3:
        first, last = (whole_number("acks", value, LONG_MAX) for value in entry[:2])
        types = entry[2] if isinstance(entry[2], list) else [entry[2]]
        return [AcknowledgementBatch(first, last, [_read_type(one) for one in types])]
    if not isinstance(entry, Mapping):
        raise InvalidStep(f"acks: {entry!r} names no records")
    which = entry.get("held", "all")
    ranges = sorted(held)
    if which != "all":
        index = whole_number("held", which, LONG_MAX)
        ranges = [held[index % len(held)]] if held else []
        skip = max(0, whole_number("skip", entry.get("skip", 0), LONG_MAX))
        count = whole_number("count", entry.get("count", LONG_MAX), LONG_MAX)
        # both are cut to the range
        ranges = [
            (start, min(last, start + count - 1))
            for first, last in ranges
            for start in (min(first + skip, last),)
        ]
    kinds = [_read_type(one) for one in Fields(entry).listed("cycle")]
    kind = None if kinds else _read_type(entry.get("type"))
    return [
        AcknowledgementBatch(
            first, last, list(islice(cycle(kinds), last - first + 1)) if kind is None else [kind]
        )
        for first, last in ranges
        if first <= last
    ]


def _read_type(value: Any) -> int:
    if not isinstance(value, str):
        return whole_number("type", value, 127)
    types = {name.lower(): kind for name, kind in AcknowledgeType.__members__.items()}
    if value.lower() not in types:
        raise InvalidStep(f"type: {not_one_of(value, types)}")
    return types[value.lower()]


def _given_up(batch: AcknowledgementBatch) -> Ranges:
    """The ranges of a batch that are not renewed."""
    first, last, types = batch
    if len(types) != last - first + 1:
        return [] if list(types) == [AcknowledgeType.RENEW] else [(first, last)]
    return [
        (offset, offset)
        for offset, kind in zip(range(first, last + 1), types, strict=True)
        if kind != AcknowledgeType.RENEW
    ]


def _without(held: Ranges, named: Ranges) -> Ranges:
    """The ranges without the records named, each in its place."""
    gone: Ranges = []
    for first, last in sorted(named):
        if gone and first <= gone[-1][1] + 1:
            gone[-1] = gone[-1][0], max(gone[-1][1], last)
        elif first <= last:
            gone.append((first, last))
    return [part for one in held for part in rest_of(*one, gone)]


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
