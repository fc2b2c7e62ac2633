"""The memory of a script's clients: session epochs, wanted partitions, the records that they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle, islice
from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.script.clients import PENDING, InvalidStep
from groupstorm.coordinator.script.fields import LONG_MAX, Fields, whole_number
from groupstorm.share_records.acknowledgement import AcknowledgementBatch
from groupstorm.share_records.acquisition import Range, rest_of
from groupstorm.share_records.messages import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Request,
    Response,
    ShareFetch,
    ShareFetchResponse,
)
from groupstorm.share_records.ports import TopicPartition
from groupstorm.share_records.sessions import next_epoch
from groupstorm.share_records.states import AcknowledgeType

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
    if isinstance(value, str) and value.upper() in AcknowledgeType.__members__:
        return AcknowledgeType[value.upper()]
    return whole_number("type", value, 127)


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
