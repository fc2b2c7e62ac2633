"""The interface of a broker of a test, emulated or real."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Self, TypeVar

from groupstorm.clients.consumer.records import ConsumerRecord
from groupstorm.testing.arguments import number, text
from groupstorm.testing.faults import (
    ArmedFault,
    Delay,
    Disconnect,
    Effect,
    Fail,
    Fault,
    FaultControl,
    error_named,
)
from groupstorm.testing.groups import GroupUnderTest, LockedRecords
from groupstorm.testing.records import Content, Headers, Produced, Spread, batches, new_records
from groupstorm.testing.server_control import TimedEvent

_T = TypeVar("_T")


class EmulatorOnly(Exception):
    """Only the emulator does this."""


class BrokerUnderTest(ABC):
    """One broker, or several, for the length of a ``with`` or an ``async with``.

    The broker runs beside the test, on a thread or in a process of its own. Its methods do not wait for
    clients, so that sync and async tests call them alike. Waiting has two forms, ``await group.stable()`` and
    ``group.wait_stable()``. Every argument is checked: `groupstorm.problems.InputError`.
    """

    #: For messages.
    name: str

    def __init__(self) -> None:
        self._spread = Spread()

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """HOST:PORT, or several with commas between them, for clients."""

    @property
    def control_url(self) -> str | None:
        """The URL of the control interface for other processes (docs/testing.md); None if there is none."""
        return None

    def topic(self, name: str) -> str:
        """The topic's name on this broker: on a shared cluster names have a prefix."""
        return name

    @abstractmethod
    def create_topic(self, name: str, partitions: int = 1) -> str:
        """Create a topic; return its name on this broker."""

    @abstractmethod
    def group(self, name: str) -> GroupUnderTest:
        """A group, to look at and to wait for; its ``id`` is its name on this broker."""

    def produce(
        self,
        topic: str,
        *values: Content,
        key: Content = None,
        partition: int | None = None,
        headers: Headers | None = None,
    ) -> tuple[Produced, ...]:
        """Append records to a topic that exists; return where they are. No fault meets them.

        Texts are sent as UTF-8, None as null. ``partition``: None: by the key, as Java's producer does, and
        without a key one after the other. Raises InputError, also if the broker refuses a record.
        """
        name = self.topic(topic)
        count = self._partitions(name)
        made = new_records(values, key, headers)
        if partition is not None:
            number("partition", partition, 0, count - 1)
        by_partition: dict[int, list[int]] = {}
        for index, record in enumerate(made):
            chosen = self._spread.partition(name, record.key, count) if partition is None else partition
            by_partition.setdefault(chosen, []).append(index)
        places: dict[int, Produced] = {}
        for chosen, indexes in by_partition.items():
            first = iter(indexes)
            for size, batch in batches([made[index] for index in indexes], time.time_ns() // 1_000_000):
                offset = self._append(name, chosen, batch)
                for add, index in enumerate(islice(first, size)):
                    places[index] = Produced(name, chosen, offset + add)
        return tuple(places[index] for index in range(len(made)))

    def records(
        self, topic: str, partition: int | None = None, *, committed_only: bool = False
    ) -> tuple[ConsumerRecord, ...]:
        """The records that a topic, or one partition of it, holds now, by partition and offset.

        ``committed_only``: without those of transactions that are open or aborted. Raises InputError.
        """
        name = self.topic(topic)
        count = self._partitions(name)
        if partition is not None:
            number("partition", partition, 0, count - 1)
        chosen = range(count) if partition is None else (partition,)
        return tuple(record for one in chosen for record in self._read(name, one, committed_only))

    @abstractmethod
    def _partitions(self, topic: str) -> int:
        """Return the number of the topic's partitions. Raises InputError if there is no such topic."""

    @abstractmethod
    def _append(self, topic: str, partition: int, batch: bytes) -> int:
        """Append a batch; return its first offset. Raises InputError."""

    @abstractmethod
    def _read(self, topic: str, partition: int, committed_only: bool) -> Sequence[ConsumerRecord]:
        """All records of a partition. Raises InputError."""

    @property
    def events(self) -> Sequence[TimedEvent]:
        """The events of the coordinator so far (`groupstorm.trace.events.coordinator`), each with the
        microseconds since the broker started. The emulator only."""
        raise self._emulator_only("events")

    @property
    def trace(self) -> Sequence[dict[str, Any]]:
        """The events as rows of a trace (docs/trace.md). The emulator only."""
        raise self._emulator_only("trace")

    def fail(
        self,
        api: str,
        error: str,
        *,
        count: int = 1,
        group: str | None = None,
        client_id: str | None = None,
    ) -> ArmedFault:
        """Answer the next ``count`` requests of an API with an error instead of carrying them out. API and
        error have Kafka's names. ``group``, ``client_id``: only requests of that group or client."""
        return self._arm(api, Fail(error_named(error)), count, group, client_id)

    def delay(
        self,
        api: str,
        delay_ms: int,
        *,
        count: int = 1,
        group: str | None = None,
        client_id: str | None = None,
    ) -> ArmedFault:
        """Serve the next ``count`` requests of an API ``delay_ms`` later."""
        return self._arm(api, Delay(delay_ms), count, group, client_id)

    def slow(
        self,
        delay_ms: int,
        api: str | None = None,
        *,
        group: str | None = None,
        client_id: str | None = None,
    ) -> ArmedFault:
        """Serve every request, or those of one API, ``delay_ms`` later, until the fault is cancelled or
        `clear_faults`. ``group``: requests that name this group. A request meets one fault at most, this one
        only if no other fits."""
        return self._arm(api, Delay(delay_ms), None, group, client_id)

    def disconnect(
        self, api: str, *, count: int = 1, group: str | None = None, client_id: str | None = None
    ) -> ArmedFault:
        """Close the connection at the next ``count`` requests of an API instead of carrying them out."""
        return self._arm(api, Disconnect(), count, group, client_id)

    def _arm(
        self, api: str | None, effect: Effect, count: int | None, group: str | None, client_id: str | None
    ) -> ArmedFault:
        chosen = self.group(group).id if group is not None and text("group", group) else None
        fault = Fault(api, effect, count, chosen, client_id)
        self._on_faults(lambda control: control.faults.add(fault))
        return ArmedFault(
            fault,
            waiting=lambda: self._on_faults(lambda control: control.wait_for_fault(fault)),
            cancel=lambda: self._on_faults(lambda control: control.faults.cancel(fault)),
        )

    def clear_faults(self) -> None:
        """Cancel the faults that still wait for requests."""
        self._on_faults(lambda control: control.faults.clear())

    def drop_connections(self, client_id: str | None = None) -> int:
        """Close the connections of a client, or all; return how many."""
        self._check_running()
        return self._on_faults(lambda control: control.drop_connections(client_id))

    def pause(self, broker: int | None = None) -> None:
        """The broker with that id, or all, accept connections, read nothing and answer nothing until
        `resume`. Time goes on: sessions may end meanwhile."""
        self._check_running()
        self._on_faults(lambda control: control.pause(broker))

    def resume(self, broker: int | None = None) -> None:
        """Paused brokers send the responses that they have held back, then read again."""
        self._check_running()
        self._on_faults(lambda control: control.resume(broker))

    @abstractmethod
    def _on_faults(self, act: Callable[[FaultControl], _T]) -> _T:
        """Act on the thread that carries faults out."""

    @abstractmethod
    def _check_running(self) -> None:
        """Raise InputError if the broker does not run."""

    def move_coordinator(self, group: str, broker: int | None = None) -> None:
        """Another broker takes the group over, the next one unless ``broker`` is the id of one; a single
        broker loads the group anew. Parked requests are answered NOT_COORDINATOR. The emulator only."""
        raise self._emulator_only("move_coordinator")

    def expire_member(self, group: str, member: str) -> None:
        """End the session of a member, named by member id, group.instance.id or client.id, as if its
        heartbeats had failed for long enough. The emulator only."""
        raise self._emulator_only("expire_member")

    def in_flight(self, group: str) -> Mapping[str, tuple[LockedRecords, ...]]:
        """The records of a share group that members have and have not acknowledged yet, by partition
        (orders-0). The emulator only."""
        raise self._emulator_only("in_flight")

    def _emulator_only(self, what: str) -> EmulatorOnly:
        return EmulatorOnly(
            f"{what}: {self.name} is a real broker: move_coordinator, expire_member, in_flight, events and"
            " trace are the emulator's: mark the test with @pytest.mark.groupstorm(emulated=True)"
        )

    @abstractmethod
    def start(self) -> None:
        """Start the broker; ``with`` calls it."""

    @abstractmethod
    def stop(self) -> None:
        """End the broker; ``with`` calls it."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_problem: object) -> None:
        await asyncio.to_thread(self.stop)
