"""An instance of the service, as the steps of a scenario see it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.chaos.process import ServiceProcess
from groupstorm.problems import InputError
from groupstorm.storms.runs.scenario_host import Timetable


class InstanceHost(Protocol):
    """What an instance needs of the run."""

    @property
    def clock(self) -> Timetable: ...

    @property
    def owned(self) -> Mapping[str, tuple[TopicPartition, ...]]:
        """Client id -> the partitions that the broker has given to it."""
        ...

    def new_service_process(self, instance: ServiceInstance) -> ServiceProcess: ...

    def spawn(self, work: Any) -> object: ...

    def cut_off(self, client_id: str, for_us: int) -> None: ...

    def instance_started(self, instance: ServiceInstance) -> None: ...

    def instance_gone(self, instance: ServiceInstance, code: int) -> None: ...


class ServiceInstance:
    """One process of the service under the name of its client.id: a `ConsumerProcess` of the steps."""

    def __init__(self, host: InstanceHost, index: int, name: str, instance_id: str) -> None:
        self.index = index
        self.name = name
        self.instance_id = instance_id
        self.alive = False
        self.started = False
        #: A step or the end of the run has ended it: its exit is no surprise.
        self.is_stopping = False
        self.on_exit: Callable[[], None] | None = None
        self.process = host.new_service_process(self)
        self.pauses = ProcessPauses(host, self)
        self._host = host

    @property
    def work(self) -> ServiceInstance:
        """What it owns."""
        return self

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that the broker has given to it."""
        return self._host.owned.get(self.name, ())

    def start(self) -> None:
        self.alive = self.started = True
        self._host.instance_started(self)
        self._host.spawn(self.process.start())

    def stop(self) -> None:
        """SIGTERM."""
        self.is_stopping = True
        self.process.send(signal.SIGTERM)
        self.process.send(signal.SIGCONT)  # a process that stands still takes no other signal

    def crash(self) -> None:
        """SIGKILL."""
        self.is_stopping = True
        self.process.send(signal.SIGKILL)

    def disconnect(self, duration_us: int) -> None:
        self._host.cut_off(self.name, duration_us)

    def gone(self, code: int) -> None:
        """The process has ended."""
        self.alive = False
        self._host.instance_gone(self, code)
        if self.on_exit is not None:
            self.on_exit()


class ProcessPauses:
    """SIGSTOP and SIGCONT."""

    def __init__(self, host: InstanceHost, instance: ServiceInstance) -> None:
        self._host = host
        self._instance = instance

    def pause(self, duration_us: int) -> None:
        self._instance.process.send(signal.SIGSTOP)
        self._host.clock.after(duration_us, self._instance.process.send, signal.SIGCONT)

    def busy(self, duration_us: int) -> None:
        """Raises InputError: nobody can make another one's program work longer."""
        raise InputError(f"busy for {duration_us // 1000} ms: a service of your own takes its own time")
