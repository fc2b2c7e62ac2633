"""A run in real time: a scenario against a broker, from its first event to its figures and its files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from groupstorm.clients.brokers import BrokerKind, open_broker
from groupstorm.clients.brokers.contract import (
    BrokerContext,
    BrokerUnavailable,
    OnCoordinatorEvents,
    RunningBroker,
    refused,
)
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.clients.wire.admin import await_coordinator, create_topics, delete_group, delete_topics
from groupstorm.clients.wire.admin import broker_options as actual_options
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.history.reasons import GapReasons
from groupstorm.problems import InputError
from groupstorm.stoppable import run_stoppable
from groupstorm.storms.live.clock import tasks
from groupstorm.storms.live.real_clients.libraries import Library
from groupstorm.storms.live.real_clients.processes import client_parts
from groupstorm.storms.live.real_clients.world import ClientWorld
from groupstorm.storms.live.world import RealWorld, protocols
from groupstorm.storms.runs.run import Run, chosen_assignors, record
from groupstorm.storms.runs.step_runner import (
    EndCondition,
    Progress,
    StepRunner,
    emit_run_end,
    emit_run_start,
)
from groupstorm.storms.scenario.consistency import is_shared
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.setting_names import NONE, STREAMS
from groupstorm.storms.scenario.settings import BY_NAME, Settings
from groupstorm.storms.scenario.steps import VIRTUAL_STEPS, refuse_chaos_steps
from groupstorm.storms.scenario.topics import topic_partitions
from groupstorm.storms.world.broker import BROKER_SETTINGS, GROUP, broker_options
from groupstorm.trace.events.coordinator import Event
from groupstorm.trace.rows import TraceSink
from groupstorm.trace.writer import Tee
from groupstorm.wording import listed

#: The interval at which a run checks whether it is over.
CHECK_INTERVAL_S = 0.2

#: One process cannot drive more members in real time.
MEMBERS_MAX = 500

#: Settings that have no effect on real members.
VIRTUAL_SETTINGS = ("topic_pattern", "slow_records", "gc_pause_ms", "clock_drift_ppm", "members_per_pod")

#: Options of groups that are emulated in virtual time only.
_OF_VIRTUAL_GROUPS: Final = ("group.share.", "group.streams.")

_ADMIN = "groupstorm-admin"
_REQUEST_TIMEOUT_MS = 30_000
#: A run asks the cluster so often whether it is there, and ends when it has not answered for so long.
ASKED_EVERY_S: Final = 5
SILENT_MAX_S: Final = 30


#: Opens a broker with Kafka's options; a broker that can emits the events of its coordinator.
OpenBroker = Callable[[Mapping[str, str], OnCoordinatorEvents], BrokerContext]


def run_on(
    scenario: ResolvedScenario,
    folder: Path,
    trace_format: str,
    kind: BrokerKind,
    progress: Progress | None = None,
    log: TraceSink | None = None,
    clients: Library | None = None,
) -> Run:
    """Run against a broker and write the same files as a run in virtual time into ``folder``.

    ``clients``: the library whose consumers are the members; None: our own wire members.
    Time is real: another run of the same seed takes the same steps, not at the same microseconds. Raises
    InputError for a folder that holds something else, a scenario that cannot run in real time and a broker
    that cannot be reached.
    """
    _ = chosen_assignors(scenario)  # before a broker is started
    if clients is not None:
        clients.check_settings(scenario.settings)
    elif any(own.choice("auto.offset.reset") == NONE for own in scenario.settings.of_profiles()):
        raise InputError(f"auto.offset.reset: {NONE}: in virtual time, or with a real library (--with)")
    try:
        return record(
            scenario,
            folder,
            trace_format,
            lambda sink, gaps: play(scenario, partial(open_broker, kind), sink, progress, clients, gaps),
            log,
            real_time={"on": kind.name} | ({} if clients is None else {"with": clients.name}),
        )
    except (BrokerUnavailable, ConnectionLost) as missing:
        raise refused(kind.name, missing) from missing


def play(
    scenario: ResolvedScenario,
    opening: OpenBroker,
    sink: TraceSink,
    progress: Progress | None = None,
    clients: Library | None = None,
    gaps: GapReasons | None = None,
) -> Figures:
    """Play ``scenario`` against a broker; every event goes to ``sink``. Returns the run's figures.

    ``clients``: the library whose consumers are the members; None: our own wire members.
    ``gaps``: what un-owned time was spent on.
    Raises InputError for a scenario that cannot be played in real time, and what ``opening`` raises.
    """
    if scenario.settings.choice("application") == STREAMS:
        raise InputError(
            "application: streams: Kafka Streams members are emulated in virtual time only, without --on"
        )
    if is_shared(scenario.settings):
        raise InputError(
            "group.protocol: share: share groups are emulated in virtual time only, without --on"
        )
    refuse_chaos_steps(scenario.steps)
    for number, step in enumerate(scenario.steps, start=1):
        if step.do in VIRTUAL_STEPS:
            raise InputError(f"steps: {number}: do: {step.do}: in virtual time only, without --on")
    for name, _ in scenario.settings.changed(VIRTUAL_SETTINGS):
        raise InputError(f"{name}: in virtual time only, without --on")
    members = scenario.settings.integer("members")
    if members > MEMBERS_MAX:
        raise InputError(f"members: {members}: at most {MEMBERS_MAX} run in real time")
    if clients is not None:
        clients.check_settings(scenario.settings)
    accumulator = FiguresAccumulator(listener=gaps)
    run_stoppable(lambda: _play(scenario, opening, Tee(sink, accumulator), progress, clients))
    return accumulator.figures()


async def _play(
    scenario: ResolvedScenario,
    opening: OpenBroker,
    sink: TraceSink,
    progress: Progress | None,
    clients: Library | None,
) -> None:
    options = _options(scenario.settings)
    worlds: list[RealWorld] = []

    def on_events(events: Sequence[Event]) -> None:
        for world in worlds:
            for event in events:
                world.coordinator_event(event)

    async with opening(options, on_events) as broker, _cluster(broker) as cluster:
        await _check_options(broker, cluster, options)
        topics = {broker.prefix + name: count for name, count in topic_partitions(scenario.settings).items()}
        async with _topics(broker, topics, cluster), tasks() as spawn:
            spawn(_answers(broker, cluster))
            if clients is None:
                world = RealWorld(scenario, broker, cluster, topics, sink, spawn)
                worlds.append(world)
                await _storm(world, progress)
            else:
                async with client_parts(clients, scenario, broker, topics, spawn) as parts:
                    world = ClientWorld(scenario, broker, cluster, topics, sink, spawn, clients, parts)
                    worlds.append(world)
                    await _storm(world, progress)
            worlds.clear()


def _options(settings: Settings) -> Mapping[str, str]:
    """The broker's options; those of consumer groups only if members speak that protocol."""
    options = broker_options(settings)
    names = options if GroupProtocol.CONSUMER in protocols(settings) else BROKER_SETTINGS
    return {name: options[name] for name in names if not name.startswith(_OF_VIRTUAL_GROUPS)}


