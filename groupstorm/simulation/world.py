"""The controls of a test of a simulation: the brokers, the instances of its services, and the time."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

from groupstorm.problems import InputError
from groupstorm.simulation.instances import Instance, Process, Service
from groupstorm.simulation.loop import MICROSECONDS, SimulationError, VirtualLoop
from groupstorm.simulation.network import Network
from groupstorm.simulation.schedule import Happening, Kind
from groupstorm.testing.arguments import holds, seconds, text
from groupstorm.testing.emulated import EmulatedBroker
from groupstorm.testing.groups import GroupUnderTest

_T = TypeVar("_T")

#: Where it listens. A cluster of several takes the ports behind it.
HOST, PORT = "10.0.0.1", 9092


class SameLoop:
    """Stands in the place of a broker's thread: the caller is on the broker's loop already."""

    def __init__(self) -> None:
        self.is_running = False

    def start(self) -> None:
        self.is_running = True

    def stop(self) -> None:
        self.is_running = False

    def call(self, function: Callable[[], _T]) -> _T:
        return function()

    def run(self, work: Coroutine[Any, Any, _T]) -> NoReturn:
        work.close()
        raise InputError("inside of a simulation nothing can be waited for without await")


class SimulatedBroker(EmulatedBroker):
    """All calls of a broker of a test (`groupstorm.testing.Broker`), except those that block."""

    name = "the simulated broker"

    def _thread(self) -> SameLoop:
        self._same_loop = SameLoop()
        return self._same_loop

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of all groups that there are."""
        return self._control.groups

    def behind(self, group: str) -> Mapping[str, int]:
        """The records that the group has left, by partition: all, if it has committed nothing there."""
        progress = self._control.progress(group)
        return progress.behind(progress.topics)

    async def begin(self) -> None:
        """Listen."""
        self._same_loop.start()
        await self._embedded.server.start(HOST, PORT)

    async def end(self) -> None:
        """Stop listening, and close every connection."""
        await self._embedded.server.stop()
        self._same_loop.stop()

    def start(self) -> None:
        raise InputError("a simulation starts its broker itself")

    def stop(self) -> None:
        raise InputError("a simulation ends its broker itself")


#: A test waits so long for a condition unless it says otherwise, in virtual seconds.
PATIENCE_S = 600.0
#: The groups have to stay as they are for so long before `settle` returns.
QUIET_S = 5.0
#: The interval between two looks at a condition on time.
_LOOK_S = 0.1


class ConditionTimeout(AssertionError):
    """A condition was not fulfilled in time."""


