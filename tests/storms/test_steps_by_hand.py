"""What the steps of a scenario do to processes, and how long a run waits for them: to the microsecond.

The host only notes what it is asked for. A process starts 10 s (`start_ms`) after its step, closes 500 ms
(`stop_grace_ms`) after SIGTERM, and needs 2 s for that.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.storms.randomness import DRAW_SPAN, Stream
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import Step
from groupstorm.storms.step_runner import StepRunner
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.steps import WorldSteps
from tests.storms.test_clients_by_hand import until

MS, SECOND = 1_000, 1_000_000


class Process:
    """A process that notes what happens to it, and its consumer at once."""

    def __init__(self, host: Host, index: int, name: str) -> None:
        self.index = index
        self.name = name
        self.alive = True
        self.on_exit: Callable[[], None] | None = None
        self.work = SimpleNamespace(partitions=())
        self.faults = SimpleNamespace(partition=lambda *what: host.note(f"{name} partition {what}"))
        self.pauses = SimpleNamespace(
            busy=lambda for_us: host.note(f"{name} busy {for_us}"),
            pause=lambda for_us: host.note(f"{name} pause {for_us}"),
        )
        self._host = host

    def start(self) -> None:
        self._host.processes[self.name] = self
        self._host.note(f"{self.name} starts")

    def stop(self) -> None:
        self._host.note(f"{self.name} closes")
        self._host.clock.after(2 * SECOND, self.exit)

    def crash(self) -> None:
        self._host.note(f"{self.name} dies")
        self.exit()

    def disconnect(self, for_us: int) -> None:
        self._host.note(f"{self.name} disconnect {for_us}")

    def exit(self) -> None:
        """The process is gone, whatever ended it first."""
        if not self.alive:
            return
        self.alive = False
        if self._host.processes.get(self.name) is self:
            del self._host.processes[self.name]
        if self.on_exit is not None:
            self.on_exit()


class Host:
    """A `ScenarioHost`, and a world for `WorldSteps`. ``said``: when (microseconds) it was asked for what."""

    def __init__(self, *steps: Step, count: int = 2, **settings: Any) -> None:
        self.clock = Clock()
        self.said: list[tuple[int, str]] = []
        self._returned = 0
        self.settings = Settings(
            ("", {"members": count, "start_ms": 10_000, "stop_grace_ms": 500} | settings)
        )
        self.seed, self.group = 1, "g"
        self.scenario = SimpleNamespace(steps=steps)
        self.processes: dict[str, Any] = {}
        self.records = None
        self.slow_records = None
        host: Any = self
        self.runner = StepRunner(host)
        WorldSteps(self.runner, host)

    @property
    def consumers(self) -> dict[str, Any]:
        return self.processes

    def note(self, what: str) -> None:
        self.said.append((self.clock.now_us, what))

    def trace(self, _source: object, event: Any) -> None:
        self.note(f"step {event.cause} {event.member or '-'}: {event.detail}")

    def new_process(self, index: int, name: str) -> Any:
        return Process(self, index, name)

    def member(self, name: str) -> Any:
        return self.processes[name]

    def use_release(self, number: int) -> None:
        self.note(f"release {number}")

    def add_partitions(self, topic: str, count: int) -> None:
        self.note(f"add_partitions {topic} {count}")

    def delete_topic(self, topic: str) -> None:
        self.note(f"delete_topic {topic}")

    def fail_over(self, until_us: int, delay_within_us: Callable[[int], int]) -> None:
        self.note(f"fail_over {until_us} {delay_within_us(0)}")

    def slow_appends(self, until_us: int, append_ms: int) -> None:
        self.note(f"slow_appends {until_us} {append_ms}")

    def fail_appends(self, until_us: int) -> None:
        self.note(f"fail_appends {until_us}")

    def until(self, seconds: float) -> list[str]:
        """What it is asked for by then and not before, with the times in seconds."""
        until(self.clock, round(seconds * SECOND))
        before, self._returned = self._returned, len(self.said)
        return [f"{at_us / SECOND:.9g} {what}" for at_us, what in self.said[before:]]


START = Step(0, "start")


def running(*steps: Step, **settings: Any) -> Host:
    """Two processes run; the first step comes at 60 s."""
    host = Host(START, *steps, **settings)
    assert host.until(59)[0] == f"0 step start -: {settings.get('count', 2)} members join within 0 ms"
    return host


def test_processes_start_at_the_beginning_and_the_run_waits_for_them() -> None:
    host = Host(Step(1_000, "start", members=(0, 2)), count=3)
    assert host.until(0.9) == []
    assert host.runner.pending == 1
    assert host.until(1) == [
        "1 step start -: 2 members join within 0 ms",
        "1 member-0 starts",
        "1 member-2 starts",
    ]
    assert host.runner.pending == 0


def test_starts_are_spread_over_their_time_by_draws_of_their_own() -> None:
    """The n-th draw of the run's plan decides on the n-th process."""
    host = Host(Step(0, "start", over_ms=4_000))
    assert host.until(0) == ["0 step start -: 2 members join within 4000 ms"]
    assert host.runner.pending == 2
    host.until(4)
    plan = Stream(1, "plan")
    expected = {f"member-{n}": plan.at(n + 1) * 4_000 * MS // DRAW_SPAN for n in (0, 1)}
    assert {what.split()[0]: at_us for at_us, what in host.said[1:]} == expected
    assert host.runner.pending == 0


def test_added_processes_have_the_places_behind_the_first_ones() -> None:
    host = running(Step(60_000, "add", count=2), Step(75_000, "stop", members=(3,)), Step(76_000, "stop"))
    assert host.until(69.9) == ["60 step add -: 2 more processes are started"]
    assert host.runner.pending == 4
    assert host.until(74) == ["70 member-2 starts", "70 member-3 starts"]
    assert host.until(75.9) == ["75 step stop member-3: SIGTERM", "75.5 member-3 closes"]
    assert [line for line in host.until(76) if "SIGTERM" in line] == [
        f"76 step stop member-{n}: SIGTERM" for n in (0, 1, 2, 3)
    ]
    host.until(77.9)
    assert host.runner.pending == 3, "member-3 is gone, to which two steps sent SIGTERM"
    host.until(79)
    assert (host.runner.pending, host.processes) == (0, {})


def test_a_restart_starts_the_process_when_the_old_one_is_gone() -> None:
    host = running(Step(60_000, "restart", members=(1,)))
    assert host.until(72.4) == ["60 step restart member-1: SIGTERM", "60.5 member-1 closes"]
    assert host.runner.pending == 1
    assert host.until(72.5) == ["72.5 member-1 starts"]
    assert host.runner.pending == 0


def test_a_process_that_is_gone_already_is_not_closed_twice() -> None:
    host = running()
    one = host.processes["member-1"]
    one.alive = False
    gone: list[int] = []
    host.runner.terminate(one, "stop", lambda: gone.append(1))
    assert (gone, host.runner.pending) == ([1], 0)
    assert host.until(70) == ["59 step stop member-1: SIGTERM"]


def test_a_crash_is_immediate_and_a_process_that_comes_back_takes_its_time() -> None:
    host = running(Step(60_000, "crash", members=(0,)), Step(61_000, "crash-restart"))
    assert host.until(70) == [
        "60 step crash member-0: SIGKILL",
        "60 member-0 dies",
        "61 step crash-restart member-1: SIGKILL",
        "61 member-1 dies",
    ]
    assert host.runner.pending == 1
    assert host.until(100) == ["71 member-1 starts"]
    assert host.runner.pending == 0


@pytest.mark.parametrize("do", ["busy", "pause", "disconnect"])
def test_the_run_waits_until_a_disturbance_is_over(do: str) -> None:
    host = running(Step(60_000, do, members=(1,), for_ms=7_000))
    assert host.until(66.9) == [f"60 step {do} member-1: for 7000 ms", f"60 member-1 {do} 7000000"]
    assert host.runner.pending == 1
    host.until(67)
    assert host.runner.pending == 0


def test_a_reconnect_storm_breaks_connections_at_equal_distances() -> None:
    """Each is found again after reconnect.backoff.ms, 50 ms."""
    host = running(Step(60_000, "reconnect-storm", members=(1,), count=3, for_ms=10_000))
    assert host.until(66.71) == [
        "60 step reconnect-storm -: 3 times, every 3333 ms",
        "60 member-1 disconnect 50000",
        "63.333333 member-1 disconnect 50000",
        "66.666666 member-1 disconnect 50000",
    ]
    assert host.runner.pending == 1
    host.until(66.716666)
    assert host.runner.pending == 1
    host.until(66.716667)
    assert host.runner.pending == 0


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step(60_000, "partition", members=(1,), for_ms=7_000, direction="both"),
         ["step partition member-1: no both for 7000 ms", "member-1 partition (7000000, 'both')"]),
        (Step(60_000, "slow-appends", for_ms=7_000, append_ms=30),
         ["step slow-appends -: 30 ms each, for 7000 ms", "slow_appends 67000000 30"]),
        (Step(60_000, "failing-appends", for_ms=7_000),
         ["step failing-appends -: for 7000 ms", "fail_appends 67000000"]),
        (Step(60_000, "coordinator-failover", for_ms=7_000),
         ["step coordinator-failover -: no coordinator for 7000 ms", "fail_over 67000000 0"]),
        (Step(60_000, "create-topic", topic="t", partitions=3),
         ["step create-topic -: t is created with 3 partitions", "add_partitions t 3"]),
        (Step(60_000, "delete-topic", topic="t"), ["step delete-topic -: t is deleted", "delete_topic t"]),
    ],
    ids=lambda value: value.do if isinstance(value, Step) else "",
)  # fmt: skip
def test_the_run_goes_on_a_microsecond_longer_than_what_befalls_its_world(
    step: Step, said: list[str]
) -> None:
    """After a change of topics it waits until every client has refreshed its metadata, here for 7 s."""
    host = running(step, **{"metadata.max.age.ms": 7_000})
    assert host.until(67) == [f"60 {each}" for each in said]
    assert host.runner.pending == 1
    host.until(67.000001)
    assert host.runner.pending == 0


