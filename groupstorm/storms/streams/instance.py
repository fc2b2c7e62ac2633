"""One instance of a Kafka Streams application in virtual time: a process whose threads are members."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from groupstorm.clients.streams import events
from groupstorm.clients.streams.directory import StateDirectory
from groupstorm.storms.streams.application import client_tags, rack_of, thread_config
from groupstorm.storms.streams.thread import StreamThread
from groupstorm.trace.schema import Source

if TYPE_CHECKING:
    from groupstorm.storms.streams.world import StreamsWorld


class StreamsInstance:
    """A `stage.Process`. ``directory``: the state on its host; ``version``: what its release knows."""

    def __init__(
        self,
        world: StreamsWorld,
        index: int,
        name: str,
        incarnation: int,
        directory: StateDirectory,
        version: int,
    ) -> None:
        self.world = world
        self.index = index
        self.name = name
        self.directory = directory
        self.version = version
        self.rack = rack_of(world.settings, index)
        self.tags = client_tags(world.settings, self.rack)
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        self._cause = "failed"
        threads = range(1, world.settings.integer("num.stream.threads") + 1)
        self.threads = [self._thread(f"{name}-StreamThread-{number}", incarnation) for number in threads]

    def _thread(self, name: str, incarnation: int) -> StreamThread:
        world = self.world
        topics = tuple(world.topics_at(world.clock.now_us))
        config = thread_config(world.settings, world.group, topics, name, self.rack)
        return StreamThread(world, self, incarnation, config)

    def start(self) -> None:
        """KafkaStreams.start()."""
        self.started = True
        event = events.InstanceStarted(
            self.world.group, self.name, self.rack, len(self.threads), self.version
        )
        self.world.trace(Source.MEMBER, event)
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """KafkaStreams.close(): every thread closes."""
        self._cause = "closed"
        for thread in self.threads:
            thread.stop()

    def crash(self) -> None:
        """SIGKILL."""
        self._cause = "crashed"
        for thread in self.threads:
            thread.crash()

    def state_let_go(self) -> None:
        """A thread has closed tasks: another one may be waiting for their state."""
        now_us = self.world.clock.now_us
        for thread in self.threads:
            if thread.alive and thread.tasks.waits_for_state:
                thread.tasks.try_locks(now_us)
                thread.look()

    def thread_gone(self) -> None:
        """One of its threads has ended."""
        self.state_let_go()
        if self.alive and not any(thread.alive for thread in self.threads):
            self.alive = False
            if self.started:
                self.world.trace(Source.MEMBER, events.InstanceGone(self.world.group, self.name, self._cause))
            self.world.instance_gone(self)
            if self.on_exit is not None:
                self.on_exit()
