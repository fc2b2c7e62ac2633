"""No false alarms: groups that nothing befalls have no pattern and no rebalance but their start."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.explain.advice import first_answer
from groupstorm.figures.accumulator import Window
from tests.explain.explaining import explained, names, scenario_storm
from tests.explain.test_first_answers import printed

QUIET = """
name: quiet
question: Does a quiet group stay quiet?
settings: {{members: {members}, partitions: 12, least_duration_ms: 10m, {settings}}}
steps:
  - {{at_ms: 0, do: start}}
"""


@pytest.mark.parametrize(
    "settings",
    [
        "partition.assignment.strategy: [range]",
        "partition.assignment.strategy: [cooperative-sticky]",
        "group.instance.id: ordinal",
        "client_profile: librdkafka",
        "record_rate: 0",
        "record_rate: 300, process_ms: 10",  # the members do not keep up
    ],
)
def test_a_quiet_classic_group(tmp_path: Path, settings: str) -> None:
    found = explained(scenario_storm(tmp_path, QUIET.format(members=4, settings=settings)))
    assert names(found) == ["group-start"]
    assert [one.rounds[0].begun["previous_state"] for one in found.history.rebalances] == ["Empty"]
    assert found.baseline.busy == ()


def test_a_quiet_consumer_group(tmp_path: Path) -> None:
    """Its members find each other within one heartbeat, and wait for the next one to get their partitions."""
    text = QUIET.format(members=4, settings="group.protocol: consumer")
    found = explained(scenario_storm(tmp_path, text))
    late = [one for one in found.history.rebalances if one.begun_us > 30_000_000]
    assert late == []
    assert set(names(found)) <= {"formed-in-rounds", "waits-for-heartbeat"}


@pytest.mark.parametrize("settings", ["group.protocol: consumer", "partition.assignment.strategy: [range]"])
def test_the_figures_have_as_many_rebalances(tmp_path: Path, settings: str) -> None:
    steps = "  - {at_ms: 3m, do: add}\n  - {at_ms: 5m, do: crash, members: [1]}\n"
    found = explained(scenario_storm(tmp_path, QUIET.format(members=4, settings=settings) + steps))
    assert found.history.figures is not None
    assert found.history.figures.generations == len(found.history.rebalances) > 2


def test_a_window_behind_the_rounds_shows_a_quiet_group(tmp_path: Path) -> None:
    """Heartbeats are refused in a round, and the window begins when it is over. The first JoinGroup is
    answered MEMBER_ID_REQUIRED, which is no refusal that anybody has to hear of."""
    text = QUIET.format(members=4, settings="partition.assignment.strategy: [range]")
    path = scenario_storm(tmp_path, f"{text}  - {{at_ms: 1m, do: add}}\n")
    refused = {one.error for one in explained(path).history.refusals}
    assert refused == {"REBALANCE_IN_PROGRESS"}
    found = explained(path, window=Window(150_000_000))
    assert (found.history.rebalances, found.history.refusals) == ([], [])
    assert first_answer(found.history) == "The group was quiet."


def test_a_group_whose_member_has_died_is_not_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its session expires 45 s after the crash at 180 s: the window ends before it does, and its 3 of 12
    partitions have no owner for 30 s each."""
    text = QUIET.format(members=4, settings="partition.assignment.strategy: [range]")
    path = scenario_storm(tmp_path, f"{text}  - {{at_ms: 3m, do: crash, members: [1]}}\n")
    found = explained(path, window=Window(150_000_000, 210_000_000))
    assert first_answer(found.history) == ""
    said = printed(found, capsys)
    assert "90.0 s without an owner in 1 absence that no rebalance ended (1 open at the end)" in said


def test_a_member_that_is_added_is_no_pattern(tmp_path: Path) -> None:
    """Growing once is wanted: one rebalance, by the member that came."""
    text = QUIET.format(members=4, settings="partition.assignment.strategy: [cooperative-sticky]")
    found = explained(scenario_storm(tmp_path, f"{text}  - {{at_ms: 3m, do: add}}\n"))
    assert names(found) == ["group-start"]
    assert [one.culprit for one in found.history.rebalances[1:]] == ["member-4"]


@pytest.mark.parametrize(("dead", "later"), [("0, 1, 2, 3", ["member-4"]), ("0", [])])
def test_who_comes_into_a_group_that_died_is_not_to_blame_for_its_emptiness(
    tmp_path: Path, dead: str, later: list[str]
) -> None:
    """All 4 members crash at 180 s, and one comes at 480 s, another one later: 12 partitions wait 300 s at
    least, an hour in all. If one crashes, the others take its partitions."""
    text = QUIET.format(members=4, settings="partition.assignment.strategy: [range]")
    steps = f"  - {{at_ms: 3m, do: crash, members: [{dead}]}}\n  - {{at_ms: 8m, do: add}}\n"
    steps += "  - {at_ms: 9m, do: add}\n"
    found = explained(scenario_storm(tmp_path, f"{text}{steps}"))
    (died,) = [one for one in found.findings if one.pattern.name == "session-expired"]
    assert [one.culprit for one in died.rebalances][1:] == later
    assert (died.unowned_us >= 12 * 300_000_000) == bool(later)
