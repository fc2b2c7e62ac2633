"""One chaos run: a broker, records, the service's processes under the steps, rest, and the verdict."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.chaos.host import ChaosHost, steps_of
from groupstorm.chaos.service import Service, ServiceCommand, Surroundings
from groupstorm.clients.brokers import EMULATOR, read_kind
from groupstorm.clients.brokers.contract import BrokerUnavailable, refused
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.problems import InputError
from groupstorm.stoppable import run_stoppable
from groupstorm.storms.live.clock import tasks
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.runs.step_runner import Progress, StepRunner
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.setting_names import STREAMS
from groupstorm.storms.scenario.steps import CHAOS_STEPS, COORDINATOR_FAILOVER, SERVICE_STEPS
from groupstorm.storms.scenario.topics import rates_of, topic_partitions
from groupstorm.storms.world.broker import BROKER_SETTINGS, GROUP
from groupstorm.testing.broker import BrokerUnderTest
from groupstorm.testing.chosen import chosen_broker
from groupstorm.testing.ledger import Ledger
from groupstorm.testing.ledger.report import Report

#: Where a service writes its results, unless its scenario has a topic of this name.
OUTPUT: Final = "output"
#: The interval at which the group is asked how far it is.
LOOK_S: Final = 0.2
#: So long the number of processed records must not have changed before the run is over.
QUIET_S: Final = 2.0
#: The time that an instance may take to end after SIGTERM if the scenario has no `termination_grace_ms`.
GRACE_S: Final = 10.0


class Promises(NamedTuple):
    """The service's promises, see `groupstorm.testing.Ledger`. ``reads_lines``: it says on standard output
    what it has processed; else it writes records into the output topic."""

    exactly_once: bool
    ordered: bool
    notice_s: float
    reads_lines: bool


class ChaosRun(NamedTuple):
    """``kind``: as for --on; ``logs``: the folder for what the instances write."""

    scenario: ResolvedScenario
    kind: str
    command: ServiceCommand
    promises: Promises
    logs: Path
    allow_writes: bool = False
    client_config: Path | None = None


def run_chaos(run: ChaosRun, progress: Progress | None = None) -> Verdict:
    """Play the scenario with the service's processes and judge it. All processes are ended, whatever happens.

    Raises InputError for a scenario that is not for a service of one's own, a command that cannot be run, and
    a broker that cannot be reached.
    """
    check_scenario(run.scenario, read_kind(run.kind).name == EMULATOR)
    settings = run.scenario.settings
    topics = topic_partitions(settings)
    if OUTPUT in topics:
        raise InputError(f"topics: {OUTPUT}: the service's output topic has this name: expected another one")
    arguments = {
        "topics": {**topics, OUTPUT: 1},
        "settings": {name: settings.integer(name) for name in BROKER_SETTINGS},
    }
    found: list[Verdict] = []

    async def main() -> None:
        found.append(await _run(run, broker, progress))

    try:
        broker = chosen_broker(
            run.kind,
            arguments,
            allow_writes=run.allow_writes,
            client_config=run.client_config,
            faults=needs_proxy(run.scenario),
        )
        with broker:
            run_stoppable(main)
    except (BrokerUnavailable, ConnectionLost) as missing:
        raise refused(run.kind, missing) from missing
    return found[0]


async def _run(run: ChaosRun, broker: BrokerUnderTest, progress: Progress | None) -> Verdict:
    group = broker.group(GROUP)
    promises = run.promises
    topics = tuple(broker.topic(name) for name in topic_partitions(run.scenario.settings))
    surroundings = Surroundings(broker.bootstrap_servers, group.id, topics, broker.topic(OUTPUT))
    async with (
        Ledger(
            broker,
            GROUP,
            exactly_once=promises.exactly_once,
            ordered=promises.ordered,
            notice_s=promises.notice_s,
        ) as ledger,
        tasks() as spawn,
    ):
        service = Service(run.command, surroundings, promises.reads_lines, run.logs)
        host = ChaosHost(run.scenario, broker, ledger, service, spawn)
        records = NumberedRecords(host, ledger)
        phases = _Phases(host, records, ledger, steps_of(host), promises, progress)
        try:
            spawn(records.write())
            await phases.steps()
            records.end()
            left = await phases.rest()
            await phases.stop()
        finally:
            host.faults.end()
            await asyncio.gather(*(instance.process.ended() for instance in host.all))
        await asyncio.to_thread(phases.read_outputs)
        report = await asyncio.to_thread(ledger.report)
        return Verdict(
            broker.name,
            report,
            len(run.scenario.steps),
            len(host.all),
            phases.rest_s,
            left,
            tuple(host.exits),
            host.settings.flag("restart_failed"),
        )


class _Phases:
    """Steps with faults, then rest without faults, then the end of all instances."""

    def __init__(
        self,
        host: ChaosHost,
        records: NumberedRecords,
        ledger: Ledger,
        steps: StepRunner,
        promises: Promises,
        progress: Progress | None,
    ) -> None:
        self._host = host
        self._records = records
        self._ledger = ledger
        self._steps = steps
        self._promises = promises
        self._progress = progress
        #: The time that the service took to come to rest after the last step.
        self.rest_s = 0.0

    async def steps(self) -> None:
        """Wait until all steps are done, and at least `least_duration_ms`; no longer for a rollout whose
        instances have all ended, unasked."""
        host = self._host
        least_us = host.settings.integer("least_duration_ms") * 1000
        alive_us = max((step.at_ms for step in host.scenario.steps), default=0) * 1000
        respawn_us = host.settings.distribution("start_ms").largest_us + GRACE_S * 1_000_000
        while self._steps.pending or host.clock.now_us < least_us:
            await self._look("steps")
            if not self._nobody_is_left():
                alive_us = max(alive_us, host.clock.now_us)
            elif not self._steps.pending or (host.exits and host.clock.now_us > alive_us + respawn_us):
                return

    async def rest(self) -> Mapping[str, int] | None:
        """Wait until the group is settled, has committed every record, and nothing was processed for a
        while; return None then. Return the records that are left if it does not come to that in time."""
        self._host.faults.end()
        begun_us = self._host.clock.now_us
        until_us = begun_us + self._host.settings.integer("settle_timeout_ms") * 1000
        quiet_since_us, seen = begun_us, -1
        at_rest_us: int | None = None
        while (now_us := self._host.clock.now_us) < until_us and not self._nobody_is_left():
            settled = await self._look("settling")
            processed = await asyncio.to_thread(self._processed)
            if processed != seen or not settled or self._left():
                quiet_since_us, seen, at_rest_us = now_us, processed, None
            elif at_rest_us is None:
                at_rest_us = now_us
            elif now_us - quiet_since_us >= QUIET_S * 1_000_000:
                self.rest_s = (at_rest_us - begun_us) / 1_000_000
                return None
        self.rest_s = (self._host.clock.now_us - begun_us) / 1_000_000
        return self._left()

    async def stop(self) -> None:
        """SIGTERM to every instance; who does not end in time is killed."""
        grace_ms = self._host.settings.optional_integer("termination_grace_ms")
        until_us = self._host.clock.now_us + (GRACE_S * 1_000_000 if grace_ms is None else grace_ms * 1000)
        for instance in self._host.all:
            instance.stop()
        while self._host.consumers and self._host.clock.now_us < until_us:
            await self._look("stopping")

    def read_outputs(self) -> None:
        """Count the records of the output topic."""
        if not self._promises.reads_lines:
            self._ledger.read_outputs(OUTPUT)

    def _processed(self) -> int:
        self.read_outputs()
        return self._ledger.processings

    def _left(self) -> Mapping[str, int]:
        """The records behind the committed offsets, by partition."""
        ends, committed = self._records.ends, self._host.committed
        left = {partition: end - committed.get(partition, 0) for partition, end in sorted(ends.items())}
        return {partition: count for partition, count in left.items() if count > 0}

    def _nobody_is_left(self) -> bool:
        """Whether every instance has ended and none will be started again."""
        waits = self._host.settings.flag("restart_failed")
        return bool(self._host.all) and not self._host.consumers and not waits

    async def _look(self, phase: str) -> bool:
        await asyncio.sleep(LOOK_S)
        if self._progress is not None:
            self._progress(self._host.clock.now_us, phase)
        self._host.ends = self._records.ends
        try:
            return await asyncio.to_thread(self._host.look)
        except ConnectionLost:  # the brokers are paused, or their coordinator moves
            return False


#: So many instances are processes of their own on this machine.
INSTANCES_MAX: Final = 50
#: Steps that are faults of connections and brokers: in front of real brokers a proxy carries them out.
_CARRIED_OUT_BY_PROXY: Final = CHAOS_STEPS | {"disconnect", "reconnect-storm"}


def needs_proxy(scenario: ResolvedScenario) -> bool:
    """Whether a real broker needs a proxy in front of it."""
    return any(step.do in _CARRIED_OUT_BY_PROXY for step in scenario.steps)


def check_scenario(scenario: ResolvedScenario, on_emulator: bool) -> None:
    """Raises InputError for settings and steps that only emulated members, or emulated brokers, have."""
    settings = scenario.settings
    if settings.choice("application") == STREAMS:
        raise InputError("application: streams: expected consumer: a service of your own is a consumer")
    members = settings.integer("members")
    if members > INSTANCES_MAX:
        raise InputError(
            f"members: {members}: expected at most {INSTANCES_MAX} processes of a service: --instances 3"
        )
    if settings.integer("members_per_pod") > 1:
        raise InputError("members_per_pod: expected 1: a service of your own has the consumers that it has")
    for name in ("drain_ms", "gc_pause_ms"):
        if settings.distribution(name).largest_us:
            raise InputError(f"{name}: expected 0: a service of your own takes its own time")
    for number, step in enumerate(scenario.steps, start=1):
        where = f"steps: {number}: do: {step.do}"
        if step.do not in SERVICE_STEPS:
            raise InputError(
                f"{where}: not for a service of your own: expected {', '.join(sorted(SERVICE_STEPS))}"
            )
        if step.do == COORDINATOR_FAILOVER and not on_emulator:
            raise InputError(f"{where}: expected --on emulator: only there a coordinator moves on command")
        if step.settings:
            raise InputError(f"{where}: settings: a service of your own has its own settings")


class Verdict(NamedTuple):
    """``left``: the records that were not committed when the time was over, by partition; None: the service
    came to rest, after ``settled_s`` from the last step. ``exits``: instances that ended unasked, one
    sentence each; they count against the service unless the scenario restarts them (``restarts_failed``).
    """

    on: str
    report: Report
    steps: int
    starts: int
    settled_s: float
    left: Mapping[str, int] | None
    exits: tuple[str, ...]
    restarts_failed: bool

    @property
    def is_good(self) -> bool:
        return not self.report.faults and self.left is None and (self.restarts_failed or not self.exits)

    def lines(self) -> list[str]:
        """The verdict in sentences."""
        done = f"{self.steps} step{'' if self.steps == 1 else 's'}, {self.starts} starts of instances"
        lines = [f"On {self.on}: {done}.", *self._safety(), self._liveness()]
        return [*lines, *self.exits]

    def _safety(self) -> list[str]:
        first, *more = self.report.lines()
        return [f"Safety: {first}.", *more]

    def _liveness(self) -> str:
        if self.left is None:
            rest = "the group was stable and had committed every record"
            return f"Liveness: {rest} {self.settled_s:.1f} s after the last step."
        parts = [f"{partition}: {count}" for partition, count in self.left.items()]
        missing = f"records left: {', '.join(parts)}" if parts else "the group was not stable"
        return f"Liveness: not at rest {self.settled_s:.1f} s after the last step; {missing}."

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "on": self.on,
            "good": self.is_good,
            "steps": self.steps,
            "starts": self.starts,
            "settled_seconds": round(self.settled_s, 3) if self.left is None else None,
            "left": None if self.left is None else dict(self.left),
            "exits": list(self.exits),
            "ledger": self.report.to_json(),
        }


#: The interval at which records are written.
INTERVAL_S = 0.1


class NumberedRecords:
    """Writes the records through the ledger. ``ends``: the offset behind the last one of each partition."""

    def __init__(self, host: ChaosHost, ledger: Ledger) -> None:
        self._host = host
        self._ledger = ledger
        self._logs = RecordLogs(lambda tp: rates_of(host.settings, tp.topic, tp.partition))
        self._written: dict[TopicPartition, int] = defaultdict(int)
        self._is_over = False
        self.ends: dict[str, int] = {}

    @property
    def count(self) -> int:
        """The number of records that have been written."""
        return sum(self._written.values())

    async def write(self) -> None:
        """Write until `end`."""
        while not self._is_over:
            for partition, count in self._due().items():
                await asyncio.to_thread(self._append, partition, count)
            await asyncio.sleep(INTERVAL_S)

    def end(self) -> None:
        """Write no more."""
        self._is_over = True

    def _due(self) -> Mapping[TopicPartition, int]:
        now_us = self._host.clock.now_us
        due = {one: self._logs.end(one, now_us) - self._written[one] for one in self._host.partitions}
        return {one: count for one, count in due.items() if count > 0}

    def _append(self, partition: TopicPartition, count: int) -> None:
        places = self._ledger.produce(partition.topic, count, partition=partition.partition)
        self._written[partition] += count
        self.ends[f"{places[-1].topic}-{partition.partition}"] = places[-1].offset + 1
