"""A broker as a test has it, wherever it comes from; `groupstorm.broker` makes an emulated one."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from groupstorm.testing.groups import Group
from groupstorm.testing.server_control import TimedEvent
from groupstorm.testing.waiting import DEFAULT_TIMEOUT_S


class ArmedFault(ABC):
    """A fault that waits for requests."""

    @property
    @abstractmethod
    def hits(self) -> int:
        """How many requests it has taken."""

    @abstractmethod
    async def used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until it has taken as many as it was meant for. Raises FaultTimeout."""

    @abstractmethod
    def wait_used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """`used_up` for tests that are not async."""


class FaultTimeout(AssertionError):
    """The requests that a fault was meant for did not come in time."""


class EmulatorOnly(Exception):
    """A real broker was asked for what only the emulator does; the message says what it can be asked for."""


class Broker(ABC):
    """One broker, or several, for the length of a ``with`` or an ``async with``.

    It runs beside the test, on a thread or in a process of its own. Its methods do not wait for clients, so
    that sync and async tests call them alike; what waits has two forms, ``await group.stable()`` and
    ``group.wait_stable()``. Arguments that mean nothing raise `groupstorm.problems.InputError`.
    """

    #: What it is, for messages.
    name: str

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """HOST:PORT, or several of them with commas, as clients take it."""

    @property
    def control_url(self) -> str | None:
        """Where the control interface for other processes is (docs/testing.md); None where there is none."""
        return None

    def topic(self, name: str) -> str:
        """What a topic is called there: on somebody's cluster names have a prefix."""
        return name

    @abstractmethod
    def create_topic(self, name: str, partitions: int = 1) -> str:
        """Make a topic; gives what it is called there."""

    @abstractmethod
    def group(self, name: str) -> Group:
        """A group, to look at and to wait for; its ``id`` is what it is called there."""

    @property
    def events(self) -> Sequence[TimedEvent]:
        """What the coordinator did so far (groupstorm.coordinator.events), each with the microseconds since
        the broker started. The emulator only."""
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
        """Answer the next ``count`` requests of an API with an error, both by Kafka's names, instead of
        carrying them out; only those of a group or of a client, where one is named. The emulator only."""
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
        """Serve the next ``count`` requests of an API so much later. The emulator only."""
        raise self._emulator_only("delay")

    def disconnect(
        self, api: str, *, count: int = 1, group: str | None = None, client_id: str | None = None
    ) -> ArmedFault:
        """Close the connection at the next ``count`` requests of an API, which are not carried out. The
        emulator only."""
        raise self._emulator_only("disconnect")

    def clear_faults(self) -> None:
        """Faults that still wait for requests do so no more. The emulator only."""
        raise self._emulator_only("clear_faults")

    def drop_connections(self, client_id: str | None = None) -> int:
        """Close the connections of a client, or all; gives how many. The emulator only."""
        raise self._emulator_only("drop_connections")

    def move_coordinator(self, group: str, broker: int | None = None) -> None:
        """Another broker takes the group over, the next one unless one is named by its id; a single one loads
        the group anew. Requests that are parked are answered NOT_COORDINATOR. The emulator only."""
        raise self._emulator_only("move_coordinator")

    def expire_member(self, group: str, member: str) -> None:
        """The session of a member, named by member id, group.instance.id or client.id, ends now, as if it had
        been silent for so long. The emulator only."""
        raise self._emulator_only("expire_member")

    def pause(self, broker: int | None = None) -> None:
        """The broker of that id, or all, accept connections, read nothing and answer nothing until `resume`.
        Time goes on: sessions may end meanwhile. The emulator only."""
        raise self._emulator_only("pause")

    def resume(self, broker: int | None = None) -> None:
        """Paused brokers go on: what they owe is answered, what has come meanwhile is read."""
        raise self._emulator_only("resume")

    def _emulator_only(self, what: str) -> EmulatorOnly:
        return EmulatorOnly(
            f"{what}: {self.name} is a real broker: faults, events and traces are the emulator's"
            " (pytest: --kafka emulator); topics, and groups with their members, committed offsets and"
            " waiting for them, are there on every broker"
        )

    @abstractmethod
    def start(self) -> None:
        """Run; ``with`` calls it."""

    @abstractmethod
    def stop(self) -> None:
        """End; ``with`` calls it."""

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
