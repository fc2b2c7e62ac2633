"""The world of a chaos run: processes of a service, a broker, the clock on the wall."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.chaos.service import Service, ServiceProcess, told
from groupstorm.problems import InputError
from groupstorm.storms.live.clock import RealClock, Spawn
from groupstorm.storms.records.positions import Timetable
from groupstorm.storms.runs.step_runner import StepRunner
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.steps import Step
from groupstorm.storms.scenario.topics import topic_partitions
from groupstorm.storms.world.member_settings import consumer_config
from groupstorm.testing.broker import BrokerUnderTest, EmulatorOnly
from groupstorm.testing.faults import ArmedFault
from groupstorm.testing.ledger import Ledger
from groupstorm.testing.ledger.history import Moment
from groupstorm.testing.ledger.sources import now_us
from groupstorm.testing.records import Produced
from groupstorm.trace.events.scenario import StepTaken
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


class ServiceInstance:
    """One process of the service under the name of its client.id: a `ConsumerProcess` of the steps."""

    def __init__(self, host: ChaosHost, index: int, name: str, instance_id: str) -> None:
        self.index = index
        self.name = name
        self.instance_id = instance_id
        self.alive = False
        self.started = False
        self.started_us = 0
        #: A step or the end of the run has ended it: its exit is no surprise.
        self.is_stopping = False
        self.on_exit: Callable[[], None] | None = None
        self.process = host.new_service_process(self)
        self._host = host

    @property
    def work(self) -> ServiceInstance:
        """The instance itself, which owns its partitions."""
        return self

    @property
    def pauses(self) -> ServiceInstance:
        """The instance itself, which stands still."""
        return self

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that the broker has given to it."""
        return self._host.owned.get(self.name, ())

    def start(self) -> None:
        self.alive = self.started = True
        self.started_us = now_us()
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

    def pause(self, duration_us: int) -> None:
        """SIGSTOP, and SIGCONT when the time is over."""
        self.process.send(signal.SIGSTOP)
        self._host.clock.after(duration_us, self.process.send, signal.SIGCONT)

    def busy(self, duration_us: int) -> None:
        """Raises InputError: nobody can make another one's program work longer."""
        raise InputError(f"busy for {duration_us // 1000} ms: a service of your own takes its own time")


