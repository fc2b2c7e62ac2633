"""One run in real time, from its first event to its figures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from groupstorm.clients.brokers.contract import BrokerContext, OnCoordinatorEvents, RunningBroker
from groupstorm.clients.wire.admin import await_coordinator, create_topics, delete_group, delete_topics
from groupstorm.clients.wire.cluster import Cluster
from groupstorm.coordinator.events import Event
from groupstorm.problems import InputError
from groupstorm.storms.ending import Ending, Progress
from groupstorm.storms.figures import Figures, FiguresAccumulator
from groupstorm.storms.live.clock import Spawn
from groupstorm.storms.live.world import RealWorld
from groupstorm.storms.plan import Plan
from groupstorm.storms.scenario import ResolvedScenario
from groupstorm.storms.steps import topic_names
from groupstorm.storms.streams.settings import STREAMS
from groupstorm.storms.telling import tell_beginning, tell_end
from groupstorm.storms.world import BROKER_SETTINGS, GROUP
from groupstorm.trace.rows import TraceSink
from groupstorm.trace.writer import Tee

#: How often a run looks whether it has come to its end.
CHECK_INTERVAL_S = 0.2

#: More members than this are not what one process can drive in real time.
MEMBERS_MAX = 500

_ADMIN = "groupstorm-admin"
_REQUEST_TIMEOUT_MS = 30_000


#: Makes a broker with Kafka's options, which tells what its coordinator does if it can.
OpenBroker = Callable[[Mapping[str, str], OnCoordinatorEvents], BrokerContext]


def play(
    scenario: ResolvedScenario, open_broker: OpenBroker, sink: TraceSink, progress: Progress | None = None
) -> Figures:
    """Play ``scenario`` against a broker; every event goes to ``sink``. Returns the run's figures.

    Raises InputError for a scenario that cannot be played in real time, and what ``open_broker`` raises.
    """
    if scenario.settings.choice("application") == STREAMS:
        raise InputError(
            "application: streams: Kafka Streams members are emulated in virtual time only, without --on"
        )
    members = scenario.settings.integer("members")
    if members > MEMBERS_MAX:
        raise InputError(f"members: {members}: at most {MEMBERS_MAX} run in real time")
    accumulator = FiguresAccumulator()
    asyncio.run(_play(scenario, open_broker, Tee(sink, accumulator), progress))
    return accumulator.figures()


async def _play(
    scenario: ResolvedScenario, open_broker: OpenBroker, sink: TraceSink, progress: Progress | None
) -> None:
    options = {name: str(scenario.settings.integer(name)) for name in BROKER_SETTINGS}
    worlds: list[RealWorld] = []

    def on_events(events: Sequence[Event]) -> None:
        for world in worlds:
            for event in events:
                world.coordinator_event(event)

    async with open_broker(options, on_events) as broker, _cluster(broker) as cluster:
        topics = {
            broker.prefix + name: scenario.settings.integer("partitions")
            for name in topic_names(scenario.settings)
        }
        async with _topics(broker, topics, cluster), _tasks() as spawn:
            world = RealWorld(scenario, broker, cluster, topics, sink, spawn)
            worlds.append(world)
            await _storm(world, progress)
            worlds.clear()


@asynccontextmanager
async def _tasks() -> AsyncIterator[Spawn]:
    """Tasks that end with the context; what one of them raises ends it."""
    running: set[asyncio.Task[None]] = set()
    try:
        async with asyncio.TaskGroup() as group:

            def spawn(work: Coroutine[Any, Any, None]) -> None:
                task = group.create_task(work)
                running.add(task)
                task.add_done_callback(running.discard)

            yield spawn
            for task in tuple(running):
                task.cancel()
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None


async def _storm(world: RealWorld, progress: Progress | None) -> None:
    tell_beginning(world)
    await _to_the_end(world, Plan(world), progress)
    world.checkers.finish(world)
    tell_end(world)
    world.end()


async def _to_the_end(world: RealWorld, plan: Plan, progress: Progress | None) -> None:
    """Until `Ending` says so; then the tail."""
    ending = Ending(world, plan, progress)
    while not ending.is_reached():
        await asyncio.sleep(CHECK_INTERVAL_S)
    await asyncio.sleep(ending.tail_us / 1_000_000)


@asynccontextmanager
async def _cluster(broker: RunningBroker) -> AsyncIterator[Cluster]:
    cluster = Cluster(broker.bootstrap, _ADMIN, _REQUEST_TIMEOUT_MS, broker.security)
    try:
        yield cluster
    finally:
        cluster.close()


@asynccontextmanager
async def _topics(broker: RunningBroker, topics: Mapping[str, int], cluster: Cluster) -> AsyncIterator[None]:
    """Topics for the run; on a cluster that outlives it they and the group are taken away again."""
    await create_topics(cluster, topics)
    try:
        await await_coordinator(cluster, broker.prefix + GROUP)
        yield
    finally:
        if broker.prefix:
            await delete_topics(cluster, tuple(topics))
            await delete_group(cluster, broker.prefix + GROUP)
