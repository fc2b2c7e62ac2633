"""`groupstorm serve`: a broker until a signal ends it."""

from __future__ import annotations

import asyncio
import dataclasses
import resource
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from groupstorm.coordinator.events import Event
from groupstorm.coordinator.server.broker import Broker
from groupstorm.coordinator.server.changes import Change
from groupstorm.coordinator.server.config import Endpoint
from groupstorm.coordinator.server.data_directory import DataDirectory
from groupstorm.coordinator.server.logs import log_closed, log_events
from groupstorm.coordinator.server.security.connection import connections
from groupstorm.coordinator.server.security.listener import PLAINTEXT, Security
from groupstorm.coordinator.server.shell import Server
from groupstorm.problems import InputError
from groupstorm.trace.directory import DirectorySink
from groupstorm.trace.schema import Source

#: A quiet group's events appear in the trace within this time.
TRACE_ROTATION_S = 2.0

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a broker listens, by which ``option`` of the user's, and which folders it writes into."""

    host: str
    port: int
    option: str
    trace: Path | None = None
    data: Path | None = None
    security: Security = PLAINTEXT


#: Makes the broker of what an earlier one has written, and of the time in ms since 1970.
MakeBroker = Callable[[Sequence[Change], int], Broker]
#: Is told the addresses, one per broker.
OnReady = Callable[[Sequence[Endpoint]], None]
#: Stands beside a server while it serves.
Companion = Callable[[Server], AbstractAsyncContextManager[object]]


def serve(
    make_broker: MakeBroker, place: Place, on_ready: OnReady, companion: Companion = nullcontext
) -> None:
    """Listen, call ``on_ready`` with the addresses, serve until SIGINT or SIGTERM.

    Raises InputError if the address cannot be listened on, or trace or data cannot be written.
    """
    _raise_file_limit()
    with asyncio.Runner(loop_factory=_fastest_loop()) as runner:
        runner.run(_serve(make_broker, place, on_ready, companion))


def _raise_file_limit() -> None:
    """Each connection is an open file; the system's soft limit is often 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _fastest_loop() -> LoopFactory | None:
    """uvloop where it is installed (extra `speed`): less CPU per request, see benchmarks/server.py."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: LoopFactory = uvloop.new_event_loop
    return factory


async def _serve(make_broker: MakeBroker, place: Place, on_ready: OnReady, companion: Companion) -> None:
    start_ms = time.time_ns() // 1_000_000
    keeping = _Keeping(place.data)
    try:
        broker = make_broker(keeping.read(), start_ms)
        keeping.begin(broker)
        await _serve_broker(broker, place, keeping, start_ms, on_ready, companion)
    finally:
        keeping.close()
    keeping.check()


async def _serve_broker(
    broker: Broker,
    place: Place,
    keeping: _Keeping,
    start_ms: int,
    on_ready: OnReady,
    companion: Companion,
) -> None:
    tracing = _Tracing(place.trace, keeping.ended)

    def on_events(time_us: int, events: Sequence[Event]) -> None:
        log_events(events)
        tracing.add(time_us, events)

    make_connection = connections(place.security)
    server = Server(broker, on_events, log_closed, keeping.add, start_ms, make_connection)
    try:
        await server.start(place.host, place.port)
    except OSError as problem:
        tracing.close()
        reason = problem.strerror or str(problem)
        raise InputError(f"{place.option}: cannot listen there: {reason}") from problem
    _follow_signals(server, keeping.ended)
    on_ready(server.endpoints)
    rotation = asyncio.ensure_future(tracing.rotate_regularly())
    try:
        async with companion(server):
            await keeping.ended.wait()
    finally:
        rotation.cancel()
        await server.stop()
        tracing.close()
    tracing.check()


def _follow_signals(server: Server, ended: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, server.move_every_coordinator)


class _Keeping:
    """The journal of `--data`, if there is one; a run ends when it cannot be written any more."""

    def __init__(self, folder: Path | None) -> None:
        self.ended = asyncio.Event()
        self._directory = None if folder is None else DataDirectory(folder)
        self._broker: Broker | None = None
        self._problem: InputError | None = None

    def read(self) -> list[Change]:
        return [] if self._directory is None else self._directory.read()

    def begin(self, broker: Broker) -> None:
        """From now on changes are of this broker."""
        self._broker = broker
        if self._directory is not None:
            self._directory.rewrite(broker.snapshot())

    def add(self, changes: Sequence[Change]) -> bool:
        """Whether they are kept, as far as that is wanted."""
        if self._directory is None or self._broker is None:
            return True
        if self._problem is not None:
            return False
        try:
            self._directory.append(changes)
            if self._directory.wants_rewriting:
                self._directory.rewrite(self._broker.snapshot())
        except InputError as problem:
            self._problem = problem
            self.ended.set()
        return self._problem is None

    def close(self) -> None:
        if self._directory is not None:
            self._directory.close()

    def check(self) -> None:
        """Raises InputError if not everything was kept."""
        if self._problem is not None:
            raise self._problem


class _Tracing:
    """The trace of a run that ends when somebody says so, or when the trace cannot be written any more."""

    def __init__(self, folder: Path | None, ended: asyncio.Event) -> None:
        self.ended = ended
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
