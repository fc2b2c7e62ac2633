"""The application around a client library: poll, work for each record, report; all libraries share it.

Runs in a thread of its own for each consumer. The library is behind `Client`; its rebalance callbacks call
`Application.assigned`, `revoked` and `lost` from whichever thread the library calls them. Reports of the
process are JSON lines with the time of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

_writing = threading.Lock()

#: The pipe to the parent. What a library prints goes to standard error instead.
_reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def report(event: str, member: str, **about: Any) -> None:
    """Write one event that happens now. ``t``: nanoseconds of CLOCK_MONOTONIC, the same in all processes."""
    line = json.dumps({"t": time.monotonic_ns(), "event": event, "member": member, **about})
    with _writing:
        _reports.write(line + "\n")
        _reports.flush()


#: The longest piece of work between two looks at the clock, and between two reports of progress.
_SLICE_S = 0.02
_PROGRESS_S = 0.25

#: The longest poll: a member that is stopped or busy is noticed after it at the latest.
_POLL_MAX_S = 0.5


class Record(NamedTuple):
    """One record: the partition's name in a trace, and its offset."""

    partition: str
    offset: int


class Client(Protocol):
    """A subscribed consumer of one library."""

    #: Whether callbacks come between two polls, while the application works.
    rebalances_in_background: bool

    def poll(self, timeout_s: float, most: int) -> Sequence[Record]:
        """Up to ``most`` records. Raises Fatal if the consumer has ended."""

    def close(self) -> None: ...


class Fatal(Exception):
    """The consumer has ended with an error: Kafka's name of it."""


