"""The autoscaler over a fleet without a group: the lag is what the test says, and each pod takes its time.

A pod polls 10 s after its start, is available 5 s later, and is gone 2 s after SIGTERM. The autoscaler reads
the lag every 15 s (`autoscaler_sync_ms`), KEDA's switch every 30 s (`polling_interval_ms`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.storms.deployments.autoscaler import Autoscaler
from groupstorm.storms.deployments.horizontal import HorizontalAutoscaler, ScalingRules
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.clock import Clock
from tests.storms.test_clients_by_hand import until

SECOND = 1_000_000


class Pod:
    """A process that runs."""

    def __init__(self, fleet: Fleet, index: int, name: str) -> None:
        self.index = index
        self.name = name
        self.alive = True
        self.on_exit: Callable[[], None] | None = None
        self._fleet = fleet

    def start(self) -> None:
        pass

    def stop(self) -> None:
        self.crash()

    def crash(self) -> None:
        self.alive = False
        self._fleet.pods.pop(self.name, None)


class Fleet:
    """The steps of a run and its host. ``said``: (second, what) of each start, SIGTERM and step."""

    def __init__(self, count: int, **settings: Any) -> None:
        self.clock = Clock()
        self.settings = Settings(("", settings))
        self.pods: dict[str, Any] = {}
        for index in range(count):
            self.pods[f"p{index}"] = Pod(self, index, f"p{index}")
        self.lags, self.committed = [0], 0
        self.said: list[tuple[int, str]] = []
        self._returned = 0
        self.pending = 0
        self.takes_s: dict[str, int] = {"start_ms": 10, "ready_ms": 5}
        self.partitions: Sequence[str] = ("t-0", "t-1")
        self.owned: dict[str, int] = {}
        self.host: Any = SimpleNamespace(
            clock=self.clock,
            settings=self.settings,
            processes=self.pods,
            consumers=_Consumers(self),
            partitions=self.partitions,
            group_lags=lambda: self.lags,
            committed_records=lambda: self.committed,
        )

    def begin(self) -> None:
        self.pending += 1

    def end(self) -> None:
        self.pending -= 1

    def duration_us(self, setting: str) -> int:
        return self.takes_s[setting] * SECOND

    def random_order(self, count: int) -> list[int]:
        return [*range(1, count), 0]

    def name_of(self, index: int) -> str:
        return f"p{index}"

    def emit_step(self, do: str, member: str | None, detail: str) -> None:
        self.note(f"{do} {detail}" if member is None else f"{do} {member} {detail}")

    def note(self, what: str) -> None:
        self.said.append((self.clock.now_us // SECOND, what))

    def spawn(
        self, index: int, name: str, delay_us: int, on_started: Callable[[Any], None] | None = None
    ) -> None:
        self.note(f"start {name}")

        def polls() -> None:
            pod = self.pods[name] = Pod(self, index, name)
            if on_started is not None:
                on_started(pod)

        self.clock.after(delay_us, polls)

    def terminate(self, process: Any, do: str, then: Callable[[], None] | None) -> None:
        self.note(f"stop {process.name}")

        def gone() -> None:
            process.crash()
            if then is not None:
                then()

        self.clock.after(2 * SECOND, gone)

    def until(self, second: float) -> list[str]:
        """What is said by then and was not returned before."""
        until(self.clock, int(second * SECOND))
        before, self._returned = self._returned, len(self.said)
        return [f"{at_s} {what}" for at_s, what in self.said[before:]]


class _Consumers:
    """The consumers of the pods that run, with the partitions that they own."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def items(self) -> list[tuple[str, Any]]:
        owned = self._fleet.owned
        return [
            (name, SimpleNamespace(work=SimpleNamespace(partitions=range(owned.get(name, 0)))))
            for name in self._fleet.pods
        ]


HPA: dict[str, Any] = {
    "autoscaler": "hpa", "min_replicas": 2, "lag_threshold": 100, "scale_down_stabilization_ms": 0,
    "deployment": "deployment",
}  # fmt: skip