class World:
    """Brokers, instances, a network and a clock that only moves when everything waits for it."""

    def __init__(self, loop: VirtualLoop, network: Network, broker: SimulatedBroker) -> None:
        self.loop = loop
        self.network = network
        #: The brokers: faults, topics, records and groups as of `groupstorm.broker`.
        self.broker = broker
        #: The events of instances so far: microseconds, and a sentence.
        self.told: list[tuple[int, str]] = []
        self._instances: dict[str, Instance] = {}
        self._failure: asyncio.Future[None] = loop.create_future()
        self._failures_that_last = 0
        #: The failures of the schedule so far that came while a group had records left.
        self.failures_at_work = 0

    # what there is

    @property
    def bootstrap_servers(self) -> str:
        """The address of the brokers, for clients inside of the simulation."""
        return f"{HOST}:{PORT}"

    @property
    def instances(self) -> Mapping[str, Instance]:
        """By name, in the order of their first starts."""
        return self._instances

    @property
    def now_s(self) -> float:
        """Seconds since the simulation began."""
        return self.loop.time()

    def group(self, name: str) -> GroupUnderTest:
        """A group, to look at and to wait for."""
        return self.broker.group(name)

    # instances

    async def start(
        self, service: Service, *arguments: Any, name: str | None = None, restarts: bool = False
    ) -> Instance:
        """Start ``service(*arguments)`` as an instance, a process of its own. It has begun when this returns.

        ``restarts``: an instance that ends with an error is started again after a second, as a supervisor
        does; else its error ends the simulation with InstanceFailed. Raises InputError.
        """
        if not callable(service):
            raise InputError(f"service: {service!r}: expected a coroutine function")
        chosen = text("name", name) if name is not None else self._free_name(service)
        if chosen in self._instances:
            raise InputError(
                f"name: {chosen!r}: there is an instance of this name: restart() starts it again"
            )
        host = f"10.0.1.{len(self._instances) + 1}"
        instance = Instance(self, chosen, host, service, arguments, restarts)
        self._instances[chosen] = instance
        instance.start()
        await asyncio.sleep(0)
        return instance

    def _free_name(self, service: Service) -> str:
        base = getattr(service, "__name__", "service")
        number = 1
        while f"{base}-{number}" in self._instances:
            number += 1
        return f"{base}-{number}"

    def partition(self, instance: Instance) -> None:
        """Cut an instance off from the brokers: nothing arrives in either direction until `heal`."""
        if not self.network.is_cut_off(instance.process):
            self.tell(f"{instance.name} is cut off")
            self.network.cut_off(instance.process)

    def heal(self, instance: Instance) -> None:
        """Connect the instance again: everything that was sent during the partition arrives."""
        if self.network.is_cut_off(instance.process):
            self.tell(f"{instance.name} is reached again")
            self.network.reconnect(instance.process)

    def disconnect(self, instance: Instance) -> None:
        """The instance loses all its connections; it may connect again."""
        self.tell(f"{instance.name} loses its connections")
        for link in self.network.of(instance.process):
            link.lose()

    # time

    async def run_for(self, duration_s: float) -> None:
        """Let so many seconds pass. Raises InstanceFailed."""
        await self._or_failure(asyncio.sleep(seconds("duration_s", duration_s)))

    async def until(
        self, condition: Callable[[], object], what: str = "it", *, timeout_s: float = PATIENCE_S
    ) -> None:
        """Let time pass until the condition holds; it is looked at whenever nothing is left to do at one
        instant. Raises ConditionTimeout, with ``what`` in its message, and InstanceFailed."""
        found = self.loop.create_future()
        before = self.loop.before_advance

        def look() -> bool:
            try:
                if not found.done() and holds(condition()):
                    found.set_result(None)
                    return True
            except Exception as problem:  # noqa: BLE001  # the test gets the error of its condition
                found.set_exception(problem)
                return True
            return before is not None and before()

        self.loop.before_advance = look
        try:
            async with asyncio.timeout(seconds("timeout_s", timeout_s)):
                await self._or_failure(found)
        except TimeoutError:
            raise ConditionTimeout(f"{what} did not come true within {timeout_s:g} s") from None
        finally:
            self.loop.before_advance = before

    async def settle(self, *, quiet_s: float = QUIET_S, timeout_s: float = PATIENCE_S) -> None:
        """Let time pass until nothing is left to be done: every group is settled, and has committed the end
        of every partition that it reads, no rebalance has come for ``quiet_s``, and no failure of the
        schedule lasts. Raises ConditionTimeout and InstanceFailed."""
        quiet_since_us, seen = self.loop.now_us, self._state()
        deadline_s = self.now_s + seconds("timeout_s", timeout_s)
        while self.now_s < deadline_s:
            await self.run_for(_LOOK_S)
            state = self._state()
            if state != seen or self._failures_that_last or not all(done for _, _, done in state):
                quiet_since_us, seen = self.loop.now_us, state
            elif self.loop.now_us - quiet_since_us >= quiet_s * MICROSECONDS:
                return
        raise ConditionTimeout(f"the groups did not settle within {timeout_s:g} s: {self._unsettled()}")

    def _state(self) -> list[tuple[str, int | None, bool]]:
        """Per group: its name, its generation, and whether nothing is left to be done."""
        found = []
        for name in self.broker.groups:
            group = self.broker.group(name)
            view = group.view()
            is_settled = not view.members or group.settled
            is_done = is_settled and not (view.members and self.broker.behind(name))
            found.append((name, view.generation, is_done))
        return found

    def _unsettled(self) -> str:
        parts = []
        for name, _, is_done in self._state():
            if not is_done:
                group = self.broker.group(name)
                left = self.broker.behind(name)
                parts.append(f"{name} is {group.state}" + (f", records left: {left}" if left else ""))
        return "; ".join(parts) or "rebalances went on"

    async def _or_failure(self, work: Any) -> None:
        """Await ``work``, or raise the failure of an instance."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait([task, self._failure], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
        if self._failure.done():
            self._failure.result()
        task.result()

    # for the simulation itself

    def tell(self, sentence: str) -> None:
        """Note what happens to an instance."""
        self.told.append((self.loop.now_us, sentence))

    def fail(self, failure: SimulationError) -> None:
        """End the test with this error when it waits next."""
        if not self._failure.done():
            self._failure.set_exception(failure)

    def raise_failure(self) -> None:
        """Raise what has failed, if nobody was told."""
        if self._failure.done():
            self._failure.result()

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Act later, on behalf of no instance."""
        self.loop.call_later(delay_s, act, context=contextvars.Context())

    def happen(self, one: Happening) -> None:
        """Let something go wrong now."""
        match one.kind:
            case Kind.BROKER_PAUSE:
                self._count()
                self.tell("the brokers answer nothing")
                self.broker.pause()
                self._end_later(one.lasts_us / MICROSECONDS, self.broker.resume, "the brokers answer again")
            case Kind.MOVE_COORDINATOR:
                self._count()
                self._move_coordinators()
            case _:
                running = [each for each in self._instances.values() if each.is_running]
                if running:
                    target = running[one.target % len(running)]
                    target.process.after_steps(one.steps, lambda: self._hit(target, target.process, one))

    def _count(self) -> None:
        self.failures_at_work += any(self.broker.behind(group) for group in self.broker.groups)

    def _move_coordinators(self) -> None:
        for group in self.broker.groups:
            self.tell(f"the coordinator of {group} moves")
            self.broker.move_coordinator(group)

    def _hit(self, instance: Instance, process: Process, one: Happening) -> None:
        def if_same(act: Callable[[], None]) -> Callable[[], None]:
            return lambda: act() if instance.process is process else None

        self._count()
        lasts_s = one.lasts_us / MICROSECONDS
        match one.kind:
            case Kind.CRASH:
                instance.kill()
                self._end_later(lasts_s, lambda: None if instance.is_running else instance.start())
            case Kind.RESTART:
                task = self.loop.create_task(instance.restart(), context=contextvars.Context())
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
            case Kind.PAUSE:
                instance.pause()
                self._end_later(lasts_s, if_same(instance.resume))
            case Kind.PARTITION:
                self.partition(instance)
                self._end_later(lasts_s, if_same(lambda: self.heal(instance)))
            case Kind.DISCONNECT:
                self.disconnect(instance)

    def _end_later(self, lasts_s: float, act: Callable[[], None], sentence: str = "") -> None:
        """End a failure that lasts so long."""
        self._failures_that_last += 1

        def end() -> None:
            self._failures_that_last -= 1
            if sentence:
                self.tell(sentence)
            act()

        self.later(lasts_s, end)
