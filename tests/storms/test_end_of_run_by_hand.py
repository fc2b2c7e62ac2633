"""When a run is over, and whether a group that does not come to rest is observed on, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.settling import LEAST_ROUNDS, OBSERVED_US, Rounds, Settling
from groupstorm.storms.start_and_end import EndCondition, emit_run_end
from groupstorm.storms.world.clock import Clock
from groupstorm.trace.events.coordinator import GroupStateChanged, MemberRemoved
from groupstorm.trace.events.scenario import InvariantChecked, ScenarioEnded

MS, SECOND, MINUTE = 1_000, 1_000_000, 60_000_000
P0, P1, P2, P3 = (TopicPartition("t", number) for number in range(4))


class Host:
    """A host at rest: its group has settled, nothing lags, and its one consumer owns both partitions."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock()
        given = {"settle_timeout_ms": 60_000, "least_duration_ms": 0, "tail_ms": 7_000} | settings
        self.settings = Settings(("", given))
        self.follow_ups = False
        self.settled = True
        self.behind = 0
        self.partitions = (P0, P1)
        self.owned: dict[str, tuple[TopicPartition, ...]] = {"a": (P0, P1)}

    @property
    def consumers(self) -> dict[str, Any]:
        return {
            name: SimpleNamespace(work=SimpleNamespace(partitions=partitions))
            for name, partitions in self.owned.items()
        }

    def lag(self) -> int:
        return self.behind


def condition(host: Host, pending: int = 0) -> tuple[EndCondition, Any, list[tuple[int, str]]]:
    """The condition, the steps, and what it tells of the progress."""
    told: list[tuple[int, str]] = []
    one: Any = host
    steps: Any = SimpleNamespace(pending=pending)
    return EndCondition(one, steps, lambda at_us, phase: told.append((at_us, phase))), steps, told


def test_a_run_is_over_when_its_steps_are_done_and_the_group_is_at_rest() -> None:
    host = Host()
    end, steps, told = condition(host, pending=1)
    assert not end.at_rest
    assert (end.is_met(), end.steps_done_us, end.timed_out) == (False, None, False)
    host.clock.advance_to(5 * SECOND)
    steps.pending = 0
    assert (end.is_met(), end.steps_done_us, end.at_rest) == (True, 5 * SECOND, True)
    assert told == [(0, "steps"), (5 * SECOND, "settling")]
    assert end.tail_us == 7 * SECOND


def test_a_run_that_nobody_follows_ends_all_the_same() -> None:
    one: Any = Host()
    steps: Any = SimpleNamespace(pending=0)
    assert EndCondition(one, steps, None).is_met()


@pytest.mark.parametrize("unrest", ["follow-ups", "group", "lag", "partitions"])
def test_a_run_goes_on_until_everything_is_at_rest_or_its_time_is_over(unrest: str) -> None:
    host = Host()
    match unrest:
        case "follow-ups":
            host.follow_ups = True
        case "group":
            host.settled = False
        case "lag":
            host.behind = 1
        case "partitions":
            host.owned = {"a": (P1,)}
    end, _, _ = condition(host)
    host.clock.advance_to(5 * SECOND)
    assert not end.is_met()
    host.clock.advance_to(65 * SECOND - 1)
    assert (end.is_met(), end.timed_out) == (False, False)
    host.clock.advance_to(65 * SECOND)
    assert (end.is_met(), end.timed_out, end.at_rest) == (True, True, False)


def test_partitions_may_be_owned_by_several_and_need_no_owner_if_nobody_is_left() -> None:
    host = Host()
    host.owned = {"a": (P0,), "b": (P1,)}
    assert condition(host)[0].is_met()
    host.owned = {}
    assert condition(host)[0].is_met()


def test_a_step_that_begins_later_begins_the_time_to_settle_anew() -> None:
    """A process is restarted although the last step was done."""
    host = Host()
    host.settled = False
    end, steps, _ = condition(host)
    end.is_met()
    host.clock.advance_to(50 * SECOND)
    steps.pending = 1
    assert (end.is_met(), end.steps_done_us) == (False, None)
    host.clock.advance_to(55 * SECOND)
    steps.pending = 0
    assert (end.is_met(), end.steps_done_us) == (False, 55 * SECOND)
    host.clock.advance_to(114 * SECOND)
    assert not end.is_met()
    host.clock.advance_to(115 * SECOND)
    assert end.is_met()


def test_a_run_lasts_as_long_as_it_has_to() -> None:
    host = Host(least_duration_ms=9_000)
    end, _, _ = condition(host)
    host.clock.advance_to(9 * SECOND - 1)
    assert (end.is_met(), end.at_rest) == (False, False)
    host.clock.advance_to(9 * SECOND)
    assert end.is_met()


def test_the_last_rows_are_sums_of_requests_in_order_verdicts_and_the_end() -> None:
    rows: list[Any] = []
    host: Any = SimpleNamespace(
        group="g",
        requests={("B", None): 1, ("A", "X"): 2, ("B", "E"): 3, ("A", None): 4},
        invariants=SimpleNamespace(verdicts={"z": "held", "a": "not"}),
        trace=lambda _source, event: rows.append(event),
    )
    emit_run_end(host)
    assert [(row.api, row.error, row.count) for row in rows[:4]] == [
        ("A", None, 4),
        ("A", "X", 2),
        ("B", None, 1),
        ("B", "E", 3),
    ]
    assert rows[4:6] == [InvariantChecked("g", "z", "held"), InvariantChecked("g", "a", "not")]
    assert rows[6:] == [ScenarioEnded("g")]


# --- groups that do not settle