def scaled(count: int = 2, for_s: int = 600, **settings: Any) -> Fleet:
    fleet = Fleet(count, **HPA | settings)
    Autoscaler(fleet, for_s * SECOND)
    return fleet


def test_it_works_for_its_time_and_the_run_waits_for_it() -> None:
    fleet = scaled(for_s=30)
    fleet.lags = [150, 100]
    assert fleet.until(14) == []
    assert fleet.pending == 1
    assert fleet.until(29) == ["15 scale-up from 2 to 3 processes, lag 250", "15 start p2"]
    fleet.lags = [1_000]
    assert fleet.until(100) == []
    assert fleet.pending == 0


def test_without_an_autoscaler_the_run_waits_all_the_same() -> None:
    fleet = scaled(for_s=30, autoscaler="none")
    fleet.lags = [1_000]
    assert fleet.until(29) == []
    assert fleet.pending == 1
    assert fleet.until(31) == []
    assert fleet.pending == 0


def acts(fleet: Fleet, second: float) -> list[str]:
    """What the autoscaler does by then, without what it says of gains."""
    return [line for line in fleet.until(second) if "scale-up-gain" not in line]


def test_the_newest_pods_stop_first() -> None:
    fleet = scaled()
    fleet.lags = [400]
    assert acts(fleet, 15) == ["15 scale-up from 2 to 4 processes, lag 400", "15 start p2", "15 start p3"]
    fleet.until(44)
    fleet.lags = [200]
    assert acts(fleet, 45) == ["45 scale-down from 4 to 2 processes, lag 200", "45 stop p3", "45 stop p2"]
    assert acts(fleet, 60) == []
    assert sorted(fleet.pods) == ["p0", "p1"]


def test_before_them_stop_pods_that_are_not_available() -> None:
    """p2 polls at 115 s only, p3 at 31 s: it is available when one of the two has to go."""
    fleet = scaled()
    fleet.takes_s["start_ms"] = 100
    fleet.lags = [300]
    acts(fleet, 29)
    fleet.takes_s["start_ms"] = 1
    fleet.lags = [400]
    assert acts(fleet, 44) == ["30 scale-up from 3 to 4 processes, lag 400", "30 start p3"]
    fleet.lags = [300]
    assert acts(fleet, 114) == ["45 scale-down from 4 to 3 processes, lag 300"]
    assert acts(fleet, 116) == ["115 stop p2"]
    acts(fleet, 118)
    assert sorted(fleet.pods) == ["p0", "p1", "p3"]
    fleet.lags = [400]
    assert acts(fleet, 120) == ["120 scale-up from 3 to 4 processes, lag 400", "120 start p4"]


def test_a_pod_gets_available_only_when_its_time_is_over() -> None:
    """p2 polls at 25 s and takes until 65 s; p3 started at 30 s, and polls at 31 s. Both are not available:
    the newer one goes. At 75 s p2 is."""
    fleet = scaled()
    fleet.takes_s["ready_ms"] = 40
    fleet.lags = [300]
    acts(fleet, 29)
    fleet.takes_s["start_ms"] = 1
    fleet.lags = [400]
    acts(fleet, 44)
    fleet.lags = [300]
    assert acts(fleet, 46) == ["45 scale-down from 4 to 3 processes, lag 300", "45 stop p3"]
    fleet.lags = [400]
    assert acts(fleet, 74) == ["60 scale-up from 3 to 4 processes, lag 400", "60 start p4"]
    fleet.lags = [300]
    assert acts(fleet, 76) == ["75 scale-down from 4 to 3 processes, lag 300", "75 stop p4"]
    fleet.lags = [200]
    assert acts(fleet, 91) == ["90 scale-down from 3 to 2 processes, lag 200", "90 stop p2"]


def test_new_pods_get_the_places_behind_those_that_run() -> None:
    fleet = Fleet(2, **HPA)
    fleet.pods["p7"] = Pod(fleet, 7, "p7")
    Autoscaler(fleet, 600 * SECOND)
    fleet.lags = [400]
    assert acts(fleet, 15)[1:] == ["15 start p8"]
    fleet.lags = [200]
    acts(fleet, 31)
    assert fleet.said[-2:] == [(30, "stop p8"), (30, "stop p7")]