def test_partitions_are_added_at_once() -> None:
    host = running(Step(60_000, "add-partitions", topic="t", partitions=3))
    assert host.until(60) == [
        "60 step add-partitions -: t has 3 partitions from now on",
        "60 add_partitions t 3",
    ]
    assert host.runner.pending == 0


def test_a_step_with_settings_begins_a_release() -> None:
    host = running(Step(60_000, "add", settings={"session.timeout.ms": 9_000}, release=1))
    assert host.until(60) == ["60 release 1", "60 step add -: 1 more processes are started"]


# --- processes that fail


def fail(host: Host, name: str = "member-1") -> list[str]:
    """The process ends with a fatal error, now."""
    host.processes[name].exit()
    return host.until(host.clock.now_us / SECOND)


def test_a_failed_process_starts_again_after_a_back_off_that_doubles() -> None:
    """From 10 s to at most 300 s, and then what a start takes; the run does not wait for it."""
    host = running(restart_failed=True)
    for backoff_s in (10, 20, 40, 80, 160, 300, 300):
        now_s = host.clock.now_us // SECOND
        assert fail(host) == [f"{now_s} step restart-failed member-1: in {backoff_s} s"]
        assert host.runner.pending == 0
        assert host.until(now_s + backoff_s + 9.9) == []
        assert host.until(now_s + backoff_s + 10) == [f"{now_s + backoff_s + 10} member-1 starts"]


