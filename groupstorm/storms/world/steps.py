"""Carries out the steps that only a virtual world knows: of topics, of the network and of the coordinator."""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.runs.scenario_host import consumers_of
from groupstorm.storms.runs.step_runner import StepRunner
from groupstorm.storms.scenario.steps import Step
from groupstorm.storms.world.slow_records import FatalRecords
from groupstorm.storms.world.world import World


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
        times = world.slow_records
        if times is not None and times.fatal:
            FatalRecords(world.clock, world.records, times, self._die_of_a_record)

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