def test_a_stateful_set_starts_and_stops_the_highest_ordinal() -> None:
    fleet = scaled(deployment="statefulset")
    fleet.lags = [400]
    assert acts(fleet, 15)[1:] == ["15 start p2", "15 start p3"]
    acts(fleet, 44)
    fleet.lags = [200]
    assert acts(fleet, 45)[1:] == ["45 stop p3", "45 stop p2"]
    fleet.lags = [300]
    assert acts(fleet, 60)[1:] == ["60 start p2"], "the old pod is gone"


def test_a_stateful_sets_pod_starts_again_when_the_old_one_is_gone() -> None:
    """SIGTERM at 45 s; the pod is wanted again at 46 s, and starts at 47 s."""
    fleet = scaled(deployment="statefulset", autoscaler_sync_ms=1_000, scale_period_ms=1_000)
    fleet.lags = [300]
    assert acts(fleet, 1)[1:] == ["1 start p2"]
    acts(fleet, 44.5)
    fleet.lags = [200]
    assert acts(fleet, 45.5)[1:] == ["45 stop p2"]
    fleet.lags = [300]
    assert acts(fleet, 46.5) == ["46 scale-up from 2 to 3 processes, lag 300"]
    assert acts(fleet, 48) == ["47 start p2"]


def test_a_stateful_sets_pod_that_terminates_is_not_stopped_twice() -> None:
    fleet = scaled(deployment="statefulset", autoscaler_sync_ms=500, scale_period_ms=500)
    fleet.lags = [300]
    acts(fleet, 44.9)
    fleet.lags = [200]
    assert acts(fleet, 45)[1:] == ["45 stop p2"]
    fleet.lags = [300]
    assert acts(fleet, 45.5) == ["45 scale-up from 2 to 3 processes, lag 300"]
    fleet.lags = [200]
    assert acts(fleet, 60) == ["46 scale-down from 3 to 2 processes, lag 200"]


KEDA: dict[str, Any] = {
    "autoscaler": "keda", "min_replicas": 0, "cooldown_ms": 60_000, "activation_lag_threshold": 5,
}  # fmt: skip


def test_keda_stops_the_last_pod_after_the_cooldown_and_starts_one_with_the_first_lag() -> None:
    """It looks every 30 s. Lag of more than 5 counts as activity, last at 60 s."""
    fleet = scaled(1, **KEDA)
    fleet.lags = [6, 0]
    assert fleet.until(89) == []
    fleet.lags = [5, 0]
    assert fleet.until(119) == []
    assert fleet.until(120) == ["120 scale-down from 1 to 0 processes, lag 5", "120 stop p0"]
    assert fleet.until(149) == []
    fleet.lags = [6]
    assert fleet.until(150) == ["150 scale-up from 0 to 1 processes, lag 6", "150 start p1"]
    assert fleet.until(200) == [], "it is there already"


@pytest.mark.parametrize("settings", [{"min_replicas": 1}, {"autoscaler": "hpa"}])
def test_only_keda_scales_to_zero_and_only_if_it_may(settings: dict[str, Any]) -> None:
    fleet = scaled(1, **KEDA | settings)
    assert fleet.until(500) == []


def test_without_lag_keda_waits_for_the_cooldown_from_the_beginning() -> None:
    fleet = scaled(1, **KEDA)
    assert fleet.until(59) == []
    assert fleet.until(60)[0] == "60 scale-down from 1 to 0 processes, lag 0"


def test_keda_caps_the_metric_and_a_plain_autoscaler_does_not() -> None:
    """Two partitions: more than two processes would be idle."""
    for kind, replicas in (("keda", 2), ("hpa", 5)):
        fleet = scaled(1, autoscaler=kind, min_replicas=1)
        fleet.lags = [900, 100]
        assert fleet.until(15)[0] == f"15 scale-up from 1 to {replicas} processes, lag 1,000"


