"""An asyncio event loop in virtual time: nothing waits, the clock jumps to the next timer. And the errors of
a simulation: what a service must not do inside it, and what a test learns of it.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Protocol, cast


class SimulationError(Exception):
    """Something in the simulation cannot go on."""


class NotSimulated(SimulationError):
    """Code has left the simulation: it sleeps, uses a socket or a thread. The message names the place."""


class Stuck(SimulationError):
    """Nothing will ever happen again, and the test still waits."""


class InstanceFailed(SimulationError):
    """An instance of a service has ended with an error, its cause."""


def not_simulated(what: str, remedy: str) -> NotSimulated:
    """The error for a call that leaves the simulation; it names the caller outside of the libraries."""
    return NotSimulated(f"{_caller()}: {what} inside of a simulation: {remedy}")


def never_waits() -> Stuck:
    """The error for a loop in which no time passes."""
    return Stuck(
        f"{_caller()}: a loop looks at the time and never waits, so that nothing else can run: await"
        " something in it (aiokafka's getmany waits for timeout_ms, by default not at all)"
    )


def _caller() -> str:
    """file:line of the innermost frame that is neither ours nor Python's own."""
    frame: FrameType | None = sys._getframe(1)
    innermost = None
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_OURS):
            innermost = innermost or frame
            if not (path.startswith(("<", _STANDARD)) and "site-packages" not in path):
                return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return "?" if innermost is None else f"{innermost.f_code.co_filename}:{innermost.f_lineno}"


_OURS = str(Path(__file__).parent)
_STANDARD = str(Path(sys.modules["os"].__file__ or "").parent)


MICROSECONDS = 1_000_000
#: Cancelled timers are removed from the queue when they are so many, and more than half of it.
_MANY_CANCELLED = 100
#: At one instant the loop turns so often at most: code that does not wait would stop the clock for ever.
MOST_TURNS = 200_000
#: A wait for no time takes so long: a service that polls without a pause turns a thousand times a second.
LEAST_DELAY_US = 1000

Callback = Callable[..., object]


class Owner(Protocol):
    """A process of the simulation. Its callbacks run only while it runs."""

    @property
    def host(self) -> str:
        """Its address."""

    @property
    def runs_freely(self) -> bool:
        """Whether it runs every callback at once: `may_run` need not be asked."""

    def may_run(self, handle: events.Handle) -> bool:
        """Whether to run the callback now. A process that stands still keeps it for later."""


#: The process that the present code belongs to; None: the test, and the broker.
OWNER: contextvars.ContextVar[Owner | None] = contextvars.ContextVar("groupstorm_owner", default=None)


class Network(Protocol):
    """Makes the loop's connections (`groupstorm.simulation.network`)."""

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, /
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]: ...

    def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, /) -> Any: ...


class _Numbered:
    """Makes the order of tasks in sets that of their creation: asyncio keeps them in sets, and Python would
    order these by addresses."""

    _number: int

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class _Handle(events.Handle):
    """A callback that is ready; made in one step, because a run of ten virtual minutes makes 100,000."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callback,
        args: tuple[Any, ...],
        loop: VirtualLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _Timer(asyncio.TimerHandle):
    """As `_Handle`, of a callback that is not ready yet."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callback,
        args: tuple[Any, ...],
        loop: VirtualLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = True

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            self._loop._timer_handle_cancelled(self)
            self._callback = self._args = None  # type: ignore[assignment]


class NumberedTask(_Numbered, asyncio.Task):  # type: ignore[type-arg]  # asyncio.Task is generic in stubs only
    def __init__(self, number: int, *arguments: Any, **options: Any) -> None:
        self._number = number  # before the task registers itself in a set
        super().__init__(*arguments, **options)


