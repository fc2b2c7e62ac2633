"""`groupstorm serve`: a broker until a signal ends it."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, closing, nullcontext, suppress
from pathlib import Path

import structlog

from groupstorm.broker.broker import Broker
from groupstorm.broker.broker_journal import BrokerJournal, BrokerTrace, MakeBroker, trace_in_folder, traced
from groupstorm.broker.security.connection import connections
from groupstorm.broker.security.listener import PLAINTEXT, ListenerSecurity
from groupstorm.broker.shell import OnEvents, Server
from groupstorm.held_signals import heeded_stop_signals
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events.coordinator import Event
from groupstorm.trace.log import configure, log_event
from groupstorm.trace.topic import TopicAddress, TopicSink
from groupstorm.trace.writer import ROTATION_S

#: When Python looks for objects that refer to each other: among young ones only. To look at all takes longer
#: the more there are, 0.2 s with 20,000 topics, and everybody waits. The broker drops no old ones in cycles.
CYCLES = (5_000, 5, 1_000_000)

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@dataclasses.dataclass(frozen=True, slots=True)
class ServeOptions:
    """The address on which a broker listens, and the folders that it writes into. ``address_option``: host
    and port as the user has named them, for messages; ``accept_loss``: go on with the rest of a damaged
    journal."""

    host: str
    port: int
    address_option: str
    trace: Path | None = None
    data: Path | None = None
    accept_loss: bool = False
    trace_to: TopicAddress | None = None
    security: ListenerSecurity = PLAINTEXT


#: Receives the addresses, one per broker.
OnReady = Callable[[Sequence[Endpoint]], None]
#: Stands beside a server while it serves.
Companion = Callable[[Server], AbstractAsyncContextManager[object]]


def serve(
    make_broker: MakeBroker, options: ServeOptions, on_ready: OnReady, companion: Companion = nullcontext
) -> None:
    """Listen, call ``on_ready`` with the addresses, serve until a stop signal comes.

    Raises InputError if the address cannot be listened on or a folder cannot be used, and OutputError, at the
    end, if the trace is incomplete or the journal could not be written.
    """
    _raise_file_limit()
    gc.set_threshold(*CYCLES)
    with asyncio.Runner(loop_factory=_fastest_loop()) as runner:
        runner.run(_serve(make_broker, options, on_ready, companion))


def _raise_file_limit() -> None:
    """Each connection is an open file; the system's soft limit is often 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _fastest_loop() -> LoopFactory | None:
    """uvloop if it is installed (extra `speed`): less CPU per request, see benchmarks/server.py."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: LoopFactory = uvloop.new_event_loop
    return factory


async def _serve(
    make_broker: MakeBroker, options: ServeOptions, on_ready: OnReady, companion: Companion
) -> None:
    start_ms = time.time_ns() // 1_000_000
    ended = asyncio.Event()
    with ExitStack() as open_folders:
        journal = None
        if options.data is not None:
            journal = BrokerJournal(options.data, ended.set, log_problem, options.accept_loss)
            open_folders.enter_context(closing(journal))
        broker = make_broker((), start_ms) if journal is None else journal.restart(make_broker, start_ms)
        traces = [open_folders.enter_context(closing(trace)) for trace in _traces(options)]
        server = Server(
            broker,
            _log_and_trace(broker, traces),
            log_closed,
            None if journal is None else journal.add,
            start_ms,
            connections(options.security),
        )
        await _listen(server, options)
        _follow_signals(server, ended)
        on_ready(server.endpoints)
        await _serve_until(ended, server, traces, companion, journal)
    if journal is not None:
        journal.check()
    for trace in traces:
        trace.check()


def _traces(options: ServeOptions) -> Iterator[BrokerTrace]:
    """The traces that were asked for. Raises InputError."""
    if options.trace is not None:
        yield trace_in_folder(options.trace, f"--trace {options.trace}", log_problem)
    if options.trace_to is not None:
        named = f"--trace-to {options.trace_to}"
        yield BrokerTrace(TopicSink(options.trace_to, named, may_wait=False), named, log_problem)


def _log_and_trace(broker: Broker, traces: Sequence[BrokerTrace]) -> OnEvents:
    def on_events(time_us: int, events: Sequence[Event]) -> None:
        log_events(time_us, events)
        for trace in traces:
            trace.add(time_us, [*traced(broker, events)])

    return on_events


async def _listen(server: Server, options: ServeOptions) -> None:
    try:
        await server.start(options.host, options.port)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise InputError(f"{options.address_option}: cannot listen there: {reason}") from problem


async def _serve_until(
    ended: asyncio.Event,
    server: Server,
    traces: Sequence[BrokerTrace],
    companion: Companion,
    journal: BrokerJournal | None,
) -> None:
    rotation = asyncio.ensure_future(_rotate_regularly(traces)) if traces else None
    check = None if journal is None else asyncio.ensure_future(_check_unread(journal, ended))
    try:
        async with companion(server):
            await ended.wait()
    finally:
        if rotation is not None:
            rotation.cancel()
        if journal is not None:
            journal.checkpoint()  # of the groups with their members, who are about to be answered
        await server.stop()
        if check is not None:
            await check


async def _check_unread(journal: BrokerJournal, ended: asyncio.Event) -> None:
    """Meanwhile the broker serves: the restart has not waited for it."""
    problem = await asyncio.to_thread(journal.check_unread, ended.is_set)
    if problem is not None:
        journal.fail(problem)


async def _rotate_regularly(traces: Sequence[BrokerTrace]) -> None:
    while True:
        await asyncio.sleep(ROTATION_S)
        for trace in traces:
            trace.rotate()


def _follow_signals(server: Server, ended: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in heeded_stop_signals():
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, server.apply, Broker.move_every_coordinator)


__all__ = ["configure", "log_closed", "log_events", "log_problem"]


def log_events(_time_us: int, events: Sequence[Event]) -> None:
    """Log one line per event; the clock of the log is the real one."""
    with suppress(OSError):
        for event in events:
            log_event(event)


def log_closed(peer: str, why: str) -> None:
    """Log a connection that the broker has closed."""
    with suppress(OSError):
        structlog.get_logger().info("connection closed", peer=peer, why=why)


def log_problem(sentence: str) -> None:
    """Log a thing that the broker has given up while it serves on."""
    with suppress(OSError):
        structlog.get_logger().error(sentence)
