"""Steps that only a virtual world knows: of topics, of the network, of the coordinator; and fatal records."""

from __future__ import annotations

from typing import Final

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.runs.scenario_host import consumers_of
from groupstorm.storms.runs.step_runner import StepRunner
from groupstorm.storms.scenario.steps import Step
from groupstorm.storms.world.world import World

LOOK_US: Final = 500_000
"""The interval at which the world looks whether an owner has come to a record that kills its process."""


class WorldSteps:
    """Adds its steps to those of ``runner``."""

    def __init__(self, runner: StepRunner, world: World) -> None:
        self._runner = runner
        self._world = world
        runner.handlers |= {
            "create-topic": self._create_topic,
            "delete-topic": self._delete_topic,
            "coordinator-failover": self._coordinator_failover,
            "partition": self._partition,
            "slow-appends": self._slow_appends,
            "failing-appends": self._failing_appends,
        }
        self._fatal = world.slow_records.fatal if world.slow_records is not None else {}
        #: (partition, name of the owner) -> since when it has worked on the fatal record.
        self._since_us: dict[tuple[TopicPartition, str], int] = {}
        if self._fatal:
            world.clock.after(LOOK_US, self._look_for_deaths)

    def _look_for_deaths(self) -> None:
        """Kill each owner that has worked on a fatal record for its time."""
        now_us, records = self._world.clock.now_us, self._world.records
        reached: dict[tuple[TopicPartition, str], int] = {}
        for partition, (offset, work_us) in self._fatal.items():
            if records.logs.end(partition, now_us) <= offset:
                continue
            for work in tuple(records.holders.get(partition, ())):
                if work.position(partition, now_us) != offset:
                    continue
                key = partition, work.owner
                reached[key] = self._since_us.get(key, now_us)
                if now_us - reached[key] >= work_us:
                    del reached[key]
                    self._die_of_a_record(work.owner, partition)
        self._since_us = reached
        self._world.clock.after(LOOK_US, self._look_for_deaths)

    def _die_of_a_record(self, name: str, partition: TopicPartition) -> None:
        process = self._world.processes.get(name) or self._world.processes.get(name.rpartition("-")[0])
        if process is not None:
            self._runner.emit_step("crash", name, f"of a record of {partition}")
            process.crash()

    def _create_topic(self, step: Step) -> None:
        self._runner.emit_step(step.do, None, f"{step.topic} is created with {step.partitions} partitions")
        self._world.add_partitions(step.topic, step.partitions)
        self._wait_for_metadata()

    def _delete_topic(self, step: Step) -> None:
        self._runner.emit_step(step.do, None, f"{step.topic} is deleted")
        self._world.delete_topic(step.topic)
        self._wait_for_metadata()

    def _coordinator_failover(self, step: Step) -> None:
        """All connections to the coordinator break; clients ask for the new one every retry.backoff.ms."""
        until_us = self._world.clock.now_us + step.for_ms * 1000
        self._runner.emit_step(step.do, None, f"no coordinator for {step.for_ms} ms")
        self._runner.begin()
        self._world.fail_over(until_us, self._runner.delay_within_us)
        self._world.clock.at(until_us + 1, self._runner.end)

    def _partition(self, step: Step) -> None:
        """Nothing is lost: TCP sends again what the network has swallowed."""
        for process in self._runner.chosen(step):
            for name in [consumer.name for consumer in consumers_of(self._world, process)]:
                self._runner.emit_step(step.do, name, f"no {step.direction} for {step.for_ms} ms")
                self._world.member(name).faults.partition(step.for_ms * 1000, step.direction)
        self._wait(step)

    def _slow_appends(self, step: Step) -> None:
        self._runner.emit_step(step.do, None, f"{step.append_ms} ms each, for {step.for_ms} ms")
        self._world.slow_appends(self._world.clock.now_us + step.for_ms * 1000, step.append_ms)
        self._wait(step)

    def _failing_appends(self, step: Step) -> None:
        self._runner.emit_step(step.do, None, f"for {step.for_ms} ms")
        self._world.fail_appends(self._world.clock.now_us + step.for_ms * 1000)
        self._wait(step)

    def _wait(self, step: Step) -> None:
        """The run goes on until the step is over."""
        self._runner.begin()
        self._world.clock.after(step.for_ms * 1000 + 1, self._runner.end)

    def _wait_for_metadata(self) -> None:
        """The run goes on until every member has refreshed its metadata once."""
        clients = self._world.settings.of_profiles()
        age_ms = max(client.integer("metadata.max.age.ms") for client in clients)
        self._runner.begin()
        self._world.clock.after(age_ms * 1000 + 1, self._runner.end)
