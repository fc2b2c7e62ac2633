"""Lines that the broker's log lacks: rounds end and begin all the same. Lines that it has twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explain.explaining import explained
from tests.imports.importing import (
    broker_line,
    failed,
    figures,
    generation,
    import_texts,
    java_line,
    joins,
    preparing,
    received,
    rows,
    stabilized,
)

A, B, C = [f"app-{name}-11111111-2222-3333-4444-55555555555{name}" for name in "abc"]
FIRST = [joins("10:00:00,000", 0, A), stabilized("10:00:03,000", 1, 2), received("10:00:03,100", 1, 2)]
EXPIRED = [
    failed("10:05:00,000", B),
    preparing("10:05:00,000", 1, f"removing member {B} on heartbeat expiration"),
    stabilized("10:05:01,000", 2, 1),
    received("10:05:01,100", 2, 1),
]
LINES = [*FIRST, *EXPIRED]
HAS_IT = "".join(
    java_line("10:00:03,150", f"Successfully {did} group {with_} {generation(1, A)}")
    for did, with_ in (("joined", "with generation"), ("synced", "in generation"))
)


def causes(folder: Path, lost: str, own: str = "") -> list[tuple[str, int, bool]]:
    """Causes of the rebalances, how long they lasted in milliseconds, and whether their end is known."""
    logs = {"server.log": "".join(LINES).replace(lost, "")} | ({"a.log": own} if own else {})
    import_texts(folder, logs)
    found = explained(folder / "out").history.rebalances
    return [(one.cause, one.lasted_us // 1000, one.ended_us is not None) for one in found]


@pytest.mark.parametrize("lost", range(len(LINES)))
def test_no_lost_line_makes_one_rebalance_of_two(tmp_path: Path, lost: int) -> None:
    assert [cause for cause, *_ in causes(tmp_path, LINES[lost])] == ["new-member", "session-expired"][
        lost == 0 :
    ]


def test_a_round_whose_end_is_lost_lasted_until_its_join_phase_ended_at_least(tmp_path: Path) -> None:
    assert causes(tmp_path, FIRST[2]) == [("new-member", 3000, False), ("session-expired", 1100, True)]
    (missing,) = [row for row in rows(tmp_path, "evidence_missing") if row["cause"] == "generations"]
    assert missing["detail"].startswith("whether generation 1 had an assignment, and when")
    assert figures(tmp_path)["g"].answer.startswith("at least 1 generation;")


def test_a_member_that_has_the_assignment_shows_the_end(tmp_path: Path) -> None:
    assert causes(tmp_path, FIRST[2], HAS_IT) == [("new-member", 3150, True), ("session-expired", 1100, True)]
    assert figures(tmp_path)["g"].answer.startswith("2 generations;")


@pytest.mark.parametrize(
    ("said", "rounds"),
    [("", [2]), ("Pending dynamic member with id {} joins group g in Stable state.", [1, 1])],
)
def test_a_round_that_begins_again_is_one_rebalance_unless_the_group_was_stable(
    tmp_path: Path, said: str, rounds: list[int]
) -> None:
    """The leader may be out of its session while all wait for its plan."""
    again = [line.replace("10:05:0", "10:00:4") for line in EXPIRED]
    stable = broker_line("10:00:39,000", f"{said.format(C)} Adding to the group now.") if said else ""
    import_texts(tmp_path, {"server.log": "".join([*FIRST[:2], stable, *again])})
    assert [len(one.rounds) for one in explained(tmp_path / "out").history.rebalances] == rounds


def test_without_the_line_of_its_beginning_a_change_of_the_members_began_a_round(tmp_path: Path) -> None:
    causes(tmp_path, EXPIRED[1])
    (begun,) = [row for row in rows(tmp_path, "group_state_changed") if row["cause"] == "session-expired"]
    assert (begun["provenance"], begun["time_us"], begun["member_id"]) == ("inferred", 300_000_000, B)


def test_a_round_of_which_nothing_says_when_it_began_lasted_at_least(tmp_path: Path) -> None:
    text = "".join([*FIRST, stabilized("10:07:00,000", 2, 2), received("10:07:00,100", 2, 2)])
    import_texts(tmp_path, {"server.log": text})
    begun = rows(tmp_path, "group_state_changed")[3]
    assert (begun["cause"], begun["time_us"]) == ("unknown", 420_000_000)
    assert (begun["earliest_us"], begun["latest_us"]) == (3_000_000, 420_000_000)


@pytest.mark.parametrize(
    "logs",
    [
        {"server.log": "".join(line * 2 for line in LINES)},
        {"server.log.1": "".join(LINES[:5]), "server.log": "".join(LINES[3:])},
    ],
    ids=["doubled", "overlapping"],
)
def test_lines_that_stand_twice_count_once(tmp_path: Path, logs: dict[str, str]) -> None:
    import_texts(tmp_path, {"server.log": "".join(LINES)})
    once = [(row["time_us"], row["event"]) for row in rows(tmp_path)]
    import_texts(tmp_path, logs)
    assert [(row["time_us"], row["event"]) for row in rows(tmp_path)] == once
