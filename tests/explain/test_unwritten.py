"""A coordinator that cannot write: what its members try meanwhile is undone, and is no fault of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.explain.explanation import Explanation
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load
from tests.explain.explaining import explained, names, scenario_storm


def unwritten(folder: Path, settings: str, steps: str) -> Explanation:
    return explained(
        scenario_storm(
            folder,
            f"""
            name: unwritten
            question: What does it cost that the coordinator cannot write for a while?
            figures_from: warm_up_ms
            settings: {{members: 4, partitions: 12, phases: aligned, start_ms: {{exactly: 10s}}, {settings}}}
            steps:
              - {{at_ms: 0, do: start}}
              - {{at_ms: 188s, do: failing-appends, for_ms: 17s}}
              - {steps}
            """,
        )
    )


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_static_member_that_tries_again_is_no_second_process(tmp_path: Path, protocol: str) -> None:
    """It is back at 190 s, and answered COORDINATOR_NOT_AVAILABLE until 205 s."""
    one = unwritten(
        tmp_path,
        f"group.instance.id: ordinal, group.protocol: {protocol}",
        "{at_ms: 180s, do: restart, members: [0]}",
    )
    assert names(one)[0] == "append-failed"
    assert not {"static-fenced", "static-restart", "coordinator-moved"} & set(names(one))
    assert [each.member for each in one.findings[0].absences] == ["member-0"]
    assert " in 14" in one.findings[0].match.sentence
    assert one.findings[0].match.sentence.endswith(" s the coordinator could not write the group's records.")


def test_an_epoch_that_was_not_written_is_no_rebalance(tmp_path: Path) -> None:
    """KIP-848: the restarted member joins from 190 s on, thousands of times, and each time the coordinator
    bumps the epoch and goes back."""
    one = unwritten(tmp_path, "group.protocol: consumer", "{at_ms: 180s, do: restart, members: [0]}")
    assert [(each.rounds[0].cause, each.rounds[0].member) for each in one.history.rebalances] == [
        ("left", "member-0"),
        ("new-member", "member-0"),
    ]
    (found,) = [each for each in one.findings if each.pattern.name == "append-failed"]
    assert found.rebalances == one.history.rebalances[1:]
    assert one.history.figures is not None
    assert one.history.figures.generations == 2


def test_a_removal_that_was_not_written_is_no_way_back(tmp_path: Path) -> None:
    """The session of a dead member ends at 225 s, of group.consumer.session.timeout.ms; nobody comes back."""
    file = tmp_path / "scenario.yaml"
    file.write_text(
        """
        name: kept
        question: Whose place does a group keep?
        figures_from: warm_up_ms
        settings: {group.protocol: consumer, members: 3, partitions: 6, if_never_settled: report}
        steps:
          - {at_ms: 0, do: start}
          - {at_ms: 3m, do: crash, members: [2]}
          - {at_ms: 3m, do: failing-appends, for_ms: 90s}
        """,
        "utf-8",
    )
    scenario = load(str(file))
    done = run(scenario.resolve(next(iter(scenario.variants)), 0, {}), tmp_path / "run")
    assert [str(reason) for reason in done.reasons.us] == ["broker's session"]
    assert names(explained(tmp_path / "run"))[0] == "append-failed"
