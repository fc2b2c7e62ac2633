"""`groupstorm serve`: a broker until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from groupstorm.coordinator.events import Event
from groupstorm.coordinator.server.broker import Broker
from groupstorm.coordinator.server.config import Endpoint
from groupstorm.coordinator.server.logs import log_closed, log_events
from groupstorm.coordinator.server.shell import Server
from groupstorm.problems import InputError
from groupstorm.trace.directory import DirectorySink
from groupstorm.trace.schema import Source

#: A quiet group's events appear in the trace within this time.
TRACE_ROTATION_S = 2.0

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def serve(
    broker: Broker, host: str, port: int, trace: Path | None, on_ready: Callable[[Endpoint], None]
) -> None:
    """Listen, call ``on_ready`` with the address, serve until SIGINT or SIGTERM.

    Raises InputError if the address cannot be listened on or the trace cannot be written.
    """
    with asyncio.Runner(loop_factory=_fastest_loop()) as runner:
        runner.run(_serve(broker, host, port, trace, on_ready))


def _fastest_loop() -> LoopFactory | None:
    """uvloop where it is installed (extra `speed`): less CPU per request, see benchmarks/server.py."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: LoopFactory = uvloop.new_event_loop
    return factory


async def _serve(
    broker: Broker, host: str, port: int, trace: Path | None, on_ready: Callable[[Endpoint], None]
) -> None:
    tracing = _Tracing(trace)

    def on_events(time_us: int, events: Sequence[Event]) -> None:
        log_events(events)
        tracing.add(time_us, events)

    server = Server(broker, on_events, log_closed)
    try:
        endpoint = await server.start(host, port)
    except OSError as problem:
        tracing.close()
        reason = problem.strerror or str(problem)
        raise InputError(f"--host {host} --port {port}: cannot listen there: {reason}") from problem
    _end_on_signals(tracing.ended)
    on_ready(endpoint)
    rotation = asyncio.ensure_future(tracing.rotate_regularly())
    try:
        await tracing.ended.wait()
    finally:
        rotation.cancel()
        await server.stop()
        tracing.close()
    tracing.check()


def _end_on_signals(ended: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)


class _Tracing:
    """The trace of a run that ends when somebody says so, or when the trace cannot be written any more."""

    def __init__(self, folder: Path | None) -> None:
        self.ended = asyncio.Event()
        self._folder = folder
        self._problem: OSError | None = None
        self._sink: DirectorySink | None = None
        if folder is not None:
            try:
                self._sink = DirectorySink(folder)
            except OSError as problem:
                raise self._refusal(problem) from problem

    def add(self, time_us: int, events: Sequence[Event]) -> None:
        def write(sink: DirectorySink) -> None:
            for event in events:
                sink.add(time_us, Source.COORDINATOR, event)

        self._guarded(write)

    async def rotate_regularly(self) -> None:
        while True:
            await asyncio.sleep(TRACE_ROTATION_S)
            self._guarded(DirectorySink.rotate)

    def close(self) -> None:
        self._guarded(DirectorySink.close)

    def check(self) -> None:
        """Raises InputError if the trace is not complete."""
        if self._problem is not None:
            raise self._refusal(self._problem)

    def _guarded(self, write: Callable[[DirectorySink], None]) -> None:
        if self._sink is None or self._problem is not None:
            return
        try:
            write(self._sink)
        except OSError as problem:
            self._problem = problem
            self.ended.set()

    def _refusal(self, problem: OSError) -> InputError:
        return InputError(f"--trace {self._folder}: cannot be written: {problem.strerror or problem}")