class Durations:
    """A distribution, as 101 quantiles in microseconds; the draws are those of SplitMix64."""

    def __init__(self, quantiles_us: Sequence[int], seed: int) -> None:
        self._quantiles_us = quantiles_us
        self._state = seed

    def draw_s(self) -> float:
        self._state = (self._state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = self._state
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        at = (mixed ^ (mixed >> 31)) * 100
        index, part = at >> 64, (at & 0xFFFFFFFFFFFFFFFF) / 2**64
        low, high = self._quantiles_us[index], self._quantiles_us[index + 1]
        return (low + (high - low) * part) / 1e6


class Order(NamedTuple):
    """The order of the parent: one consumer (`storms.live.real_clients.libraries`)."""

    member: str
    topics: Sequence[str]
    config: Mapping[str, Any]
    max_poll_records: int
    durations: Mapping[str, Sequence[int]]
    seed: int

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Order:
        return cls(**{name: written[name] for name in cls._fields})


class Application:
    """One consumer and its work; `run` lives until `stop` or an error."""

    def __init__(self, order: Order, connect: Callable[[Order, Application], Client]) -> None:
        self._order = order
        self._connect = connect
        self._stopping = threading.Event()
        self._busy_s = 0.0
        #: Partition -> the position that the application has worked up to, since it was assigned.
        self._positions: dict[str, int] = {}
        #: The offset of the first record that was handed out, until it is reported.
        self._first: dict[str, int] = {}
        #: The positions behind the batch in hand.
        self._in_hand: dict[str, int] = {}
        self._had: set[str] = set()
        self._owned: set[str] = set()
        self._reported_s = 0.0
        self._unreported: set[str] = set()
        self._durations = {
            name: Durations(quantiles_us, order.seed + number)
            for number, (name, quantiles_us) in enumerate(sorted(order.durations.items()))
        }
        self._client: Client | None = None

    # -- commands, from the thread that reads standard input -------------------------------------

    def stop(self) -> None:
        """Finish the batch in hand, then close the consumer."""
        self._stopping.set()

    def be_busy(self, for_s: float) -> None:
        """Work that long on the next batch."""
        self._busy_s = for_s

    # -- the loop --------------------------------------------------------------------------------

    def run(self) -> None:
        name = self._order.member
        try:
            report("started", name)  # before it subscribes: some libraries join at once
            self._client = client = self._connect(self._order, self)
            while not self._stopping.is_set():
                self._round(client)
            self._progress(at_once=True)
            client.close()
        except Fatal as failure:
            report("failed", name, error=str(failure))
        else:
            report("closed", name)

    def _round(self, client: Client) -> None:
        polled_s = time.monotonic()
        interval_s = self._draw_s("poll_interval")
        records = client.poll(min(interval_s, _POLL_MAX_S), self._order.max_poll_records)
        self._work(records)
        if self._busy_s:
            self._one_long_batch()
        if len(records) < self._order.max_poll_records:
            self._stopping.wait(max(0.0, polled_s + interval_s - time.monotonic()))
        self._progress()

    def _work(self, records: Sequence[Record]) -> None:
        """Process the records one after the other; sleep in slices rather than for each record."""
        self._in_hand = {record.partition: record.offset + 1 for record in records}
        for record in reversed(records):
            if record.partition not in self._positions:
                self._first[record.partition] = record.offset
        done_s = time.monotonic()
        for record in records:
            done_s += self._draw_s("process")
            ahead_s = done_s - time.monotonic()
            if ahead_s > _SLICE_S:
                self._progress()
                time.sleep(ahead_s)
            self._positions[record.partition] = record.offset + 1
            self._unreported.add(record.partition)
        time.sleep(max(0.0, done_s - time.monotonic()))
        self._in_hand = {}

    def _one_long_batch(self) -> None:
        busy_s, self._busy_s = self._busy_s, 0.0
        self._progress(at_once=True)
        report("busy", self._order.member)
        time.sleep(busy_s)
        report("resumed", self._order.member)

    def _progress(self, at_once: bool = False) -> None:
        now_s = time.monotonic()
        if self._unreported and (at_once or now_s - self._reported_s >= _PROGRESS_S):
            self._reported_s = now_s
            changed, self._unreported = self._unreported, set()
            first, self._first = self._first, {}
            report("progress", self._order.member, positions=self._of(changed), first=first)

    # -- rebalance callbacks: each returns how long the application works in it --------------------

    def assigned(self, partitions: Sequence[str]) -> float:
        """The library assigns these; `assigned_done` is to be called when the callback's work is done."""
        new = [one for one in partitions if one not in self._had]
        seconds = self._draw_s("assign_callback") if partitions else 0.0
        return seconds + sum(self._draw_s("restore") for _ in new)

    def assigned_done(self, partitions: Sequence[str], seconds: float) -> None:
        self._owned.update(partitions)
        self._had = set(self._owned)
        for one in partitions:
            self._positions.pop(one, None)
        report("assigned", self._order.member, partitions=list(partitions), duration_us=int(seconds * 1e6))

    def revoked(self, partitions: Sequence[str], lost: bool = False) -> float:
        """The library takes these away. The batch in hand counts as processed if the work goes on beside."""
        seconds = self._draw_s("revoke_callback") if partitions else 0.0
        if self._client is not None and self._client.rebalances_in_background:
            self._positions.update(self._in_hand)
        report(
            "lost" if lost else "revoked",
            self._order.member,
            partitions=list(partitions),
            positions=self._of(partitions),
            first={one: self._first.pop(one) for one in partitions if one in self._first},
            duration_us=int(seconds * 1e6),
            closing=self._stopping.is_set(),
        )
        self._owned.difference_update(partitions)
        self._unreported.difference_update(partitions)
        return seconds

    # -- parts -----------------------------------------------------------------------------------

    def _of(self, partitions: Sequence[str] | set[str]) -> dict[str, int]:
        """The positions, as far as a record of the partition was processed."""
        return {one: self._positions[one] for one in sorted(partitions) if one in self._positions}

    def _draw_s(self, name: str) -> float:
        return self._durations[name].draw_s()


def on_assigned(application: Application, partitions: Sequence[str]) -> None:
    """The whole callback of a library that calls it in the thread that polls."""
    seconds = application.assigned(partitions)
    time.sleep(seconds)
    application.assigned_done(partitions, seconds)


def on_revoked(application: Application, partitions: Sequence[str], lost: bool = False) -> None:
    """The whole callback of a library that calls it in the thread that polls."""
    time.sleep(application.revoked(partitions, lost))


def names_of(partitions: Iterable[Any]) -> list[str]:
    """The names in a trace of a library's partitions."""
    return [f"{one.topic}-{one.partition}" for one in partitions]


def records_of(batches: Mapping[Any, Iterable[Any]]) -> list[Record]:
    """The records of a poll, which the pure Python libraries give by partition."""
    return [
        Record(f"{record.topic}-{record.partition}", record.offset)
        for batch in batches.values()
        for record in batch
    ]