class NumberedFuture(_Numbered, asyncio.Future):  # type: ignore[type-arg]
    """`VirtualLoop.create_future` sets its number."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs what is ready in the order in which it became ready, as asyncio promises; then it sets the clock
    to the next timer. Of timers at the same microsecond ``tie`` decides.

    The clock is an integer of microseconds from 0 on.
    """

    #: `asyncio.BaseEventLoop` has these members; the stubs do not know them.
    _ready: deque[Any]
    _stopping: bool
    _closed: bool
    _check_closed: Callable[[], None]

    def __init__(self, tie: Callable[[int], int] = lambda number: number) -> None:
        """``tie``: the rank of the n-th timer among equals."""
        super().__init__()
        self.now_us = 0
        self.network: Network | None = None
        #: The test has gone wrong if it goes on until then.
        self.most_us: int | None = None
        #: Is called when nothing is ready, before the clock moves on; true if it has made something ready.
        self.before_advance: Callable[[], bool] | None = None
        self._tie = tie
        self._timers: list[tuple[int, int, int, asyncio.TimerHandle]] = []
        self._cancelled = 0
        self._timer_number = 0
        self._turns = 0
        self._object_number = 0
        self.set_task_factory(self._make_task)  # type: ignore[arg-type]  # the stubs know no context

    # time

    def time(self) -> float:
        return self.now_us / MICROSECONDS

    def call_at(  # type: ignore[override]  # the stubs bind the arguments to the callback
        self, when: float, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """A time after now that is now when it is rounded is the next microsecond: code that waits until its
        clock shows that time would ask again at this instant for ever."""
        when_us = round(when * MICROSECONDS)
        if when_us == self.now_us and when > self.time():
            when_us += 1
        return self.call_at_us(when_us, callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """A delay of less than a microsecond takes a while: code that waits for the rest of a time-out, or
        polls with ``timeout_ms=0``, would ask again at this instant for ever."""
        return self.call_at_us(
            self.now_us + (max(round(delay * MICROSECONDS), 0) or LEAST_DELAY_US),
            callback,
            *args,
            context=context,
        )

    def call_at_us(
        self, when_us: int, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As `call_at`, in microseconds."""
        if self._closed:
            self._check_closed()
        timer = _Timer(when_us / MICROSECONDS, callback, args, self, context)
        number = self._timer_number
        self._timer_number += 1
        heapq.heappush(self._timers, (max(when_us, self.now_us), self._tie(number), number, timer))
        return timer

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None:
        self._cancelled += 1
        if self._cancelled > _MANY_CANCELLED and self._cancelled * 2 > len(self._timers):
            self._timers = [one for one in self._timers if not one[3].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def _run_once(self) -> None:
        """Run until the loop is stopped."""
        ready = self._ready
        while not self._stopping:
            if not ready and (self.before_advance is None or not self.before_advance()):
                self._advance()
            self._turns += 1
            if self._turns > MOST_TURNS:
                raise Stuck(
                    f"no time passes at {self.time():.6f} s: something runs again and again without waiting"
                )
            for _ in range(len(ready)):
                handle = ready.popleft()
                if handle._cancelled:
                    continue
                owner = handle._context.get(OWNER)
                if owner is not None and not (owner.runs_freely or owner.may_run(handle)):
                    continue
                try:
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as problem:  # noqa: BLE001  # as asyncio's handles do
                    self._has_failed(handle, problem)

    def _has_failed(self, handle: events.Handle, problem: BaseException) -> None:
        self.call_exception_handler(
            {"message": f"Exception in callback {handle}", "exception": problem, "handle": handle}
        )

    def _advance(self) -> None:
        """Set the clock to the next timer, and make ready all that are due then."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][3]._cancelled:
            heapq.heappop(timers)
            self._cancelled = max(0, self._cancelled - 1)
        if not timers:
            raise Stuck("nothing will ever happen again: no timer is set, and no message is under way")
        now_us = timers[0][0]
        if now_us > self.now_us:
            self.now_us = now_us
            self._turns = 0
        if self.most_us is not None and now_us > self.most_us:
            raise Stuck(f"the simulation goes on after {self.most_us / MICROSECONDS:g} virtual seconds")
        while timers and timers[0][0] <= now_us:
            timer = heapq.heappop(timers)[3]
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer._cancelled:
                self._cancelled = max(0, self._cancelled - 1)
            else:
                ready.append(timer)

    def call_soon(  # type: ignore[override]
        self, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> events.Handle:
        if self._closed:
            self._check_closed()
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> events.Handle:
        return self.call_soon(callback, *args, context=context)

    def run_later(self, handle: events.Handle) -> None:
        """Put a callback that was kept behind those that are ready."""
        self._ready.append(handle)

    # tasks and futures

    def create_future(self) -> asyncio.Future[Any]:
        self._object_number = number = self._object_number + 1
        future = NumberedFuture(loop=self)
        future._number = number
        return future

    def _make_task(
        self, _loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        self._object_number += 1
        return NumberedTask(self._object_number, coroutine, loop=self, **options)

    # the network

    def _connected(self) -> Network:
        assert self.network is not None
        return self.network

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **options: Any
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        if options.get("ssl"):
            raise not_simulated("TLS", "connect without; test TLS against groupstorm.broker(security=...)")
        return await self._connected().connect(protocol_factory, host, port)

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_options: Any
    ) -> Any:
        return self._connected().listen(protocol_factory, host, port)

    async def getaddrinfo(self, host: Any, port: Any, **_options: Any) -> Any:
        """Every name stands for itself."""
        import socket

        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callback, *args: Any
    ) -> NoReturn:
        raise not_simulated(
            f"a thread ({getattr(func, '__qualname__', func)})",
            "threads run in real time; call the function directly, or replace it in the test",
        )

    def _leaves(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise not_simulated("a socket", "connect with asyncio to world.bootstrap_servers")

    add_reader = add_writer = cast("Any", _leaves)
    sock_connect = sock_recv = sock_sendall = sock_accept = cast("Any", _leaves)
    create_datagram_endpoint = create_unix_connection = subprocess_exec = cast("Any", _leaves)

    def _process_events(self, event_list: Any) -> None:
        """There are no selectors."""

    def _write_to_self(self) -> None:
        """There is no other thread to be woken by."""
