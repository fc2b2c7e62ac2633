"""A service with aiokafka in virtual time: nothing real is waited for, and a seed decides everything."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from groupstorm.problems import InputError
from groupstorm.simulation import Kind, NotSimulated, ScheduleFailed, Stuck, World, simulate
from groupstorm.simulation.schedule import drawn, parse
from tests.processes import run_process
from tests.simulation.billing import RECORDS, SETTINGS, billing, played


def test_every_record_is_booked_during_a_rolling_restart() -> None:
    run, booked = played(0)
    assert run.problem is None
    assert len({one.partition(" ")[2] for one in booked}) == RECORDS
    assert any("three starts, for the 2nd time" in line for line in run.story())
    assert any("Stable" in line for line in run.story())


def test_records_of_a_member_that_dies_before_its_first_commit_are_left() -> None:
    booked: list[str] = []

    async def test(world: World) -> None:
        one, _ = [
            await world.start(billing, world.bootstrap_servers, name, booked, name=name)
            for name in ("one", "two")
        ]
        await world.group("billing").stable(members=2, partitions=2)
        world.broker.produce("orders", *map(str, range(8)))
        one.kill()
        await world.settle()
        assert len({line.partition(" ")[2] for line in booked}) == 8

    simulate(test, failures=(), topics={"orders": 2}, settings=SETTINGS)


def test_nothing_is_settled_while_a_failure_of_the_schedule_lasts() -> None:
    """The only instance is down for 60 s, and its session ends long before."""
    booked: list[str] = []

    async def test(world: World) -> None:
        await world.start(billing, world.bootstrap_servers, "one", booked, name="one")
        await world.run_for(8)
        world.broker.produce("orders", *map(str, range(8)), partition=0)
        await world.settle()
        assert len(set(booked)) == 8

    replay = "seed=0 calm crash@7000000,t0,s0,d60000000"
    simulate(test, replay=replay, topics={"orders": 1}, settings=SETTINGS)


def test_records_of_a_producer_have_the_time_of_the_simulation() -> None:
    async def test(world: World) -> None:
        await world.run_for(20)
        producer = AIOKafkaProducer(bootstrap_servers=world.bootstrap_servers)
        await producer.start()
        await producer.send_and_wait("orders", b"now")
        await producer.send_and_wait("orders", b"then", timestamp_ms=7)
        await producer.stop()
        now, then = world.broker.records("orders")
        assert abs(now.timestamp / 1000 - time.time()) < 1
        assert then.timestamp == 7

    simulate(test, failures=(), topics={"orders": 1})


@pytest.mark.slow
def test_a_seed_gives_the_same_run_in_processes_with_different_hash_seeds() -> None:
    digests = {
        run_process(
            [sys.executable, "-m", "tests.simulation.billing"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


def test_seeds_differ() -> None:
    ends = set()
    for seed in range(2):

        async def test(world: World) -> None:
            await world.start(billing, world.bootstrap_servers, "one", [])
            await world.group("billing").stable(members=1)

        run = simulate(test, seed=seed, failures=(), topics={"orders": 1}, settings=SETTINGS)
        assert len(repr(run)) < 300, "a notebook shows it"
        ends.add(run.end_us)
    assert len(ends) == 2


def test_the_clocks_are_virtual_and_real_again_afterwards() -> None:
    clocks = (time.monotonic, time.time, time.perf_counter, time.sleep, socket.socket.connect, os.urandom)

    async def test(world: World) -> None:
        before = time.monotonic(), time.time(), time.perf_counter()
        await world.run_for(3600)
        after = time.monotonic(), time.time(), time.perf_counter()
        assert [round(late - early, 3) for early, late in zip(before, after, strict=True)] == [3600] * 3
        raise RuntimeError("the test fails")

    with pytest.raises(ScheduleFailed, match="RuntimeError: the test fails"):
        simulate(test, failures=())
    assert clocks == (
        time.monotonic,
        time.time,
        time.perf_counter,
        time.sleep,
        socket.socket.connect,
        os.urandom,
    )


def _thread() -> None:
    threading.Thread(target=print).start()


def _real_socket() -> None:
    with socket.socket() as real:
        real.connect(("127.0.0.1", 9))


@pytest.mark.parametrize(
    ("leave", "what"),
    [
        (lambda: time.sleep(1), r"time\.sleep\(1\)"),
        (_thread, "the thread"),
        (_real_socket, "a real socket to"),
        (lambda: asyncio.get_running_loop().run_in_executor(None, print), r"a thread \(print\)"),
    ],
)
def test_a_call_that_leaves_the_simulation_is_refused_with_its_place(
    leave: Callable[[], object], what: str
) -> None:
    async def test(_world: World) -> None:
        leave()

    with pytest.raises(ScheduleFailed) as failed:
        simulate(test, failures=())
    problem = failed.value.__cause__
    assert isinstance(problem, NotSimulated)
    assert problem.args[0].startswith(f"{__file__}:")
    failed.match(what)


def test_a_condition_that_fails_or_is_a_coroutine_ends_the_test() -> None:
    async def fails(world: World) -> None:
        await world.until(lambda: 1 / 0)

    async def coroutine(world: World) -> None:
        await world.until(lambda: world.group("typo").caught_up("orders"))

    with pytest.raises(ScheduleFailed, match="ZeroDivisionError"):
        simulate(fails, schedules=2, failures=())
    with pytest.raises(InputError, match="condition: expected a function that is not async"):
        simulate(coroutine, schedules=2, failures=())


def test_a_test_that_waits_for_nothing_ends() -> None:
    async def test(_world: World) -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(ScheduleFailed) as failed:
        simulate(test, failures=())
    assert isinstance(failed.value.__cause__, Stuck)
    failed.match("the simulation goes on after 7200 virtual seconds")


def test_a_killed_instance_never_runs_again_and_its_session_ends() -> None:
    steps: list[float] = []

    async def counting(servers: str) -> None:
        consuming = asyncio.get_running_loop().create_task(billing(servers, "counting", []))
        while not consuming.done():
            await asyncio.sleep(1)
            steps.append(time.monotonic())

    async def test(world: World) -> None:
        instance = await world.start(counting, world.bootstrap_servers)
        group = world.group("billing")
        await group.stable(members=1)
        instance.kill()
        killed_s = world.now_s
        await world.until(lambda: not group.members, "the end of the session")
        assert 7 < world.now_s - killed_s < 11  # aiokafka's session_timeout_ms: 10 s
        assert all(step <= killed_s for step in steps)
        assert steps

    simulate(test, failures=(), topics={"orders": 1})


def test_an_instance_that_exits_ends_alone() -> None:
    async def exits(code: int) -> None:
        await asyncio.sleep(1)
        sys.exit(code)

    async def test(world: World) -> None:
        restarted = await world.start(exits, 3, name="one", restarts=True)
        await world.start(exits, 0, name="two")
        await world.run_for(3.5)
        assert restarted.starts == 2
        await world.start(exits, 4, name="three")
        await world.run_for(5)

    with pytest.raises(ScheduleFailed, match=r"three has failed: RuntimeError: sys\.exit\(4\)"):
        simulate(test, failures=(), schedules=2)


def test_nothing_complains_about_the_tasks_of_a_killed_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []

    async def waits() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(1)

    async def awaits_others() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(3_600))
            try:
                await waits()
            finally:
                await waits()

    async def test(world: World) -> None:
        one = await world.start(waits)
        one.kill()
        one.start()
        await world.start(awaits_others)
        gc.collect()

    gc.collect()  # what other tests have left behind complains here
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    simulate(test, failures=())
    gc.collect()
    assert complaints == []


def test_an_instance_that_is_cut_off_is_expelled_and_comes_back() -> None:
    async def test(world: World) -> None:
        one = await world.start(billing, world.bootstrap_servers, "one", [])
        group = world.group("billing")
        await group.stable(members=1)
        world.partition(one)
        await world.until(lambda: not group.members, "the end of the session")
        world.heal(one)
        await group.stable(members=1, timeout_s=120)

    simulate(test, failures=(), topics={"orders": 1})


@pytest.mark.slow
def test_the_first_failing_seed_is_reported_with_its_shortest_schedule() -> None:
    async def test(world: World) -> None:
        one = await world.start(billing, world.bootstrap_servers, "one", [], name="one", restarts=True)
        await world.run_for(40)
        assert one.starts == 1, "it was started again"

    arguments = {"within_s": 30, "topics": {"orders": 1}, "settings": SETTINGS}
    with pytest.raises(ScheduleFailed) as failed:
        simulate(test, schedules=20, processes=2, **arguments)  # type: ignore[arg-type]
    expected = next(
        seed
        for seed in range(20)
        if any(
            one.kind in (Kind.CRASH, Kind.RESTART) for one in drawn(seed, list(Kind), 30_000_000).happenings
        )
    )
    assert failed.value.seed == expected
    (only,) = failed.value.schedule.happenings
    assert only.kind in (Kind.CRASH, Kind.RESTART)
    failed.match("it was started again")
    failed.match("one starts, for the 2nd time")
    text = str(failed.value.schedule)
    assert parse(text) == failed.value.schedule
    with pytest.raises(ScheduleFailed, match="it was started again"):
        simulate(test, replay=text, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed"),
        ({"schedules": 0}, "schedules"),
        ({"failures": ["fire"]}, "failures: 'fire': expected some of crash"),
        ({"replay": "seed=1 fire@1,t1,s1,d1"}, "KIND@TIME"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    async def test(_world: World) -> None:
        """Does nothing."""

    with pytest.raises(InputError, match=message):
        simulate(test, **arguments)  # type: ignore[arg-type]


def test_a_task_group_that_is_open_at_the_end_is_no_error() -> None:
    async def waits() -> None:
        async with asyncio.TaskGroup():
            await asyncio.get_running_loop().create_future()

    async def test(world: World) -> None:
        await world.start(waits)
        await world.run_for(1)

    simulate(test, failures=(), schedules=2)


# -- virtual time passes wherever real time would


def test_a_wait_for_no_time_at_all_still_takes_some() -> None:
    """Code that waits until a deadline with ``now > deadline`` asks again at the very deadline."""
    waits_s: list[float] = []

    async def test(_world: World) -> None:
        deadline_s = time.monotonic() + 5
        while not time.monotonic() > deadline_s:
            waits_s.append(max(0, deadline_s - time.monotonic()))
            never = asyncio.get_running_loop().create_future()
            await asyncio.wait([never], timeout=waits_s[-1])
        assert len(waits_s) <= 3
        for _ in range(1000):  # a service that looks again and again whether something is done
            await asyncio.wait([never], timeout=0)
        assert time.monotonic() - deadline_s >= 1

    simulate(test, failures=())
    assert waits_s[-1] < 0.000_001


def test_a_service_that_never_waits_is_not_started_again() -> None:
    async def spins() -> None:
        while time.monotonic() < 1:
            pass

    async def test(world: World) -> None:
        await world.start(spins, name="one", restarts=True)
        await world.run_for(60)

    with pytest.raises(ScheduleFailed, match=r"one has failed: Stuck: .*simulation\.py:\d+: .* never waits"):
        simulate(test, failures=())


def test_a_deadline_that_is_now_when_it_is_rounded_comes_all_the_same() -> None:
    """63.044688 + 1 is 64.04468800000001: `CooperativeConsumer.getmany` asks until the clock shows that."""

    async def test(_world: World) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(63.044688)
        ends_s = loop.time() + 1
        while loop.time() < ends_s:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(ends_s):
                    await loop.create_future()
        assert loop.time() - ends_s < 0.000_002

    simulate(test, failures=())


def test_aiokafka_commits_by_itself() -> None:
    """Its loop asks for no time at all at the instant of a commit."""
    offsets: list[int | None] = []

    async def service(servers: str) -> None:
        consumer = AIOKafkaConsumer(
            "orders", bootstrap_servers=servers, group_id="billing", auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            async for _ in consumer:
                pass
        finally:
            await consumer.stop()

    async def test(world: World) -> None:
        world.broker.produce("orders", "one", "two")
        await world.start(service, world.bootstrap_servers)
        await world.run_for(30)
        offsets.append(world.group("billing").committed("orders", 0))

    simulate(test, failures=(), topics={"orders": 1}, settings=SETTINGS, schedules=3, processes=1)
    assert offsets[-1] == 2