async def _check_options(broker: RunningBroker, cluster: ClusterClient, options: Mapping[str, str]) -> None:
    """A broker that runs already keeps its options. Raises InputError if the scenario has other ones; bounds
    of options, which no scenario has, follow the values that are compared."""
    actual = await actual_options(cluster, options)
    for name, value in options.items():
        if name in BY_NAME and actual.get(name, value) != value:
            raise InputError(
                f"{name}: {value}: the broker at {broker.address} has {actual[name]}: "
                f"--set {name}={actual[name]}, or change the broker"
            )


async def _storm(world: RealWorld, progress: Progress | None) -> None:
    emit_run_start(world)
    ending = EndCondition(world, StepRunner(world), progress)
    while not ending.is_met():
        await asyncio.sleep(CHECK_INTERVAL_S)
    for _ in range(10):
        await asyncio.sleep(ending.tail_us / 10_000_000)
        if progress is not None:  # rows of the trace so far become readable
            progress(world.clock.now_us, "settling")
    world.write_trace()
    world.invariants.finish(world, world.clock.now_us)
    emit_run_end(world)
    world.end()


async def _answers(broker: RunningBroker, cluster: ClusterClient) -> None:
    """Watch the cluster. Raises ConnectionLost, which ends the run, if it is silent for too long."""
    answered_s = time.monotonic()
    while True:
        await asyncio.sleep(ASKED_EVERY_S)
        try:
            await cluster.find_coordinator(broker.prefix + GROUP)
            answered_s = time.monotonic()
        except ConnectionLost as lost:
            if (silent_s := time.monotonic() - answered_s) >= SILENT_MAX_S:
                raise ConnectionLost(f"no answer for {silent_s:.0f} s during the run: {lost}") from lost


@asynccontextmanager
async def _cluster(broker: RunningBroker) -> AsyncIterator[ClusterClient]:
    cluster = ClusterClient(broker.bootstrap, _ADMIN, _REQUEST_TIMEOUT_MS, broker.security)
    try:
        yield cluster
    finally:
        cluster.close()


@asynccontextmanager
async def _topics(
    broker: RunningBroker, topics: Mapping[str, int], cluster: ClusterClient
) -> AsyncIterator[None]:
    """Topics for the run; if the cluster outlives the run, they and the group are deleted behind it."""
    await create_topics(cluster, topics)
    try:
        await await_coordinator(cluster, broker.prefix + GROUP)
        yield
    finally:
        if broker.prefix:
            try:
                await delete_topics(cluster, tuple(topics))
                await delete_group(cluster, broker.prefix + GROUP)
            except ConnectionLost as lost:
                left = f"{listed(sorted(topics))} and the group {broker.prefix + GROUP} are left there"
                raise ConnectionLost(f"{lost}; the topics {left}") from lost
