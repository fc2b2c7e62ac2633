"""One consumer of a client library, in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.live.clock import RealClock, Spawn
from groupstorm.storms.live.forwarding import MemberForwarder
from groupstorm.storms.live.real_clients import observations
from groupstorm.storms.live.real_clients.processes import Report, WorkerPool, WorkerProcess


class ClientHost(Protocol):
    """The world that runs a consumer, as the consumer sees it."""

    clock: RealClock
    spawn: Spawn
    forwarder: MemberForwarder
    pool: WorkerPool

    def time_us(self, monotonic_ns: int) -> int: ...

    def observe(self, observation: observations.Observation) -> None: ...

    def must_be_alone(self, index: int) -> bool: ...

    def has_left(self, name: str) -> bool: ...

    def joined_generation(self, name: str) -> int: ...

    def process_gone(self, consumer: ClientConsumer) -> None: ...


class Owned:
    """The partitions that a consumer owns, as its reports have it; where it stands comes from them, too."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted(map(TopicPartition.parse, self.names)))


class ClientConsumer:
    """One incarnation of a process of the scenario. ``order``: what its worker process is to run."""

    def __init__(
        self, world: ClientHost, index: int, name: str, instance: str | None, order: dict[str, Any]
    ) -> None:
        self.index = index
        self.name = name
        self.instance = instance
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        self.work = Owned()
        self.pauses = ClientPauses(world, self)
        #: The partitions that the last SyncGroup response gave to the member.
        self.given: frozenset[str] = frozenset()
        self._world = world
        self._order = order
        #: Its worker process, once it has one.
        self.process: WorkerProcess | None = None
        #: Whether it was told to close.
        self.is_stopping = False

    def start(self) -> None:
        self.started = True
        self._world.spawn(self._live())

    def stop(self) -> None:
        self.pauses.end()
        self.is_stopping = True
        if self.process is not None:
            self.process.command("stop", self.name)

    def crash(self) -> None:
        if not (self.alive and self.started):
            return
        self._world.observe(observations.Crashed(self._world.clock.now_us, self.name))
        self.is_stopping = True
        if self.process is not None:
            self.process.kill()
        self._gone()

    def disconnect(self, duration_us: int) -> None:
        if self.alive:
            self._world.forwarder.cut_off(self.name)
            self._world.clock.after(duration_us, self._world.forwarder.reconnect, self.name)

    @property
    def generation(self) -> int:
        return self._world.joined_generation(self.name)

    @property
    def settled(self) -> bool:
        """Whether it has taken what its last SyncGroup response gave to it."""
        return not self.pauses.lasts and self.work.names == self.given

    # -- parts -----------------------------------------------------------------------------------

    async def _live(self) -> None:
        alone = self._world.must_be_alone(self.index)
        process = await self._world.pool.take(alone)
        if self.is_stopping and not self.alive:  # it crashed before it had a process
            self._world.pool.give_back(process)
            return
        self.process = process
        process.listen(self.name, self._on_report)
        process.command("start", **self._order)
        if self.is_stopping:
            process.command("stop", self.name)

    def _on_report(self, report: Report) -> None:
        observation = self._observation(report)
        self._world.observe(observation)
        if isinstance(observation, observations.Closed | observations.Failed):
            process, self.process = self.process, None
            if process is not None:
                process.forget(self.name)
                self._world.pool.give_back(process)
            self._gone()

    def _observation(self, report: Report) -> observations.Observation:
        time_us = self._world.time_us(report["t"])
        event = report["event"]
        if event == "progress":
            return observations.Progressed(time_us, self.name, report["positions"], report["first"])
        if event in ("assigned", "revoked", "lost"):
            return self._ownership_changed(time_us, report)
        simple: Mapping[str, Callable[[], observations.Observation]] = {
            "started": lambda: observations.Started(time_us, self.name, self.instance),
            "busy": lambda: self.pauses.busy_began(time_us),
            "resumed": lambda: self.pauses.busy_ended(time_us),
            "closed": lambda: observations.Closed(time_us, self.name, self._world.has_left(self.name)),
            "failed": lambda: observations.Failed(time_us, self.name, report["error"]),
        }
        return simple[event]()

    def _ownership_changed(self, time_us: int, report: Report) -> observations.Observation:
        names = tuple(sorted(report["partitions"]))
        if report["event"] == "assigned":
            self.work.names.update(names)
            return observations.Assigned(time_us, self.name, names, report["duration_us"])
        self.work.names.difference_update(names)
        return observations.Released(
            time_us,
            self.name,
            names,
            report["positions"],
            report["first"],
            report["duration_us"],
            report["event"] == "lost",
            report["closing"],
        )

    def _gone(self) -> None:
        self.alive = False
        self.work.names.clear()
        self._world.process_gone(self)
        if self.on_exit is not None:
            self.on_exit()


class ClientPauses:
    """SIGSTOP and SIGCONT, and batches that take long."""

    def __init__(self, world: ClientHost, consumer: ClientConsumer) -> None:
        self.lasts = False
        self._world = world
        self._consumer = consumer
        self._busy_us = 0
        self._stopped = False

    def pause(self, duration_us: int) -> None:
        """SIGSTOP: no heartbeat, no poll, no processing."""
        process = self._consumer.process
        if process is None or self.lasts:
            return
        self.lasts = self._stopped = True
        process.pause()
        now_us = self._world.clock.now_us
        self._world.observe(observations.Paused(now_us, self._consumer.name, duration_us, "pause"))
        self._world.clock.after(duration_us, self.end)

    def busy(self, duration_us: int) -> None:
        """The application works on its next batch that long."""
        process = self._consumer.process
        if process is not None and not self.lasts:
            self.lasts = True
            self._busy_us = duration_us
            process.command("busy", self._consumer.name, for_s=duration_us / 1_000_000)

    def end(self) -> None:
        """SIGCONT, if the process is stopped; a long batch ends by itself."""
        process = self._consumer.process
        if self._stopped and process is not None:
            self.lasts = self._stopped = False
            self._world.observe(observations.Resumed(self._world.clock.now_us, self._consumer.name))
            process.resume()

    def busy_began(self, time_us: int) -> observations.Observation:
        return observations.Paused(time_us, self._consumer.name, self._busy_us, "slow-batch")

    def busy_ended(self, time_us: int) -> observations.Observation:
        self.lasts = False
        return observations.Resumed(time_us, self._consumer.name)