class ChaosHost:
    """A `StepHost` whose processes are those of a service of one's own."""

    def __init__(
        self,
        scenario: ResolvedScenario,
        broker: BrokerUnderTest,
        ledger: Ledger,
        service: Service,
        spawn: Spawn,
    ) -> None:
        self.scenario = scenario
        self.settings = scenario.settings
        self.seed = scenario.seed
        self._group = broker.group(service.surroundings.group_id)
        self.group = self._group.id
        self.clock = RealClock(spawn)
        self.spawn = spawn
        self.consumers: dict[str, ServiceInstance] = {}
        #: Every instance that there was, with the sentences of those that ended unasked.
        self.all: list[ServiceInstance] = []
        self.exits: list[str] = []
        #: The broker's last answer: client id -> partitions, partition -> committed offset.
        self.owned: Mapping[str, tuple[TopicPartition, ...]] = {}
        self.committed: Mapping[str, int] = {}
        self.ends: Mapping[str, int] = {}
        self.faults = BrokerFaults(broker, self.group, self.clock)
        self._ledger = ledger
        self._service = service
        self._topics = topic_partitions(self.settings)

    # -- what steps need -------------------------------------------------------------------------

    @property
    def processes(self) -> Mapping[str, ServiceInstance]:
        """The instances that the steps start and stop."""
        return self.consumers

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(topic, p) for topic, count in self._topics.items() for p in range(count))

    def new_process(self, index: int, name: str) -> ServiceInstance:
        config = consumer_config(self.settings, self.group, tuple(self._topics), name, index)
        instance = ServiceInstance(self, index, name, config.group_instance_id or "")
        self.consumers[name] = instance
        self.all.append(instance)
        return instance

    def use_release(self, number: int) -> None:
        """Raises InputError: `chaos.run` has refused steps with settings."""
        raise InputError(f"settings: release {number}: a service of your own has its own settings")

    def add_partitions(self, topic: str, count: int) -> None:
        """Raises InputError: `chaos.run` has refused the step."""
        raise InputError(f"do: add-partitions: {topic}: {count}: not for a service of your own")

    def trace(self, source: Source, event: TracedEvent) -> None:
        """Tell the histories of the ledger what a step does."""
        if source is Source.WORLD and isinstance(event, StepTaken):
            name = "" if event.member is None else f" {event.member}"
            self._ledger.incident(f"{event.cause}{name} ({event.detail})", event.member or "")

    def group_lags(self) -> list[int]:
        return [end - self.committed.get(partition, 0) for partition, end in self.ends.items()]

    def committed_records(self) -> int:
        return sum(self.committed.values())

    def look(self) -> bool:
        """Ask the broker who owns what, and what is committed; gives whether the group is settled. Blocks."""
        view = self._group.view()
        self.owned = {
            member.client_id: tuple(map(TopicPartition.parse, member.partitions)) for member in view.members
        }
        self.committed = self._group.committed()
        return view.is_settled and bool(view.members)

    # -- what instances need ---------------------------------------------------------------------

    def new_service_process(self, instance: ServiceInstance) -> ServiceProcess:
        name = instance.name
        service = self._service
        values = told(service.surroundings, instance.index, name, instance.instance_id)
        return ServiceProcess(
            service.command.words(values),
            service.command.environment(values),
            service.logs / f"{name}.log",
            (lambda line: self._line(instance, line)) if service.reads_lines else None,
            instance.gone,
            self.spawn,
        )

    def cut_off(self, client_id: str, for_us: int) -> None:
        try:
            self.faults.cut_off(client_id, for_us)
        except InputError as problem:
            hint = "does the service take its client.id from GROUPSTORM_CLIENT_ID?"
            raise InputError(f"{problem}: {hint}") from problem

    def instance_started(self, instance: ServiceInstance) -> None:
        self._ledger.started(instance.name)

    def instance_gone(self, instance: ServiceInstance, code: int) -> None:
        if self.consumers.get(instance.name) is instance:
            del self.consumers[instance.name]
        if not instance.is_stopping:
            said = instance.process.last_line()
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            sentence = f"{instance.name} ended {how}" + (f": {said}" if said else "")
            self.exits.append(f"{sentence} ({instance.process.log})")
            self._ledger.incident(f"{instance.name} has ended {how}", instance.name)

    def _line(self, instance: ServiceInstance, line: bytes) -> None:
        """A line without a time may have waited in the process, or in the pipe, for as long as it runs."""
        found = read_line(line)
        if found is None:
            return
        if found.at_ms is None:
            at = Moment(instance.started_us, now_us())
        else:
            at = self._ledger.at_wall_ms(found.at_ms)
        self._ledger.processed(found.record, by=instance.name, at=at)


def steps_of(host: ChaosHost) -> StepRunner:
    """The steps of the scenario on the host's clock, with those that are faults of the brokers."""
    runner = StepRunner(host, "service")
    faults = host.faults

    def fault(carry_out: Callable[[Step, Callable[[], None]], None], detail: Callable[[Step], str]) -> Any:
        def take(step: Step) -> None:
            runner.begin()
            runner.emit_step(step.do, None, detail(step))
            carry_out(step, runner.end)

        return take

    runner.handlers |= {
        "pause-brokers": fault(faults.pause, lambda step: f"for {step.for_ms} ms"),
        "slow-requests": fault(
            faults.slow, lambda step: f"{step.api or 'all'} by {step.delay_ms} ms for {step.for_ms} ms"
        ),
        "fail-requests": fault(
            faults.fail, lambda step: f"the next {step.count} of {step.api}: {step.error}"
        ),
        "coordinator-failover": fault(faults.move_coordinator, lambda step: f"for {step.for_ms} ms"),
    }
    return runner


