"""Steps that are faults of the brokers, as calls of `groupstorm.testing.Broker`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from groupstorm.problems import InputError
from groupstorm.storms.runs.scenario_host import Timetable
from groupstorm.storms.scenario.steps import Step
from groupstorm.testing.armed import ArmedFault
from groupstorm.testing.broker import BrokerUnderTest, EmulatorOnly

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
