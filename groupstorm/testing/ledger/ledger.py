"""`Ledger`: numbered records in, and what the service has processed and committed out."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from groupstorm.clients.consumer.records import ConsumerRecord
from groupstorm.problems import InputError
from groupstorm.testing.arguments import flag, number, optional_number, seconds, text
from groupstorm.testing.broker import BrokerUnderTest
from groupstorm.testing.groups import SHARE
from groupstorm.testing.ledger.history import (
    Assigned,
    History,
    Incident,
    Input,
    Moment,
    Processing,
    Started,
    exactly,
)
from groupstorm.testing.ledger.judging import Rules
from groupstorm.testing.ledger.report import Report, report
from groupstorm.testing.ledger.sources import now_us, source_of
from groupstorm.testing.records import Content, Headers, Produced

#: heartbeat.interval.ms, the default of Kafka's clients: a member learns of its removal that late.
NOTICE_S = 3.0


class LedgerFailed(AssertionError):
    """The service has lost or spoilt records. The message has the shortest history of each kind of fault.

    ``report``: all findings.
    """

    def __init__(self, found: Report) -> None:
        super().__init__("\n".join(found.lines()))
        self.report = found


class Ledger:
    """Judges one group of one broker, for the length of a ``with`` or an ``async with``.

    ``exactly_once``: no record may be processed twice. ``ordered``: an instance processes the records of a
    partition in their order; False for a service that works on several of them at once. ``notice_s``: how
    long an instance may go on with a partition that another one has got: until its next heartbeat, or, if it
    works through a batch before it polls again, as long as a batch takes; None: it must not even finish the
    record that it has in hand. A share group is judged by rules of its own; ``deliveries``: how often it may
    give a record out (share.delivery.count.limit).
    """

    def __init__(
        self,
        broker: BrokerUnderTest,
        group: str,
        *,
        exactly_once: bool = False,
        ordered: bool = True,
        notice_s: float | None = NOTICE_S,
        deliveries: int | None = None,
    ) -> None:
        self._broker = broker
        self._group = broker.group(group)
        self._exactly_once = flag("exactly_once", exactly_once)
        self._ordered = flag("ordered", ordered)
        self._notice_us = None if notice_s is None else round(seconds("notice_s", notice_s) * 1_000_000)
        self._deliveries = optional_number("deliveries", deliveries)
        self._source = source_of(broker, self._group)
        self._start_us = now_us()
        self._wall_us = time.time_ns() // 1000 - self._start_us
        self._numbering = threading.Lock()
        self._inputs: dict[tuple[str, int], Input] = {}
        self._numbers: dict[int, Input] = {}
        self._processings: dict[object, Processing] = {}
        self._last_ended: dict[str, Moment] = {}
        self._assigned: list[Assigned] = []
        self._started: list[Started] = []
        self._incidents: list[Incident] = []

    # -- numbered records in ---------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        count: int = 1,
        *,
        partition: int | None = None,
        key: Content = None,
        value: Callable[[int], Content] = str,
        headers: Headers | None = None,
    ) -> tuple[Produced, ...]:
        """Append so many numbered records to a topic that exists; return where they are.

        ``value``: makes the value of a record from its number. The other arguments are those of
        `Broker.produce`. Raises InputError.
        """
        number("count", count, 1)
        with self._numbering:
            first = len(self._numbers)
            values = [value(one) for one in range(first, first + count)]
            before_us = now_us()
            places = self._broker.produce(topic, *values, key=key, partition=partition, headers=headers)
            self._add(places, Moment(before_us, now_us()))
        return places

    def expect(self, places: Iterable[Produced]) -> None:
        """Count records that the test has produced itself: they get the next numbers, in this order.

        Call it as soon as they are written. Raises InputError if one of them is counted already.
        """
        with self._numbering:
            self._add(tuple(places), exactly(now_us()))

    def _add(self, places: tuple[Produced, ...], at: Moment) -> None:
        for place in places:
            partition = f"{place.topic}-{place.partition}"
            if (partition, place.offset) in self._inputs:
                raise InputError(f"places: {partition}, offset {place.offset}: it is counted already")
            one = Input(at, partition, place.offset, len(self._numbers))
            self._inputs[partition, place.offset] = self._numbers[one.number] = one

    # -- what the service does -------------------------------------------------------------------

    @contextmanager
    def processing(self, record: Any, *, by: str = "service") -> Iterator[None]:
        """An instance processes a record within the block. If the block fails, it has not processed it.

        ``record``: the consumer's record of any client library, or the number of the record; ``by``: the
        instance, by its client.id. Raises InputError.
        """
        partition, offset = self._place(record)
        text("by", by)
        one = Processing(exactly(now_us()), None, partition, offset, by, is_complete=False)
        key = object()
        self._processings[key] = one
        try:
            yield
        except BaseException:  # a cancelled task, too, has not processed its record
            self._processings[key] = one._replace(ended=exactly(now_us()))
            raise
        self._processings[key] = one._replace(ended=exactly(now_us()), is_complete=True)

    def processed(self, record: Any, *, by: str = "service", at: Moment | None = None) -> None:
        """An instance has processed a record, now or within ``at``; when it began is not known. See
        `processing`. Raises InputError."""
        place = self._place(record)
        ended = exactly(now_us()) if at is None else at
        one = self._ended(place, ended, text("by", by), self._last_ended.get(by))
        self._last_ended[by] = ended
        self._processings[object()] = one

    def _ended(self, place: tuple[str, int], ended: Moment, by: str, previous: Moment | None) -> Processing:
        """A processing of which only the end is known. It began behind the ``previous`` one of the instance,
        if that does one thing at a time, and not before the record was there."""
        begun_us = self._inputs[place].at.earliest_us if place in self._inputs else self._start_us
        if previous is not None and self._ordered:
            begun_us = max(begun_us, previous.earliest_us)
        begun = Moment(min(begun_us, ended.earliest_us), ended.latest_us)
        return Processing(begun, ended, *place, by, is_complete=True)

    def assigned(self, partitions: Iterable[Any], *, by: str = "service") -> None:
        """An instance has got these partitions: call it in the listener of rebalances. The emulator tells the
        ledger itself; on a real broker this makes *two at once* exact. Raises InputError."""
        at = exactly(now_us())
        self._assigned += [Assigned(at, place_of(one)[0], text("by", by)) for one in partitions]

    def started(self, by: str) -> None:
        """An instance has started, for the first time or again."""
        self._started.append(Started(exactly(now_us()), text("by", by)))

    def incident(self, what: str, by: str = "") -> None:
        """Something was done to an instance, or to all: the histories of findings tell it."""
        self._incidents.append(Incident(exactly(now_us()), by, text("what", what)))

    def read_outputs(self, topic: str, *, number_of: NumberOf | None = None) -> None:
        """Count the records of an output topic as processed, those of committed transactions only.

        Each needs the number of its input, see docs/ledger.md; ``number_of``: finds it in a record instead.
        May be called again: each record counts once. Raises InputError for a record without a number.
        """
        previous: dict[str, Moment] = {}
        for record in sorted(self._broker.records(topic, committed_only=True), key=lambda one: one.timestamp):
            found = output_of(record, number_of)
            place = self._numbered(found.number, f"{record.topic}-{record.partition}, offset {record.offset}")
            ended = self.at_wall_ms(record.timestamp)
            one = self._ended(place[1:3], ended, found.by, previous.get(found.by) if found.by else None)
            previous[found.by] = ended
            self._processings[record.topic, record.partition, record.offset] = one

    def at_wall_ms(self, wall_ms: float) -> Moment:
        """The moment of a time in milliseconds since 1970, as records and other processes of this machine
        have it."""
        since_us = int(wall_ms * 1000) - self._wall_us
        return Moment(since_us, since_us + 999)

    def _place(self, record: Any) -> tuple[str, int]:
        if isinstance(record, int) and not isinstance(record, bool):
            found = self._numbered(record, "record")
            return found.partition, found.offset
        partition, offset = place_of(record)
        if offset is None:
            raise InputError(f"record: {record!r}: expected a record, with topic, partition and offset")
        return partition, offset

    def _numbered(self, which: int, where: str) -> Input:
        """The record of this number. A service may be faster than the answer that says where it is."""
        if which not in self._numbers:
            with self._numbering:
                if which not in self._numbers:
                    raise InputError(f"{where}: {which}: there is no record of that number")
        return self._numbers[which]

    @property
    def processings(self) -> int:
        """The number of processings that have been counted so far."""
        return len(self._processings)

    # -- the judge -------------------------------------------------------------------------------

    def report(self, *, over: bool = True) -> Report:
        """The findings so far. ``over``: whatever is not processed now will never be."""
        rules = Rules(
            self._exactly_once, self._ordered, self._notice_us, flag("over", over), self._deliveries
        )
        return report(self._history(), rules)

    def check(self, *, over: bool = True) -> Report:
        """`report`. Raises LedgerFailed if there is a fault; doubles that at-least-once allows are none.
        InputError: no record is counted, so none could be lost."""
        if not self._inputs:
            raise InputError("no record is counted: expected ledger.produce or ledger.expect before")
        found = self.report(over=over)
        if found.faults:
            raise LedgerFailed(found)
        return found

    def _history(self) -> History:
        history = History(
            self._start_us,
            [*self._inputs.values()],
            [*self._processings.values()],
            [],
            [*self._assigned],
            [*self._started],
            [*self._incidents],
        )
        self._source.fill(history)
        history.is_shared = self._group.type == SHARE
        if history.is_shared:
            history.finished = frozenset(one for one, left in self._group.lag().items() if left == 0)
        return history

    # -- the context -----------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._source.begin()
        return self

    def __exit__(self, *_problem: object) -> None:
        self._source.end()

    async def __aenter__(self) -> Self:
        if self._source.needs_thread:
            await asyncio.to_thread(self._source.begin)
        else:
            self._source.begin()
        return self

    async def __aexit__(self, *_problem: object) -> None:
        if self._source.needs_thread:
            await asyncio.to_thread(self._source.end)
        else:
            self._source.end()


def place_of(record: Any) -> tuple[str, int | None]:
    """The partition as Kafka prints it (orders-0), and the offset; None for a partition without one.

    aiokafka and kafka-python have attributes, confluent-kafka's messages have methods and its partitions
    attributes. Raises InputError.
    """
    topic = _value(record, "topic")  # a text has a method `partition`, too
    partition, offset = (None if topic is None else _value(record, name) for name in ("partition", "offset"))
    if not isinstance(topic, str) or not isinstance(partition, int):
        raise InputError(f"record: {record!r}: expected the number of a record, or a record of a consumer")
    return f"{topic}-{partition}", offset if isinstance(offset, int) else None


def _value(record: Any, name: str) -> Any:
    found = getattr(record, name, None)
    return found() if callable(found) else found


#: Finds the number of the input in an output record.
NumberOf = Callable[[ConsumerRecord], int]


class Output(NamedTuple):
    """``by``: "" if the record does not name the instance."""

    number: int
    by: str


def output_of(record: ConsumerRecord, number_of: NumberOf | None = None) -> Output:
    """The number of the record's input, and the instance that has written the record.

    The first that is there counts: the header `number`, a key that is a number, a value that is a number, the
    field `number` of a value that is a JSON object. The instance: the header `by`, or the field `by`. Raises
    InputError for a record without a number.
    """
    headers = {name: value for name, value in record.headers if value is not None}
    fields = _fields(record.value)
    by = headers["by"].decode(errors="replace") if "by" in headers else str(fields.get("by", ""))
    if number_of is not None:
        return Output(number_of(record), by)
    for found in (headers.get("number"), record.key, record.value):
        if found is not None and found.isdigit():
            return Output(int(found), by)
    number = fields.get("number")
    if isinstance(number, int) and not isinstance(number, bool):
        return Output(number, by)
    raise InputError(
        f"{record.topic}-{record.partition}, offset {record.offset}: {record.value!r}: expected the number of"
        " the input in the header `number`, as the key or the value, or as the field `number` of JSON"
    )


def _fields(value: bytes | None) -> Mapping[str, Any]:
    """The fields of a JSON object; none of anything else."""
    try:
        found = json.loads(value) if value else None
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}