def test_the_gain_of_a_scale_up_is_told_two_minutes_later() -> None:
    """10 records a second before: 1,200 in 120 s. The reading of 135 s finds 1,650 more than that of 15 s."""
    fleet = scaled()
    fleet.until(14)
    fleet.committed, fleet.lags = 150, [300]
    assert fleet.until(29)[0] == "15 scale-up from 2 to 3 processes, lag 300"
    fleet.committed = 1_800
    assert fleet.until(134) == []
    found = fleet.until(136)
    assert found == ["135 scale-up-gain from 2 to 3 processes: +1,650 records in 120 s"]


def test_a_scale_down_ends_the_count_of_a_gain() -> None:
    fleet = scaled()
    fleet.until(14)
    fleet.lags = [300]
    fleet.until(29)
    fleet.lags = [200]
    assert fleet.until(31)[:2] == [
        "30 scale-up-gain from 2 to 3 processes: +0 records in 15 s",
        "30 scale-down from 3 to 2 processes, lag 200",
    ]


def test_every_period_has_an_allowance_of_its_own() -> None:
    """Four more or twice as many within 15 s, and the autoscaler decides every 15 s."""
    fleet = scaled()
    fleet.lags = [10_000]
    said = [line for line in acts(fleet, 46) if "scale-up" in line]
    assert [line.partition(" processes")[0] for line in said] == [
        "15 scale-up from 2 to 6",
        "30 scale-up from 6 to 12",
        "45 scale-up from 12 to 24",
    ]


def test_keda_starts_the_first_pod_of_a_fleet_in_the_first_place_and_tells_what_it_gained() -> None:
    fleet = scaled(0, **KEDA, autoscaler_sync_ms=1_000_000)
    fleet.lags = [6]
    assert fleet.until(149) == ["30 scale-up from 0 to 1 processes, lag 6", "30 start p0"]
    fleet.committed = 240
    assert fleet.until(150) == ["150 scale-up-gain from 0 to 1 processes: +240 records in 120 s"]


def rules(**different: int) -> ScalingRules:
    """Target 100, within 2 to 200 pods; at most four more or twice as many, or a tenth less, in 15 s."""
    plain = ScalingRules(
        least=2, most=200, target=100, tolerance_percent=10, up_window_ms=0, down_window_ms=0, up_pods=4,
        up_percent=100, down_percent=10, period_ms=15_000,
    )  # fmt: skip
    return plain._replace(**different)


def test_a_percentage_of_a_large_fleet_is_removed() -> None:
    assert HorizontalAutoscaler(rules()).decide(0, 100, 100) == 90


@pytest.mark.parametrize(("up_percent", "pods"), [(100, 200), (50, 150), (3, 104), (33, 133)])
def test_a_percentage_of_a_large_fleet_is_added_rounded_up(up_percent: int, pods: int) -> None:
    autoscaler = HorizontalAutoscaler(rules(up_percent=up_percent, most=1_000))
    assert autoscaler.decide(0, 100, 100_000) == pods
    odd = HorizontalAutoscaler(rules(up_percent=up_percent, up_pods=1, most=1_000))
    assert odd.decide(0, 9, 100_000) == {100: 18, 50: 14, 3: 10, 33: 12}[up_percent]


@pytest.mark.parametrize("metric", [0, 100, 1_000_000])
@pytest.mark.parametrize(("replicas", "decided"), [(1, 2), (202, 200), (500, 200), (0, 0)])
def test_a_fleet_outside_of_its_bounds_goes_to_the_nearest_at_once(
    replicas: int, decided: int, metric: int
) -> None:
    """reconcileAutoscaler: "Current number of replicas above Spec.MaxReplicas", or below MinReplicas."""
    assert HorizontalAutoscaler(rules()).decide(0, replicas, metric) == decided


@pytest.mark.parametrize("replicas", [2, 200])
def test_a_fleet_at_its_bounds_stays_there(replicas: int) -> None:
    metric = 0 if replicas == 2 else 1_000_000
    assert HorizontalAutoscaler(rules()).decide(0, replicas, metric) == replicas
    within = HorizontalAutoscaler(rules()).decide(0, replicas, replicas * 100)
    assert within == replicas, "the metric is at its target"
