"""Each preset, run small: the pattern that the preset is about is the first that explain names.

What a preset is about costs least in some variants (the preset's remedy): then another pattern comes first,
or none, and the table says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from groupstorm.explain.patterns import PATTERNS
from groupstorm.figures.accumulator import Window
from groupstorm.storms.scenario.preset_files import preset_names
from tests.explain.explaining import SECOND_US, explained, first, names, storm


class Case(NamedTuple):
    preset: str
    variant: str
    pattern: str
    settings: Mapping[str, Any] = {}
    from_s: int = 0
    to_s: int | None = None


SMALL = {"members": 4, "partitions": 8}
TEN = {"members": 10, "partitions": 20}

CASES = (
    Case("aligned-restarts", "all-at-once", "aligned-restart", SMALL),
    Case("aligned-restarts", "all-at-once-static", "aligned-restart", SMALL),
    Case("aligned-restarts", "one-by-one", "deploy-wave", SMALL),
    # two members crash and one restarts without a word: eager, everybody waits for its session
    Case("autoscaler-flap", "fixed", "", {"partitions": 24}),
    Case("client-profiles", "java", "held-join-phase", {"members": 8, "partitions": 16}),
    Case("client-profiles", "franz-go", "session-expired", {"members": 8, "partitions": 16}),
    Case("cold-start", "no-delay", "formed-in-rounds", TEN),
    Case("cold-start", "delay-10s", "group-start", TEN),
    Case("cold-start", "consumer", "waits-for-heartbeat", TEN),
    # so small a group pays nothing for the failovers, and comes second to its deployment
    Case("coordinator-failover", "two-minutes", "coordinator-moved", SMALL, to_s=590),
    Case("coordinator-failover", "two-minutes-static", "coordinator-moved", SMALL, to_s=590),
    Case("custom-assignor-lab", "slow-leader", "slow-assignor", {"members": 8, "partitions": 12}),
    Case("deploy-and-crash", "cooperative", "session-expired", SMALL),
    Case("deploy-and-crash", "static-in-deployment", "static-orphan", SMALL),
    Case("duplicates-on-revoke", "no-commits", "uncommitted", SMALL),
    Case("duplicates-on-revoke", "drains-for-5s-eager", "slow-callback", SMALL),
    Case("duplicates-on-revoke", "drains-too-long", "max-poll-interval", SMALL),
    Case("eager-to-cooperative", "one-roll", "mixed-assignors", {"members": 6, "partitions": 12}),
    Case("eager-to-cooperative", "two-rolls", "deploy-wave", {"members": 6, "partitions": 12}, to_s=1_700),
    Case("kafka-12464", "after", "topics-changed"),
    Case("kafka-defects", "kafka-4.3.1", "failing-members"),
    Case("late-joiner-race", "seconds-later", "formed-in-rounds", TEN),
    Case("late-joiner-race", "in-the-delay", "group-start", TEN),
    Case("migrate-to-consumer-protocol", "policy-disabled", "migration-refused", SMALL),
    Case("migrate-to-consumer-protocol", "eager", "migration", SMALL),
    Case("migrate-to-consumer-protocol", "static", "migration", SMALL),
    Case("migrate-streams", "at-once", "migration-refused", {"partitions": 6}),
    Case("new-protocol", "eager", "held-join-phase", {"members": 6, "partitions": 12}),
    Case("new-protocol", "consumer", "waits-for-heartbeat", {"members": 6, "partitions": 12}, to_s=120),
    Case("poison-livelock", "slower-than-the-poll-interval", "poison-record", SMALL | {"partitions": 12}),
    Case("poison-livelock", "crashes", "poison-record", SMALL | {"partitions": 12}),
    Case("poison-livelock", "one-retry-then-dead-letter", "poison-record", SMALL | {"partitions": 12}),
    Case("rolling-deploy", "eager", "deploy-wave", SMALL),
    Case("rolling-deploy", "cooperative", "deploy-wave", SMALL),
    Case("rolling-deploy", "static", "deploy-wave", SMALL),
    Case("rolling-deploy", "consumer", "deploy-wave", SMALL),
    Case("slow-member-hostage", "eager", "held-join-phase", SMALL),
    Case("slow-member-hostage", "cooperative", "held-join-phase", SMALL),
    Case("slow-member-hostage", "eager-short-poll-interval", "max-poll-interval", SMALL),
    Case("slow-member-hostage", "consumer-short-poll-interval", "max-poll-interval", SMALL),
    Case("slow-member-hostage", "consumer", "slow-revocation", SMALL),
    Case("poison-in-a-share-group", "released", "", {"members": 4, "partitions": 2}),
    Case("share-deploy", "implicit", "deploy-wave", {"members": 4, "partitions": 2}),
    Case("share-locks", "fifty-at-a-time", "session-expired", {"members": 4, "partitions": 2}),
    Case("share-or-partition", "share-group", "session-expired", {"members": 6, "partitions": 2}),
    Case("stateful-warmup", "shipped", "follow-up-rebalances", {"partitions": 6}),
    Case("static-sizing", "timeout-20s", "static-session-too-short", TEN),
    Case("static-sizing", "timeout-2m", "static-orphan", TEN),
    Case("static-trap", "deployment", "static-orphan", TEN),
    Case("static-trap", "twins", "static-fenced", TEN),
    Case("stream-join", "range", "session-expired", {"partitions": 12}),
)

#: Seconds of real time each, or variants of what is above.
SLOW_CASES = (
    Case("assignor-shootout", "range", "session-expired", {"members": 12, "partitions": 6}),
    Case("autoscaler-flap", "keda", "autoscaler-flapping", {"partitions": 24, "phases": "aligned"}),
    # partitions wait longer for the sessions of the lost instances than tasks for their state
    Case("rack-bill", "none", "session-expired", {"partitions": 6}),
    Case("topic-growth", "five-minutes", "topics-changed", {"partitions": 12, "members": 4}),
    Case("coordinator-failover", "two-minutes", "coordinator-moved"),
    Case("autoscaler-flap", "keda-eager", "autoscaler-flapping"),
    Case("autoscaler-flap", "hpa", "autoscaler-flapping"),
    Case("standby-loss", "shipped", "state-lost", {"state_bytes": 20_000_000_000}),
    Case("stateful-warmup", "streams", "moved-cold", {"partitions": 6}),
    Case("topic-growth", "eager", "topics-changed", {"partitions": 12, "members": 4}),
)


#: The first case of each pattern; the others are left to `./dev test`.
FIRST = [*{case.pattern: case for case in reversed(CASES)}.values()]
OTHERS = [pytest.param(one, marks=pytest.mark.slow) for one in (*CASES, *SLOW_CASES) if one not in FIRST]


def is_of_share_group(case: Case) -> bool:
    return "share" in case.preset and case.variant != "consumer-group"


@pytest.mark.parametrize("case", FIRST + OTHERS, ids=lambda case: f"{case.preset}-{case.variant}")
def test_a_preset_shows_its_pattern(tmp_path: Path, case: Case) -> None:
    trace = storm(tmp_path / "run", case.preset, case.variant, case.settings)
    window = Window(case.from_s * SECOND_US, None if case.to_s is None else case.to_s * SECOND_US)
    found = explained(trace, window)
    assert first(found) == case.pattern, names(found)
    costs = [one.unowned_us for one in found.history.rebalances]
    costs += [one.unowned_us for one in found.history.absences]
    if is_of_share_group(case):
        assert found.history.unowned_us is None, "nobody owns a partition"
    else:  # every time without an owner belongs to one of them
        assert found.history.unowned_us == sum(costs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "variant", "settings", "pattern"),
    [
        ("coordinator-failover", "two-minutes", SMALL, "deploy-wave"),
        ("custom-assignor-lab", "static", {"members": 8, "partitions": 12}, "zombie"),
        ("poison-livelock", "crashes", SMALL | {"partitions": 12, "phases": "aligned"}, "livelock"),
    ],
)
def test_a_pattern_that_costs_less_is_named_too(
    tmp_path: Path, preset: str, variant: str, settings: dict[str, Any], pattern: str
) -> None:
    assert pattern in names(explained(storm(tmp_path / "run", preset, variant, settings)))


def test_every_preset_is_in_the_tables() -> None:
    assert {case.preset for case in (*CASES, *SLOW_CASES)} == set(preset_names())


def test_every_pattern_names_presets_that_are_there() -> None:
    for pattern in PATTERNS:
        assert set(pattern.presets) <= set(preset_names()), pattern.name
    assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS)
