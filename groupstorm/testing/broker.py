"""The interface of a broker of a test, emulated or real."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from groupstorm.testing.groups import GroupUnderTest
from groupstorm.testing.server_control import TimedEvent
from groupstorm.testing.waiting import DEFAULT_TIMEOUT_S


class ArmedFault(ABC):
    """A fault that waits for requests."""

    @property
    @abstractmethod
    def hits(self) -> int:
        """How many requests the fault has taken."""

    @abstractmethod
    async def used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until the fault has taken all its requests. Raises FaultTimeout."""

    @abstractmethod
    def wait_used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """`used_up` for tests that are not async."""


class FaultTimeout(AssertionError):
    """The requests for which a fault waits did not come in time."""


class EmulatorOnly(Exception):
    """Only the emulator does this; the message says what a real broker does instead."""


class BrokerUnderTest(ABC):
    """One broker, or several, for the length of a ``with`` or an ``async with``.

    The broker runs beside the test, on a thread or in a process of its own. Its methods do not wait for
    clients, so that sync and async tests call them alike. Waiting has two forms, ``await group.stable()`` and
    ``group.wait_stable()``. Every argument is checked: `groupstorm.problems.InputError`.
    """

    #: For messages.
    name: str

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

    @property
    def events(self) -> Sequence[TimedEvent]:
        """The events of the coordinator so far (`groupstorm.trace.events.coordinator`), each with the
        microseconds since the broker started. The emulator only."""
        raise self._emulator_only("events")

    @property
    def trace(self) -> Sequence[dict[str, Any]]:
        """The same as rows of a trace (docs/trace.md). The emulator only."""
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
        error have Kafka's names. ``group``, ``client_id``: only requests of that group or client. The
        emulator only."""
        raise self._emulator_only("fail")

    def delay(
        self,
        api: str,
        delay_ms: int,
        *,
        count: int = 1,
        group: str | None = None,
        client_id: str | None = None,
    ) -> ArmedFault:
        """Serve the next ``count`` requests of an API ``delay_ms`` later. The emulator only."""
        raise self._emulator_only("delay")

    def disconnect(
        self, api: str, *, count: int = 1, group: str | None = None, client_id: str | None = None
    ) -> ArmedFault:
        """Close the connection at the next ``count`` requests of an API instead of carrying them out. The
        emulator only."""
        raise self._emulator_only("disconnect")

    def clear_faults(self) -> None:
        """Cancel the faults that still wait for requests. The emulator only."""
        raise self._emulator_only("clear_faults")

    def drop_connections(self, client_id: str | None = None) -> int:
        """Close the connections of a client, or all; return how many. The emulator only."""
        raise self._emulator_only("drop_connections")

    def move_coordinator(self, group: str, broker: int | None = None) -> None:
        """Another broker takes the group over, the next one unless ``broker`` is the id of one; a single
        broker loads the group anew. Parked requests are answered NOT_COORDINATOR. The emulator only."""
        raise self._emulator_only("move_coordinator")

    def expire_member(self, group: str, member: str) -> None:
        """End the session of a member, named by member id, group.instance.id or client.id, as if its
        heartbeats had failed for long enough. The emulator only."""
        raise self._emulator_only("expire_member")

    def pause(self, broker: int | None = None) -> None:
        """The broker with that id, or all, accept connections, read nothing and answer nothing until
        `resume`. Time goes on: sessions may end meanwhile. The emulator only."""
        raise self._emulator_only("pause")

    def resume(self, broker: int | None = None) -> None:
        """Paused brokers send the responses that they have held back, then read again. The emulator only."""
        raise self._emulator_only("resume")

    def _emulator_only(self, what: str) -> EmulatorOnly:
        return EmulatorOnly(
            f"{what}: {self.name} is a real broker: faults, events and traces are the emulator's"
            " (pytest: --kafka emulator); topics, and groups with their members, committed offsets and"
            " waiting for them, are there on every broker"
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)
