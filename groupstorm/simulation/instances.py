"""An instance of a person's service: started, stopped, killed, paused, cut off, started again."""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import events
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from groupstorm.problems import InputError
from groupstorm.simulation.loop import OWNER, InstanceFailed, SimulationError, VirtualLoop
from groupstorm.simulation.network import Network

#: The service of an instance: a coroutine function, and its arguments.
Service = Callable[..., Coroutine[Any, Any, object]]

#: The time that an instance may take to stop before it is killed, unless the test says otherwise;
#: Kubernetes' terminationGracePeriodSeconds.
GRACE_S = 30.0
#: The time that a supervisor waits before it starts an instance that has ended with an error.
RESTART_S = 1.0


class InstanceWorld(Protocol):
    """The parts of the world that an instance uses."""

    @property
    def loop(self) -> VirtualLoop: ...

    @property
    def network(self) -> Network: ...

    def tell(self, sentence: str, /) -> None: ...

    def fail(self, failure: SimulationError, /) -> None: ...

    def later(self, delay_s: float, act: Callable[[], None], /) -> None: ...


class Process:
    """One run of an instance, from its start to its end. Everything that it starts belongs to it."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.runs_freely = True
        self._is_dead = False
        self._is_paused = False
        self._kept: list[events.Handle] = []
        self._steps_left: int | None = None
        self._at_step: Callable[[], None] = lambda: None

    @property
    def is_dead(self) -> bool:
        return self._is_dead

    def die(self) -> None:
        """No code of it runs again."""
        self._is_dead = True
        self._note()

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    def pause(self) -> None:
        self._is_paused = True
        self._note()

    def resume(self) -> list[events.Handle]:
        """Go on; return the callbacks that were kept."""
        self._is_paused = False
        self._note()
        kept, self._kept = self._kept, []
        return kept

    def _note(self) -> None:
        self.runs_freely = not (self._is_dead or self._is_paused or self._steps_left is not None)

    def may_run(self, handle: events.Handle) -> bool:
        if self.is_dead:
            return False
        if self.is_paused:
            self._kept.append(handle)
            return False
        if self._steps_left is not None:
            self._steps_left -= 1
            if self._steps_left < 0:
                self._steps_left = None
                self._note()
                self._at_step()
                return not self.is_dead
        return True

    def after_steps(self, steps: int, act: Callable[[], None]) -> None:
        """Act in front of the process's callback with this number, counted from now on."""
        self._steps_left, self._at_step = steps, act
        self._note()


class Instance:
    """An instance of a service, over all its restarts."""

    def __init__(
        self,
        world: InstanceWorld,
        name: str,
        host: str,
        service: Service,
        arguments: tuple[Any, ...],
        restarts: bool,
    ) -> None:
        self.name = name
        #: The number of its starts.
        self.starts = 0
        self._world = world
        self._host = host
        self._service = service
        self._arguments = arguments
        self._restarts = restarts
        self._process: Process | None = None
        self._task: asyncio.Task[object] | None = None
        #: Those of killed processes, too: Python complains about a pending task that nobody holds.
        self._tasks: list[asyncio.Task[object]] = []
        self._stopping = False

    @property
    def is_running(self) -> bool:
        """Whether its process runs or stands still."""
        return self._task is not None and not self._task.done() and not self.process.is_dead

    @property
    def is_paused(self) -> bool:
        return self.is_running and self.process.is_paused

    @property
    def process(self) -> Process:
        """Its present process, or the last one."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Start a new process. Raises InputError if one runs."""
        if self.is_running:
            raise InputError(f"{self.name} runs already")
        self.starts += 1
        self._stopping = False
        process = self._process = Process(self.name, self._host)
        context = contextvars.copy_context()
        context.run(OWNER.set, process)
        self._world.tell(f"{self.name} starts" + (f", for the {_nth(self.starts)} time" * (self.starts > 1)))
        self._task = asyncio.get_running_loop().create_task(
            _exiting(self._service(*self._arguments)), name=self.name, context=context
        )
        self._tasks.append(self._task)
        self._task.add_done_callback(lambda task: self._ended(process, task), context=contextvars.Context())

    def _ended(self, process: Process, task: asyncio.Task[object]) -> None:
        if process.is_dead or process is not self._process:
            return
        process.die()
        self._world.network.end(process)
        problem = None if task.cancelled() else task.exception()
        if problem is None or self._stopping:
            self._world.tell(f"{self.name} has ended")
        elif self._restarts and not isinstance(problem, SimulationError):
            self._world.tell(f"{self.name} has failed: {_one_line(problem)}")
            self._world.later(RESTART_S, self._start_again)
        else:
            self._world.tell(f"{self.name} has failed: {_one_line(problem)}")
            failure = InstanceFailed(f"{self.name} has failed: {_one_line(problem)}")
            failure.__cause__ = problem
            self._world.fail(failure)

    def _start_again(self) -> None:
        if not self.is_running:
            self.start()

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """End it in order: its task is cancelled, as `asyncio.run` does at SIGINT, and may clean up for
        ``grace_s``; then it is killed."""
        if not self.is_running:
            return
        self._stopping = True
        self._world.tell(f"{self.name} is asked to stop")
        task = self._task
        assert task is not None
        task.cancel()
        await asyncio.wait([task], timeout=grace_s)
        if not task.done():
            self._world.tell(f"{self.name} has not stopped within {grace_s:g} s")
            self.kill()

    def kill(self) -> None:
        """End it like kill -9: none of its code runs again, and its system closes its connections."""
        if not self.is_running:
            return
        self._world.tell(f"{self.name} is killed")
        self.process.die()
        self._world.network.end(self.process)

    async def restart(self, grace_s: float = GRACE_S) -> None:
        """Stop it if it runs, and start it again."""
        await self.stop(grace_s)
        self.start()

    def pause(self) -> None:
        """Its code stands still, as with SIGSTOP or a long collection of garbage; its connections stay."""
        if self.is_running and not self.process.is_paused:
            self._world.tell(f"{self.name} stands still")
            self.process.pause()

    def resume(self) -> None:
        """End the pause: everything that came meanwhile, timers too, happens now."""
        if self.is_running and self.process.is_paused:
            self._world.tell(f"{self.name} goes on")
            for handle in self.process.resume():
                self._world.loop.run_later(handle)

    def __repr__(self) -> str:
        state = "paused" if self.is_paused else "running" if self.is_running else "ended"
        return f"<Instance {self.name}, {state}>"


async def _exiting(main: Coroutine[Any, Any, object]) -> None:
    """Let ``sys.exit`` end this process alone: asyncio would let SystemExit end the loop of all of them."""
    try:
        await main
    except SystemExit as found:
        if found.code:
            raise RuntimeError(f"sys.exit({found.code!r})") from found


def _one_line(problem: BaseException) -> str:
    text = str(problem).partition("\n")[0]
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


def _nth(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
