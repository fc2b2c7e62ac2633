"""Scenarios in real time over TCP: against the emulator with its own events, and with inferred events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import pytest

from groupstorm.clients.brokers import emulated
from groupstorm.clients.brokers.contract import OnCoordinatorEvents, RunningBroker
from groupstorm.clients.brokers.jars import kafka_jars
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.figures import Figures
from groupstorm.problems import InputError
from groupstorm.storms.live import play as live_play
from groupstorm.storms.live.play import OpenBroker, play
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.scenario.files import ResolvedScenario, parse
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.schema import Source
from tests.needs import needed
from tests.soaking import in_soak
from tests.storms.storms_in_memory import START, MemorySink
from tests.storms.storms_in_memory import scenario as scenario_of

SCENARIO = """
name: two-restarts
question: what do two restarts cost?
settings:
  members: 3
  partitions: 6
  partition.assignment.strategy: [cooperative-sticky]
  start_ms: {exactly: 300}
  ready_ms: {exactly: 100}
  stop_grace_ms: {exactly: 50}
  heartbeat.interval.ms: 200
  session.timeout.ms: 6000
  group.initial.rebalance.delay.ms: 300
  poll_interval_ms: 50
  tail_ms: 300
variants:
  cooperative: {}
  eager: {partition.assignment.strategy: [range]}
  static: {group.instance.id: ordinal}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 1500, do: restart, members: [0]}
  - {at_ms: 2500, do: busy, members: [1], for_ms: 300}
  - {at_ms: 2600, do: pause, members: [2], for_ms: 300}
  - {at_ms: 3200, do: restart, members: [1]}