class ProcessedLine(NamedTuple):
    """``record``: its number or its place; ``at_ms``: milliseconds since 1970, None if the line has none."""

    record: int | Produced
    at_ms: float | None


def read_line(line: bytes) -> ProcessedLine | None:
    """None for a line that is not about a record. Raises InputError for one that is, and cannot be read."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, Mapping) or "processed" not in found:
        return None
    return ProcessedLine(_record(found["processed"], line), _time(found.get("at_ms"), line))


def _record(value: Any, line: bytes) -> int | Produced:
    if _is_whole(value):
        return int(value)
    if isinstance(value, Mapping):
        topic, partition, offset = (value.get(name) for name in Produced._fields)
        if isinstance(topic, str) and _is_whole(partition) and _is_whole(offset):
            return Produced(topic, int(partition or 0), int(offset or 0))
    raise InputError(
        f"the service wrote {_shown(line)}: processed: expected the number of a record, or its topic,"
        " partition and offset"
    )


def _time(value: Any, line: bytes) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"the service wrote {_shown(line)}: at_ms: expected milliseconds since 1970")
    return float(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(line: bytes) -> str:
    return line.decode(errors="replace").strip()[:200]


_T = TypeVar("_T")

#: What a client sends before anything else, on every connection.
_FIRST_REQUESTS = ("ApiVersions", "Metadata", "FindCoordinator", "JoinGroup", "ConsumerGroupHeartbeat")
#: More requests than a client sends while it is cut off.
_EVERY = 1_000_000


class BrokerFaults:
    """Carries out faults on a broker, and ends each when its time is over."""

    def __init__(self, broker: BrokerUnderTest, group: str, clock: Timetable) -> None:
        self._broker = broker
        self._group = group
        self._clock = clock
        self._has_begun = False

    def pause(self, step: Step, done: Callable[[], None]) -> None:
        """The brokers answer nothing for a while."""
        self._call(step, self._broker.pause)

        def resume() -> None:
            self._broker.resume()
            done()

        self._clock.after(step.for_ms * 1000, resume)

    def slow(self, step: Step, done: Callable[[], None]) -> None:
        """Requests are served later for a while."""
        fault = self._call(step, lambda: self._broker.slow(step.delay_ms, step.api or None))
        self._end_later(step.for_ms * 1000, [fault], done)

    def fail(self, step: Step, done: Callable[[], None]) -> None:
        """The next requests of an API fail."""
        self._call(step, lambda: self._broker.fail(step.api, step.error, count=step.count))
        done()

    def move_coordinator(self, step: Step, done: Callable[[], None]) -> None:
        """Another broker coordinates the group; nobody names it before the step's time is over."""
        not_yet = self._call(
            step, lambda: self._broker.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", count=_EVERY)
        )
        self._call(step, lambda: self._broker.move_coordinator(self._group))
        self._end_later(step.for_ms * 1000, [not_yet], done)

    def cut_off(self, client_id: str, for_us: int) -> None:
        """A client loses its connections, and every new one, for a while."""
        self._has_begun = True
        faults = [self._broker.disconnect(api, count=_EVERY, client_id=client_id) for api in _FIRST_REQUESTS]
        self._broker.drop_connections(client_id)
        self._end_later(for_us, faults, lambda: None)

    def end(self) -> None:
        """No fault waits any more, and no broker is paused."""
        if self._has_begun:
            self._broker.clear_faults()
            self._broker.resume()

    def _end_later(self, after_us: int, faults: Iterable[ArmedFault], done: Callable[[], None]) -> None:
        def end() -> None:
            for fault in faults:
                fault.cancel()
            done()

        self._clock.after(after_us, end)

    def _call(self, step: Step, act: Callable[[], _T]) -> _T:
        try:
            result = act()
        except (EmulatorOnly, InputError) as problem:
            raise InputError(f"do: {step.do}: {problem}") from problem
        self._has_begun = True
        return result