@pytest.mark.parametrize(("later_s", "backoff_s"), [(600, 20), (601, 10)])
def test_a_back_off_is_forgotten_after_ten_minutes_without_a_failure(later_s: int, backoff_s: int) -> None:
    host = running(restart_failed=True)
    fail(host)
    host.until(59 + later_s)
    assert fail(host)[0].endswith(f"in {backoff_s} s")


def test_each_process_has_a_back_off_of_its_own() -> None:
    host = running(restart_failed=True)
    for _ in range(3):
        fail(host)
        host.until(host.clock.now_us // SECOND + 60)
    assert fail(host, "member-0")[0].endswith("in 10 s")


def test_a_process_that_a_step_has_killed_has_not_failed() -> None:
    host = running(
        Step(60_000, "crash", members=(0,)), Step(61_000, "crash-restart", members=(1,)), restart_failed=True
    )
    host.until(200)
    assert not [what for _, what in host.said if "restart-failed" in what]
    assert [*host.processes] == ["member-1"]


def test_without_that_setting_a_failed_process_stays_away() -> None:
    host = running(restart_failed=False)
    assert fail(host) == []
    assert host.until(1_000) == []


# --- SIGTERM


def test_a_process_drains_before_it_closes_and_is_killed_when_its_time_is_over() -> None:
    host = running(Step(60_000, "stop", members=(0,)), drain_ms=4_000, termination_grace_ms=6_000)
    assert host.until(70) == [
        "60 step stop member-0: SIGTERM",
        "60.5 member-0 busy 4000000",
        "64.5 member-0 closes",
        "66 step stop member-0: SIGKILL 6000 ms after SIGTERM",
        "66 member-0 dies",
    ]


def test_a_process_that_is_gone_in_time_is_not_killed() -> None:
    host = running(Step(60_000, "stop", members=(0,)), termination_grace_ms=3_000)
    assert host.until(70) == ["60 step stop member-0: SIGTERM", "60.5 member-0 closes"]
    assert host.runner.pending == 0


# --- deployments


def test_the_steps_of_deployments_say_what_they_begin() -> None:
    for step, said in (
        (Step(60_000, "rolling-restart"), "2 processes are replaced, reverse"),
        (Step(60_000, "canary", count=1), "2 processes are replaced, reverse"),
        (Step(60_000, "recreate"), "2 processes are replaced"),
        (Step(60_000, "blue-green"), "2 processes are replaced"),
        (Step(60_000, "drain-node", members=(1,)), "1 pods are evicted, 1 at once"),
    ):
        host = running(step, order="reverse")
        assert host.until(60)[0] == f"60 step {step.do} -: {said}"
        assert host.runner.pending > 0


@pytest.mark.parametrize(
    ("kind", "do", "names"),
    [
        ("deployment", "recreate", {"member-0-v2", "member-1-v2"}),
        ("statefulset", "recreate", {"member-0", "member-1"}),
        ("processes", "recreate", {"member-0", "member-1"}),
        ("processes", "blue-green", {"member-0-v2", "member-1-v2"}),
        ("deployment", "rolling-restart", {"member-0-v2", "member-1-v2"}),
        ("statefulset", "rolling-restart", {"member-0", "member-1"}),
        ("deployment", "drain-node", {"member-0-v2", "member-1-v2"}),
        ("statefulset", "drain-node", {"member-0", "member-1"}),
    ],
)
def test_only_pods_of_a_deployment_get_other_names(kind: str, do: str, names: set[str]) -> None:
    host = running(Step(60_000, do), deployment=kind, ready_ms=1_000)
    host.until(400)
    assert {*host.processes} == names
    assert all(process.alive for process in host.processes.values())
    assert host.runner.pending == 0


def test_a_second_rollout_is_a_third_revision() -> None:
    host = running(
        Step(60_000, "recreate"), Step(200_000, "rolling-restart"), deployment="deployment", ready_ms=1_000
    )
    host.until(500)
    assert {*host.processes} == {"member-0-v3", "member-1-v3"}


def test_the_partition_of_a_stateful_set_keeps_the_pods_below_it() -> None:
    """The highest ordinal goes first."""
    host = running(
        Step(60_000, "rolling-restart"), deployment="statefulset", update_partition=1, count=3, ready_ms=0
    )
    stopped = [line.split()[3] for line in host.until(400) if "SIGTERM" in line]
    assert stopped == ["member-2:", "member-1:"]
