"""Late heartbeats and their effect, virtual beside recorded: how far members drift apart, when they learn."""

from __future__ import annotations

from functools import cache
from itertools import accumulate, combinations, pairwise
from statistics import mean, median

import pytest

from groupstorm.clients.profiles import LATENESS, PROFILES
from groupstorm.storms.scenario.randomness import parse_distribution
from groupstorm.storms.world.periodic_requests.schedule import SHARES, ProcessTimer, timer_sums
from tests.client_profiles.heartbeat_timing import read
from tests.client_profiles.learning import learning_ms, spread_ms
from tests.generated_pages import check_section

ROUNDS = 3
SEEDS = 12
#: The heartbeats at the beginning of a recording, while processes still start.
STARTING = 20
#: Over so many heartbeats the latency of single requests no longer counts.
MANY = 150
#: The share of its time that a member works for which records come (`record_heartbeats`), and how long a
#: Java member can be late then.
WORKING = {"idle": (0, 0), "short": (0.4, 40_000), "long": (0.4, 100_000)}
#: A response took that long in the recordings, in the mean: franz-go's timer waits for it.
RESPONSE = parse_distribution("response", {"quantiles": {0: 0.2, 50: 0.4, 90: 2.3, 100: 10}})

#: Only Java's heartbeats depend on the application's work.
GROUPS = [("java", kind) for kind in WORKING] + [(name, "") for name in sorted(PROFILES) if name != "java"]
in_each_group = pytest.mark.parametrize(("name", "kind"), GROUPS)


@cache
def recorded_spreads(name: str, kind: str) -> list[list[int]]:
    """For each round, milliseconds between the phases in which members learnt of the rebalance."""
    joins = [row for row in read(name).learned if row.cause == "join" and kind in ("", row.kind)]
    kinds = dict.fromkeys(row.kind for row in joins)
    by_kind = [[spread_ms(row.ms) for row in joins if row.kind == each] for each in kinds]
    assert all(len(each) == ROUNDS for each in by_kind)
    return [[each[number] for each in by_kind] for number in range(ROUNDS)]


@cache
def virtual_spreads(name: str, kind: str) -> list[list[int]]:
    runs = [learning_ms(name, kind or "idle", seed, ROUNDS) for seed in range(SEEDS)]
    return [[spread_ms(run[number]) for run in runs] for number in range(ROUNDS)]


def recorded_late_ms(name: str, kind: str) -> list[list[list[float]]]:
    """Lateness by quiet time, member and heartbeat."""
    quiet = [row for row in read(name).quiet if kind in ("", row.kind)]
    return [[[late / 10 for late in member[STARTING:]] for member in row.late] for row in quiet]


def virtual_late_ms(name: str, kind: str) -> list[list[list[float]]]:
    sums = timer_sums(
        PROFILES[name], parse_distribution(LATENESS, PROFILES[name].defaults[LATENESS]), RESPONSE
    )
    members = []
    for number in range(40):
        lateness = ProcessTimer(sums, 0, f"member-{number}", 0).series(0)
        assert lateness is not None
        share, most_us = WORKING[kind or "idle"]
        lateness.works(0, round(share * SHARES), most_us)
        total_ms = [lateness.total_us(k) / 1000 for k in range(201)]
        members.append([later - sooner for sooner, later in pairwise(total_ms)])
    return [members]


def drift(late_ms: list[list[list[float]]]) -> float:
    """By how much the variance of the members' phases grows with each heartbeat, in ms^2."""
    squares = []
    for members in late_ms:
        sums = [list(accumulate(member, initial=0.0)) for member in members]
        count = min(map(len, sums))
        for at in range(0, count - MANY, MANY // 4):
            moved = [one[at + MANY] - one[at] for one in sums]
            squares += [(one - other) ** 2 for one, other in combinations(moved, 2)]
    return mean(squares) / 2 / MANY


@in_each_group
def test_heartbeats_are_as_late_as_the_real_ones(name: str, kind: str) -> None:
    recorded = [late for members in recorded_late_ms(name, kind) for member in members for late in member]
    virtual = [late for members in virtual_late_ms(name, kind) for member in members for late in member]
    assert mean(virtual) == pytest.approx(mean(recorded), rel=0.3)


@in_each_group
def test_phases_drift_apart_as_fast_as_the_real_ones(name: str, kind: str) -> None:
    recorded, virtual = drift(recorded_late_ms(name, kind)), drift(virtual_late_ms(name, kind))
    assert recorded / 2.5 < virtual < recorded * 2.5


@pytest.mark.slow
@in_each_group
def test_members_learn_of_a_rebalance_within_the_time_of_the_real_ones(name: str, kind: str) -> None:
    """In a group that was quiet for ten minutes, three times. Heartbeats on a lattice would be 1 to 5 ms
    apart."""
    by_round = recorded_spreads(name, kind)
    together = [each for of_round in by_round for each in of_round]
    for virtual, of_round in zip(virtual_spreads(name, kind), by_round, strict=True):
        recorded = of_round if len(of_round) > 1 else together
        assert min(recorded) / 1.5 <= median(virtual) <= max(recorded) * 1.5
        assert min(virtual) <= max(recorded)
        assert max(virtual) >= min(recorded)


@pytest.mark.slow
def test_the_page_has_the_table() -> None:
    rows = [
        "| client | | recorded, round 1 | 2 | 3 | virtual, round 1 | 2 | 3 | quiet for an hour |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, kind in GROUPS:
        recorded = [", ".join(map(str, sorted(each))) for each in recorded_spreads(name, kind)]
        virtual = [f"{median(each):.0f} ({min(each)} to {max(each)})" for each in virtual_spreads(name, kind)]
        hour = [learning_ms(name, kind or "idle", seed, 1, 3600, 60)[0] for seed in range(3)]
        of_hour = f"{median(map(spread_ms, hour)):.0f}"
        rows.append(f"| `{name}` | {kind} | {' | '.join(recorded)} | {' | '.join(virtual)} | {of_hour} |")
    check_section("heartbeat-lateness.md", "learning", "\n".join(rows))


def test_every_profile_has_a_recording_of_its_version() -> None:
    for name, profile in PROFILES.items():
        recording = read(name)
        assert recording.client.split()[1] in profile.client
        assert {row.kind for row in recording.quiet} == set(WORKING)
        assert all(len(member) * 3 >= 600 for row in recording.quiet for member in row.late)