"""

PLAYED_AT_MOST = 3

#: The settings of the scenario's members for the protocol of KIP-848.
CONSUMER: dict[str, Any] = {
    "group.protocol": "consumer",
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.session.timeout.ms": 6_000,
}

HELD = {"held"}

Kind = TypeVar("Kind")


def states(memory: MemorySink) -> list[tuple[str, int]]:
    """The states that the group went to, with their generations."""
    return [
        (event.state, event.generation)
        for _, _, event in memory.rows
        if isinstance(event, events.GroupStateChanged)
    ]


def scenario(variant: str = "cooperative", **settings: Any) -> ResolvedScenario:
    return parse(SCENARIO, "yaml", "test").resolve(variant, 0, settings)


def consumer_scenario(variant: str = "consumer") -> ResolvedScenario:
    """Return the steps for members of the consumer protocol, whose broker has session and heartbeat."""
    classic = ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms")
    lines = [line for line in SCENARIO.splitlines() if not line.strip().startswith(classic)]
    text = "\n".join(lines).replace("cooperative: {}", "consumer: {}")
    return parse(text, "yaml", "test").resolve(variant, 0, CONSUMER)


def migration(variant: str = "cooperative") -> ResolvedScenario:
    """Two members are restarted one after the other, twice: to the consumer protocol, and back."""
    began = SCENARIO[: SCENARIO.index("steps:")]
    restarts = "".join(
        f"  - {{at_ms: {at_ms}, do: rolling-restart, settings: {{group.protocol: {protocol}}}}}\n"
        for at_ms, protocol in ((2_000, "consumer"), (6_000, "classic"))
    )
    steps = f"steps:\n  - {{at_ms: 0, do: start}}\n{restarts}"
    fast = {name: value for name, value in CONSUMER.items() if name != "group.protocol"}
    return parse(began + steps, "yaml", "test").resolve(
        variant, 0, {**fast, "members": 2, "ready_ms": {"exactly": 500}}
    )


def played(resolved: ResolvedScenario, open_broker: OpenBroker) -> tuple[MemorySink, Figures]:
    sink = MemorySink()
    return sink, play(resolved, open_broker, sink)


def played_as_simulated(resolved: ResolvedScenario, open_broker: OpenBroker) -> tuple[MemorySink, MemorySink]:
    """The rows in real and in virtual time.

    On a busy machine two restarts may fall into one round: then they are played again.
    """
    virtual = MemorySink()
    expected = simulate(resolved, chosen_assignors(resolved), virtual).generations
    generations: list[int | None] = []
    while True:
        real, figures = played(resolved, open_broker)
        assert set((figures.invariants or {}).values()) == HELD
        generations.append(figures.generations)
        if figures.generations == expected:
            return real, virtual
        assert len(generations) < PLAYED_AT_MOST, f"{generations}, not {expected}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "resolved",
    [
        pytest.param(scenario(), id="cooperative"),
        pytest.param(scenario("eager"), id="eager"),
        pytest.param(scenario("static"), id="static"),
        pytest.param(consumer_scenario(), id="consumer"),
        pytest.param(consumer_scenario("static"), id="static-consumer"),
    ],
)
def test_a_scenario_runs_against_the_emulator(resolved: ResolvedScenario) -> None:
    real, virtual = played_as_simulated(resolved, emulated)
    assert [time_us for time_us, _, _ in real.rows] == sorted(time_us for time_us, _, _ in real.rows)
    assert member_event_names(real) == member_event_names(virtual)


def test_a_run_ends_although_processes_that_fail_are_started_again() -> None:
    began = SCENARIO[: SCENARIO.index("steps:")]
    start = parse(began + "steps: [{at_ms: 0, do: start}]\n", "yaml", "test")
    _, figures = played(start.resolve("cooperative", 0, {"restart_failed": True}), emulated)
    assert figures.generations == 1


def test_the_rows_of_a_run_become_readable_in_its_quiet_end_too() -> None:
    """Its progress closes the files of `run --trace`."""
    began = SCENARIO[: SCENARIO.index("steps:")]
    start = parse(began + "steps: [{at_ms: 0, do: start}]\n", "yaml", "test")
    sink, asked_us = MemorySink(), list[int]()
    resolved = start.resolve("cooperative", 0, {"tail_ms": 2_000})
    play(resolved, emulated, sink, lambda now_us, _: asked_us.append(now_us))
    assert sink.rows[-1][0] - asked_us[-1] < 1_000_000


def test_a_run_whose_broker_is_gone_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_play, "ASKED_EVERY_S", 0.1)
    monkeypatch.setattr(live_play, "SILENT_MAX_S", 0.5)

    @asynccontextmanager
    async def gone_at_the_first_event(
        options: Mapping[str, str], on_events: OnCoordinatorEvents
    ) -> AsyncIterator[RunningBroker]:
        closing: list[asyncio.Task[None]] = []

        def seen(found: Sequence[events.Event]) -> None:
            on_events(found)
            if not closing:
                closing.append(asyncio.get_running_loop().create_task(stack.aclose()))

        async with AsyncExitStack() as stack:
            yield await stack.enter_async_context(emulated(options, seen))

    with pytest.raises(ConnectionLost, match=r"no answer for \d s during the run: .*connection refused"):
        played(scenario(), gone_at_the_first_event)


@pytest.mark.slow
def test_members_of_kafka_python_pause_during_rounds_in_real_time_too() -> None:
    """On a busy machine a session may end, and partitions are lost: then it is played again."""
    resolved = scenario(client_profile=["kafka-python"])
    virtual = MemorySink()
    simulate(resolved, chosen_assignors(resolved), virtual)
    for _ in range(PLAYED_AT_MOST):
        real, figures = played(resolved, emulated)
        assert set((figures.invariants or {}).values()) == HELD
        if member_event_names(real) == member_event_names(virtual):
            break
    assert member_event_names(real) == member_event_names(virtual)
    for played_events in (real, virtual):
        seen = {type(event) for _, _, event in played_events.rows}
        assert {member_events.PartitionsPaused, member_events.PartitionsResumed} <= seen
    standing = [event for _, _, event in real.rows if isinstance(event, member_events.PartitionsResumed)]
    assert all(offset >= 0 for event in standing for offset in event.positions)


def member_event_names(memory: MemorySink) -> set[str]:
    """Without partitions_paused: a partition that has no position yet has none, and that depends on the
    milliseconds between two heartbeats."""
    names = {type(event).__name__ for _, source, event in memory.rows if source != str(Source.COORDINATOR)}
    return names - {member_events.PartitionsPaused.__name__}


class Silent:
    """The emulator stands for a broker that emits nothing; its own events are kept for the comparison."""

    def __init__(self) -> None:
        self.emitted: list[events.Event] = []

    @asynccontextmanager
    async def __call__(
        self, options: Mapping[str, str], _: OnCoordinatorEvents
    ) -> AsyncIterator[RunningBroker]:
        async with emulated(options, self.emitted.extend) as broker:
            yield broker._replace(emits_events=False)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.emitted if isinstance(event, kind)]

    @property
    def states(self) -> list[tuple[str, int]]:
        return [(event.state, event.generation) for event in self.of(events.GroupStateChanged)]


def inferred(sink: MemorySink, kind: type[Kind]) -> list[Kind]:
    return [event for _, _, event in sink.rows if isinstance(event, kind)]


def assert_follows(told: Sequence[tuple[str, int]], real: Sequence[tuple[str, int]]) -> None:
    """The states are inferred from what members send and receive: that a round is over shows when its last
    answer has arrived, and another member may have asked for the next round before."""
    ahead = iter(real)
    for state in told:
        for one in ahead:
            if one == state:
                break
            assert one[0] == GroupState.STABLE, f"{one} is missing before {state}"
        else:
            pytest.fail(f"the coordinator was never in {state} then")


def ids(changes: Sequence[events.MemberAdded | events.MemberRemoved]) -> list[tuple[str, str]]:
    """Member ids with the causes; members that begin at once are added in either order."""
    return sorted((event.member_id, str(event.cause)) for event in changes)


@pytest.mark.slow
def test_the_inferred_coordinator_goes_through_the_states_that_the_real_one_emits() -> None:
    silent = Silent()
    sink, figures = played(scenario(), silent)
    assert set((figures.invariants or {}).values()) == HELD
    assert states(sink)
    assert_follows(states(sink), silent.states)
    joins = inferred(sink, events.JoinAnswered)
    assert joins == silent.of(events.JoinAnswered)[: len(joins)]


@pytest.mark.slow
def test_the_inferred_consumer_group_goes_through_the_states_that_the_real_one_emits() -> None:
    silent = Silent()
    sink, figures = played(consumer_scenario(), silent)
    assert set((figures.invariants or {}).values()) == HELD
    known = silent.states[: len(states(sink))]
    assert states(sink) == known
    assert known[-1][0] == "Stable"
    assert len(inferred(sink, events.MemberRemoved)) == len(silent.of(events.MemberRemoved))
    assert {"PartitionsAssigned", "PartitionsRevoked", "MemberClosed"} <= member_event_names(sink)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["cooperative", "eager"])
def test_an_inferred_migration_has_the_steps_that_the_real_coordinator_emits(variant: str) -> None:
    """Each of two members is restarted with the new protocol, then each with the classic one."""
    silent = Silent()
    sink, figures = played(migration(variant), silent)
    assert set((figures.invariants or {}).values()) == HELD
    converted = inferred(sink, events.GroupConverted)
    assert converted == silent.of(events.GroupConverted)
    assert [event.cause for event in converted] == ["upgraded", "downgraded"]
    assert ids(inferred(sink, events.MemberAdded)) == ids(silent.of(events.MemberAdded))
    assert ids(inferred(sink, events.MemberRemoved)) == ids(silent.of(events.MemberRemoved))
    epochs = [event.generation for event in inferred(sink, events.GroupEpochBumped)]
    assert epochs == sorted(set(epochs))
    assert set(epochs) <= {event.generation for event in silent.of(events.GroupEpochBumped)}
    assert [state for state, _ in states(sink)][-1] == "Stable"


def test_too_many_members_for_real_time_are_refused() -> None:
    with pytest.raises(InputError, match="members: 501: at most 500 run in real time"):
        _ = played(scenario(members=501), emulated)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["cooperative", *in_soak("eager", "static")])
def test_a_scenario_runs_against_kafka(variant: str) -> None:
    played_as_simulated(scenario(variant), kafka())


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["cooperative", *in_soak("static")])
def test_a_group_migrates_on_kafka(variant: str) -> None:
    """Roll-outs may overlap. On a busy machine the second one may not end in time: it is played again."""
    converted: list[str] = []
    for _ in range(PLAYED_AT_MOST):
        sink, figures = played(migration(variant), kafka())
        assert set((figures.invariants or {}).values()) == HELD
        assert figures.dual_owner_seconds == 0
        converted = [str(event.cause) for event in inferred(sink, events.GroupConverted)]
        if converted[-1:] == ["downgraded"]:
            break
    assert converted[:1] == ["upgraded"]
    assert converted == ["upgraded", "downgraded"] * (len(converted) // 2)


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "epoch"), [("consumer", 8), *in_soak(("static", 4))])
def test_members_of_the_consumer_protocol_play_against_kafka(variant: str, epoch: int) -> None:
    """``epoch``: the last one, after three joins (the first one counts twice), and two leaves and returns."""
    sink, figures = played(consumer_scenario(variant), kafka())
    assert set((figures.invariants or {}).values()) == HELD
    bumps = [event for _, _, event in sink.rows if isinstance(event, events.GroupEpochBumped)]
    assert bumps[-1].generation == epoch


def kafka() -> OpenBroker:
    """Kafka in a JVM. Skips the test without it."""
    with needed():
        _ = kafka_jars()

    def real(options: Mapping[str, str], _: OnCoordinatorEvents) -> Any:
        return jvm(options)

    return real


@pytest.mark.slow
def test_a_member_that_polls_too_rarely_leaves_and_learns_of_it_at_its_poll() -> None:
    settings: dict[str, Any] = {
        "members": 1, "partitions": 2, "group.initial.rebalance.delay.ms": 0, "heartbeat.interval.ms": 100,
        "session.timeout.ms": 6_000, "poll_interval_ms": 2_000, "max.poll.interval.ms": 700, "tail_ms": 100,
        "least_duration_ms": 3_500, "settle_timeout_ms": 0, "if_never_settled": "report",
    }  # fmt: skip
    sink, _ = played(scenario_of([START], **settings).resolve(None, 0, {}), emulated)
    seen = [(time_us, event) for time_us, source, event in sink.rows if source == "member"]
    begun_us = next(time_us for time_us, event in seen if type(event).__name__ == "PartitionsAssigned")
    left_us = next(t for t, event in seen if getattr(event, "cause", None) == "poll-timeout")
    lost_us = next(time_us for time_us, event in seen if type(event).__name__ == "PartitionsLost")
    assert 700_000 <= left_us - begun_us < 1_500_000
    assert 1_900_000 <= lost_us - begun_us < 3_000_000
