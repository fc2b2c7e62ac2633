"""An instance of a Kafka Streams application in virtual time: a process whose threads are members."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.clients.profiles import GroupProtocol
from groupstorm.clients.streams.state import StateDirectory
from groupstorm.storms.streams.application import StreamsApplication
from groupstorm.storms.streams.application_settings import client_tags, rack_of, thread_config
from groupstorm.storms.streams.classic_thread import ClassicThread
from groupstorm.storms.streams.group_thread import GroupThread
from groupstorm.storms.streams.thread import StreamThread
from groupstorm.trace.events import streams as events


class StreamsInstance:
    """A process of the scenario. ``directory``: the state on its host; ``version``: its release.

    ``on_gone`` is called before ``on_exit``, which belongs to the scenario's steps.
    """

    def __init__(
        self,
        application: StreamsApplication,
        index: int,
        name: str,
        incarnation: int,
        directory: StateDirectory,
        version: int,
        on_gone: Callable[[StreamsInstance], None],
    ) -> None:
        self.index = index
        self.name = name
        self.directory = directory
        self.version = version
        self.settings = application.settings.release(application.environment.release)
        self.rack = rack_of(application.settings, index)
        self.tags = client_tags(application.settings, self.rack)
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        self._application = application
        self._on_gone = on_gone
        self._cause = "failed"
        threads = range(1, application.settings.integer("num.stream.threads") + 1)
        self.threads: list[StreamThread] = [
            self._thread(f"{name}-StreamThread-{number}", incarnation) for number in threads
        ]

    def _thread(self, name: str, incarnation: int) -> StreamThread:
        application = self._application
        topics = tuple(application.environment.topics.at(application.clock.now_us))
        config = thread_config(self.settings, application.group, topics, name, self.rack)
        if config.group_protocol is GroupProtocol.STREAMS:
            return GroupThread(application, self, incarnation, config)
        return ClassicThread(application, self, incarnation, config)

    def start(self) -> None:
        """KafkaStreams.start()."""
        self.started = True
        self._application.emit(
            events.InstanceStarted(
                self._application.group, self.name, self.rack, len(self.threads), self.version
            )
        )
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

    def state_released(self) -> None:
        """A thread has closed tasks: another one may be waiting for their state."""
        now_us = self._application.clock.now_us
        for thread in self.threads:
            if thread.alive and thread.tasks.waits_for_state:
                thread.tasks.try_locks(now_us)
                thread.check_progress()

    def thread_gone(self) -> None:
        """One of its threads has ended."""
        self.state_released()
        if self.alive and not any(thread.alive for thread in self.threads):
            self.alive = False
            if self.started:
                self._application.emit(events.InstanceGone(self._application.group, self.name, self._cause))
            self._on_gone(self)
            if self.on_exit is not None:
                self.on_exit()
