"""The emulated broker of a test: `groupstorm.broker`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from groupstorm.coordinator.events import Event
from groupstorm.coordinator.server.embedded import EmbeddedBroker
from groupstorm.coordinator.server.log.topics import TopicError
from groupstorm.coordinator.server.releases import NEWEST
from groupstorm.problems import InputError
from groupstorm.testing.broker import ArmedFault, Broker, FaultTimeout
from groupstorm.testing.control import ControlServer
from groupstorm.testing.faults import Delay, Disconnect, Fail, Fault, error_named
from groupstorm.testing.groups import Group, GroupView, Wanted
from groupstorm.testing.server_control import ServerControl, TimedEvent
from groupstorm.testing.values import Setting, as_settings, as_topics
from groupstorm.testing.waiting import DEFAULT_TIMEOUT_S, Happening, until, wait
from groupstorm.trace.directory import DirectorySink
from groupstorm.trace.schema import Source

_LAST_PORT = 65_535


class EmulatedBroker(Broker):
    """Listens on the loopback interface from entering the context to leaving it, on a thread of its own."""

    name = "the emulator"

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        settings: Mapping[str, Setting] | None = None,
        *,
        brokers: int = 1,
        as_version: str = NEWEST,
        port: int = 0,
        trace: str | os.PathLike[str] | None = None,
        control: bool | int = False,
    ) -> None:
        """See `groupstorm.broker`."""
        for name, number in (("port", port), ("control", int(control))):
            if not 0 <= number <= _LAST_PORT:
                raise InputError(f"{name}: {number}: expected a number from 0 to {_LAST_PORT}")
        options, wanted = as_settings(settings or {}), as_topics(topics or {})
        self._trace = None if trace is None else DirectorySink(Path(trace))
        self._embedded = EmbeddedBroker(options, wanted, brokers, as_version, port)
        self._control = ServerControl(self._embedded.server)
        if self._trace is not None:
            self._embedded.server.tell_also(partial(_write, self._trace))
        self._http = None if control is False else ControlServer(self._control)
        self._control_port = int(control) if control is not True else 0
        self._control_url: str | None = None

    def start(self) -> None:
        """Raises InputError where the port cannot be listened on."""
        try:
            self._embedded.__enter__()
        except OSError as problem:
            raise _port_taken("port", self._embedded.port, problem) from problem
        if self._http is None:
            return
        try:
            self._control_url = self._embedded.run(self._http.start(self._control_port))
        except OSError as problem:
            self.stop()
            raise _port_taken("control", self._control_port, problem) from problem

    def stop(self) -> None:
        if self._http is not None:
            self._embedded.run(self._http.stop())
        self._embedded.__exit__(None, None, None)
        if self._trace is not None:
            self._trace.close()

    @property
    def bootstrap_servers(self) -> str:
        endpoints = self._embedded.server.endpoints
        return ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints)

    @property
    def control_url(self) -> str | None:
        return self._control_url

    def create_topic(self, name: str, partitions: int = 1) -> str:
        state = self._embedded.broker.state
        replicas = min(state.config.default_replication_factor, len(state.cluster.nodes))
        try:
            self._embedded.call(lambda: state.create_topic(name, partitions, replicas))
        except TopicError as problem:
            raise InputError(str(problem)) from problem
        return name

    def group(self, name: str) -> Group:
        return _EmulatedGroup(name, self._embedded, self._control)

    @property
    def events(self) -> Sequence[TimedEvent]:
        return self._embedded.call(lambda: tuple(self._control.events))

    @property
    def trace(self) -> Sequence[dict[str, Any]]:
        return self._embedded.call(self._control.trace)

    def fail(
        self,
        api: str,
        error: str,
        *,
        count: int = 1,
        group: str | None = None,
        client_id: str | None = None,
    ) -> ArmedFault:
        return self._arm(Fault(api, Fail(error_named(error)), count, group, client_id))

    def delay(
        self,
        api: str,
        delay_ms: int,
        *,
        count: int = 1,
        group: str | None = None,
        client_id: str | None = None,
    ) -> ArmedFault:
        return self._arm(Fault(api, Delay(delay_ms), count, group, client_id))

    def disconnect(
        self, api: str, *, count: int = 1, group: str | None = None, client_id: str | None = None
    ) -> ArmedFault:
        return self._arm(Fault(api, Disconnect(), count, group, client_id))

    def _arm(self, fault: Fault) -> ArmedFault:
        self._embedded.call(lambda: self._control.add_fault(fault))
        return _EmulatedFault(fault, self._embedded, self._control)

    def clear_faults(self) -> None:
        self._embedded.call(self._control.faults.clear)

    def drop_connections(self, client_id: str | None = None) -> int:
        return self._embedded.call(lambda: self._control.drop_connections(client_id))

    def move_coordinator(self, group: str, broker: int | None = None) -> None:
        self._embedded.call(lambda: self._control.move_coordinator(group, broker))

    def expire_member(self, group: str, member: str) -> None:
        self._embedded.call(lambda: self._control.expire_member(group, member))

    def pause(self, broker: int | None = None) -> None:
        self._embedded.call(lambda: self._control.pause(broker))

    def resume(self, broker: int | None = None) -> None:
        self._embedded.call(lambda: self._control.resume(broker))


def _write(sink: DirectorySink, time_us: int, events: Sequence[Event]) -> None:
    sink.add_all((time_us, Source.COORDINATOR, event) for event in events)


def _port_taken(argument: str, port: int, problem: OSError) -> InputError:
    return InputError(f"{argument}: {port}: cannot listen there: {problem.strerror or problem}")


class _EmulatedGroup(Group):
    def __init__(self, group_id: str, embedded: EmbeddedBroker, control: ServerControl) -> None:
        super().__init__(group_id)
        self._embedded = embedded
        self._control = control

    def view(self) -> GroupView:
        return self._embedded.call(lambda: self._control.view(self.id))

    def committed(self, topic: str, partition: int) -> int | None:
        return self._embedded.call(lambda: self._control.committed(self.id, topic, partition))

    def _waiting(self, wanted: Wanted) -> Happening:
        return self._embedded.call(lambda: self._control.wait_for(self.id, wanted))

    def _last_events(self) -> Sequence[str]:
        return self._embedded.call(lambda: self._control.last_events(self.id))


class _EmulatedFault(ArmedFault):
    def __init__(self, fault: Fault, embedded: EmbeddedBroker, control: ServerControl) -> None:
        self._fault = fault
        self._embedded = embedded
        self._control = control

    @property
    def hits(self) -> int:
        return self._fault.hits

    async def used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        await until(self._waiting(), timeout_s, self._too_late)

    def wait_used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        wait(self._waiting(), timeout_s, self._too_late)

    def _waiting(self) -> Happening:
        return self._embedded.call(lambda: self._control.wait_for_fault(self._fault))

    def _too_late(self, timeout_s: float) -> FaultTimeout:
        return FaultTimeout(f"after {timeout_s:g} s: {self._fault!r}: the requests did not come")

    def __repr__(self) -> str:
        return repr(self._fault)