class World:
    def __init__(self, **committed: int) -> None:
        self.settled = False
        self.committed = {TopicPartition("t", int(name[1:])): offset for name, offset in committed.items()}


def observed(world: World, *rounds_min: int, since_min: int = 10) -> tuple[Settling, Rounds]:
    """A group whose last step is done at a minute, and which completes rounds at these minutes."""
    rounds = Rounds()
    settling = Settling(world, rounds)
    settling.steps_done(since_min * MINUTE)
    for at_min in rounds_min:
        round_at(rounds, at_min * MINUTE)
    return settling, rounds


def round_at(
    rounds: Rounds, at_us: int, before: str = "PreparingRebalance", to: str = "CompletingRebalance"
) -> None:
    rounds.group_changed(GroupStateChanged("g", before, to, 1, "x", None, None, None, 1), at_us)


def test_rounds_of_both_protocols_are_counted() -> None:
    """Of a consumer group a round is a new target: it leaves Assigning, or its members have to reconcile."""
    rounds = Rounds()
    changes = (
        ("PreparingRebalance", "CompletingRebalance"), ("CompletingRebalance", "Stable"),
        ("Stable", "PreparingRebalance"), ("Assigning", "Stable"), ("Stable", "Reconciling"),
        ("Stable", "Assigning"),
    )  # fmt: skip
    for second, (before, to) in enumerate(changes):
        round_at(rounds, second, before, to)
    assert rounds.completed_us == [0, 3, 4]
    assert [rounds.since(at_us) for at_us in (0, 1, 3, 4, 5)] == [3, 2, 2, 1, 0]


def test_a_group_that_settled_is_observed_only_if_rounds_came_in_the_second_half_of_its_time() -> None:
    """Its time is 10 minutes to 20 minutes."""
    world = World(p0=1)
    world.settled = True
    assert not observed(world)[0].is_worth_observing(20 * MINUTE)
    assert not observed(world, 14)[0].is_worth_observing(20 * MINUTE)
    assert observed(world, 15)[0].is_worth_observing(20 * MINUTE)
    world.settled = False
    assert observed(world)[0].is_worth_observing(20 * MINUTE)


def test_progress_counts_from_the_end_of_the_time_to_settle_on() -> None:
    """Unless that was an hour: then the group has been observed for long enough already."""
    world = World(p0=1)
    settling, _ = observed(world, 12, 14, 16)
    world.committed = {P0: 5}
    settling.is_worth_observing(20 * MINUTE)
    assert settling.sentence(False, 70 * MINUTE) == (
        "livelock: 3 rounds in an hour, no partition progressed for 50 minutes"
    )
    world = World(p0=1)
    settling, _ = observed(world, 12, 14, 16)
    world.committed = {P0: 5}
    settling.is_worth_observing(10 * MINUTE + OBSERVED_US)
    assert settling.sentence(False, 70 * MINUTE) == "never at rest: 3 rounds in an hour"


def test_fewer_rounds_than_three_say_nothing() -> None:
    world = World(p0=1)
    assert observed(world, 9, 10, 11)[0].sentence(False, 70 * MINUTE) is None
    assert LEAST_ROUNDS == 3
    assert observed(world, 9, 10, 11, 12)[0].sentence(False, 70 * MINUTE) is not None


def test_a_group_that_comes_to_rest_late_is_said_to() -> None:
    for end_us, said in (
        (10 * MINUTE + 119 * SECOND, "119 seconds"), (12 * MINUTE, "2 minutes"), (70 * MINUTE, "an hour"),
        (71 * MINUTE, "61 minutes"), (10 * MINUTE + 59_999_999, "59 seconds"),
    ):  # fmt: skip
        sentence = observed(World(p0=1))[0].sentence(True, end_us)
        assert sentence == (
            f"settled late: the group came to rest {said} after the last step (settle_timeout_ms)"
        )


@pytest.mark.parametrize(
    ("stuck", "said"),
    [
        (("p0",), "t-0 never progressed"),
        (("p0", "p1", "p2"), "t-0 and t-1 and t-2 never progressed"),
        (("p0", "p1", "p2", "p3"), "4 partitions never progressed"),
    ],
)
def test_up_to_three_partitions_without_progress_are_named(stuck: tuple[str, ...], said: str) -> None:
    """A partition without an offset at first has made progress with its first one, be it 0."""
    world = World(**dict.fromkeys(("p0", "p1", "p2", "p3"), 7))
    settling, _ = observed(world, 12, 14, 16)
    ahead = {f"p{number}": 8 for number in range(4) if f"p{number}" not in stuck}
    world.committed = World(**dict.fromkeys(stuck, 7), **ahead, p9=0).committed
    sentence = settling.sentence(False, 40 * MINUTE)
    assert sentence == f"never at rest: 3 rounds in 30 minutes, {said}"


def test_the_most_frequent_cause_of_removals_since_the_last_step_is_named() -> None:
    world = World(p0=1, p1=1)
    for causes, said in (
        (
            ("left",),
            "once a member left the group because max.poll.interval.ms had passed since its last poll()",
        ),
        (
            ("left", "session-expired", "session-expired"),
            "2 times a member sent no heartbeat for session.timeout.ms",
        ),
        (("admin",), ""),
    ):
        settling, rounds = observed(world, 12, 14, 16)
        rounds.group_changed(MemberRemoved("g", "m", "m-1", None, 3, "sync-timeout"), 10 * MINUTE - 1)
        for cause in causes:
            rounds.group_changed(MemberRemoved("g", "m", "m-1", None, 3, cause), 10 * MINUTE)
        sentence = str(settling.sentence(False, 40 * MINUTE))
        assert sentence.partition("; ")[2] == said
