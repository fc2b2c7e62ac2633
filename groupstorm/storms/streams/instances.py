"""The processes of a scenario with a Kafka Streams application: instances, and the hosts that keep state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from uuid import UUID

from groupstorm.assignors.userdata.streams import LATEST_SUPPORTED_VERSION
from groupstorm.clients.streams.directory import StateDirectory
from groupstorm.figures.tasks import STABLE
from groupstorm.storms.runs.scenario_host import Process
from groupstorm.storms.scenario.randomness import DRAW_BITS, Stream
from groupstorm.storms.streams.application import StreamsApplication
from groupstorm.storms.streams.instance import StreamsInstance, StreamThread

_PROCESS_DRAWS = 4


class StreamsInstances:
    """Every process is an instance. A name stands for a host: its state stays when the instance is gone."""

    def __init__(self, application: StreamsApplication) -> None:
        self._application = application
        self._environment = application.environment
        self._instances: dict[str, StreamsInstance] = {}
        self._hosts: dict[str, StateDirectory] = {}
        self._hosts_made = 0
        self._incarnations: Counter[str] = Counter()
        self._process_ids = Stream(self._environment.seed, "process-ids")
        #: The version of SubscriptionInfo that instances know if they start now.
        self._version = application.settings.integer("metadata_version")

    @property
    def running(self) -> Mapping[str, Process]:
        return self._instances

    def new(self, index: int, name: str) -> Process:
        """An instance under ``name``, with the state that an earlier one left on its host."""
        self._incarnations[name] += 1
        directory = self._hosts.get(name)
        if directory is None:
            directory = self._hosts[name] = self._new_host()
            if self._incarnations[name] == 1 and index < self._application.settings.integer("members"):
                self._add_first_state(directory)
        instance = StreamsInstance(
            self._application, index, name, self._incarnations[name], directory, self._version, self._remove
        )
        self._instances[name] = self._application.instances[name] = instance
        for thread in instance.threads:
            self._environment.members.add(thread.consumer)
        return instance

    def _remove(self, instance: StreamsInstance) -> None:
        """The instance is gone; its name may belong to a later one by now."""
        if self._instances.get(instance.name) is instance:
            del self._instances[instance.name], self._application.instances[instance.name]

    def in_rack(self, rack: str) -> list[StreamsInstance]:
        return [instance for instance in self._instances.values() if instance.rack == rack]

    # -- hosts -----------------------------------------------------------------------------------

    def _new_host(self) -> StateDirectory:
        self._hosts_made += 1
        process = 0
        for part in range(_PROCESS_DRAWS):
            draw = self._process_ids.at(self._hosts_made * _PROCESS_DRAWS + part)
            process = process << DRAW_BITS | draw
        cleanup_us = self._application.settings.integer("state.cleanup.delay.ms") * 1000
        return StateDirectory(UUID(int=process), cleanup_us)

    def _add_first_state(self, directory: StateDirectory) -> None:
        """Give the host of a first instance the state of a run before this one (`first_hosts_have_state`)."""
        application = self._application
        if application.settings.flag("first_hosts_have_state"):
            for task, described in enumerate(application.topology.tasks):
                if described.stateful:
                    directory.keep(task, application.first_records, self._environment.clock.now_us)

    def lose_host(self, name: str) -> None:
        """The host's disk is gone: the next instance of this name has no state and another process id."""
        self._hosts.pop(name, None)

    def upgrade(self) -> None:
        """Instances that start from now on are of the newest release."""
        self._version = LATEST_SUPPORTED_VERSION

    # -- the end of a run ------------------------------------------------------------------------

    @property
    def _threads(self) -> Iterator[StreamThread]:
        for instance in tuple(self._instances.values()):
            yield from instance.threads

    @property
    def settled(self) -> bool:
        """Whether every task runs, if there is an instance to run it."""
        return not self._instances or self._application.all_tasks_run

    @property
    def follow_ups(self) -> bool:
        return bool(self._application.following_up)

    def give_up_follow_ups(self) -> bool:
        """Threads ask for no more rebalances by themselves. Returns whether they did until now."""
        for thread in self._threads:
            thread.follow_ups.give_up()
        return self._application.last_outcome != STABLE

    def finish(self) -> None:
        """The run is over: check the tasks, count what was read and written so far."""
        application = self._application
        application.invariants.finish(any(instance.started for instance in self._instances.values()))
        for thread in self._threads:
            thread.finish()
        application.emit_traffic()
