"""The broker of a simulation: that of `groupstorm.broker`, on the simulation's loop instead of a thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from groupstorm.problems import InputError
from groupstorm.testing.emulated import EmulatedBroker

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
