"""Rounds that do not end in the log, that it skips, and a group whose last member is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.explain.explanation import explain
from groupstorm.figures.accumulator import Window
from tests.explain.explaining import explained, names, state, trace_of
from tests.explain.test_first_answers import answer, printed, sentence
from tests.imports.importing import (
    broker_line,
    client_line,
    emptied,
    failed,
    import_texts,
    joins,
    preparing,
    received,
    stabilized,
)

C_22 = "c-22-22222222-2222-2222-2222-222222222222"
STABLE = stabilized("10:00:00,000", 63, 4) + received("10:00:00,010", 63, leader="c-1")
BEGUN = joins("10:10:00,548", 63, C_22)
LEFT = broker_line(
    "10:18:02,645",
    f"Member[group.instance.id None, member.id {C_22}] in group g has left, removing it from the group",
)
OTHER = emptied("10:31:00,000", 2, group="other")


def test_a_join_phase_that_is_open_when_the_log_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It lasted until the group's last line; what other groups log after that does not show it open."""
    import_texts(tmp_path, {"server.log": STABLE + BEGUN + LEFT + OTHER})
    one = explain(tmp_path / "out", frozenset({"g"}))[0]
    assert [each.lasted_us for each in one.history.rebalances] == [482_097_000]
    assert names(one) == ["held-join-phase"]
    assert "was still in its join phase after at least 482 s; no row tells its end." in sentence(
        one, "held-join-phase"
    )
    text = printed(one, capsys)
    assert "1 rebalance, at least 482 s in rebalances" in text
    assert "c-22 new-member 1 at least 482 s" in text


EXPIRED = failed("10:10:45,100", "c-7")
JOINED = stabilized("10:10:45,102", 64, 4)


@pytest.mark.parametrize("end", ["", JOINED], ids=["open", "joined"])
def test_a_join_phase_that_waited_for_a_session_to_expire(tmp_path: Path, end: str) -> None:
    """A broker logs the removal first, and what follows of it some milliseconds later, if the log has it."""
    import_texts(tmp_path, {"server.log": STABLE + BEGUN + EXPIRED + end})
    one = explain(tmp_path / "out", frozenset({"g"}))[0]
    assert names(one) == ["session-expired"]
    assert one.findings[0].rebalances[0].lasted_us == (44_554_000 if end else 44_552_000)


def test_a_round_of_one_line_lasted_unknown_time(tmp_path: Path) -> None:
    one = answer(tmp_path, STABLE + BEGUN, "server.log")
    assert ([each.lasted_us for each in one.history.rebalances], names(one)) == ([0], [])


def test_a_storm_that_ends_in_a_round(tmp_path: Path) -> None:
    begun = state(0, "Stable", "PreparingRebalance", 1, "new-member", member_id="a-1")
    parked = {"event": "join_parked", "member": "a", "member_id": "a-1", "generation": 1}
    one = explained(trace_of(tmp_path, [begun, parked | {"s": 4}]), Window(0, None))
    assert [each.lasted_us for each in one.history.rebalances] == [4_000_000]


def test_generations_that_the_log_skips(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eleven generations from 502 to 512: a cooperative rebalance takes two at most."""
    joined = [
        client_line(60 * number, "(Re-)joining group")
        + client_line(60 * number + 1, f"Successfully joined group with generation {generation}")
        for number, generation in enumerate((502, 507, 512))
    ]
    one = answer(tmp_path, "".join(joined))
    assert (len(one.history.rebalances), one.history.generations_hidden) == (3, 8)
    text = printed(one, capsys)
    assert "at least 6 rebalances (3 rounds in the logs, which skip 8 generations)" in text
    assert explained(tmp_path / "out", Window(90_000_000)).history.generations_hidden == 4


def test_rounds_are_the_least_though_the_log_skips_fewer_generations_than_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    member = "w-1-11111111-2222-3333-4444-555555555555"
    rounds = [
        preparing(f"10:0{number}:00,000", generation - 1, f"removing member {member} on heartbeat expiration")
        + stabilized(f"10:0{number}:01,000", generation, 2)
        + received(f"10:0{number}:01,100", generation, 2)
        for number, generation in enumerate((5, 6, 9, 10))
    ]
    text = printed(answer(tmp_path, "".join(rounds), "server.log"), capsys)
    assert "at least 4 rebalances (4 rounds in the logs, which skip 2 generations)" in text


@pytest.mark.parametrize(("generation", "hidden"), [(603, 100), (604, 0)])
def test_a_group_has_no_hundreds_of_generations_in_no_time(
    tmp_path: Path, generation: int, hidden: int
) -> None:
    """Within a second's time, as coarse as logs print it, it may have had a hundred; more are another
    group's."""
    joined = "".join(
        client_line(10, f"Successfully joined group with generation {number}") for number in (502, generation)
    )
    assert answer(tmp_path, joined).history.generations_hidden == hidden


def last_member(cause: str) -> str:
    member = "w-1-11111111-2222-3333-4444-555555555555"
    gone = failed("10:10:00,000", member).replace("failed", cause)
    begun = stabilized("10:00:00,000", 5, 1) + received("10:00:00,010", 5, leader=member)
    return begun + gone + emptied("10:10:00,001", 6)


LATER = emptied("13:10:00,001", 2, group="other")


def test_the_last_member_expired_and_nobody_came_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_texts(tmp_path, {"server.log": last_member("failed") + LATER})
    one = explain(tmp_path / "out", frozenset({"g"}))[0]
    assert names(one)[0] == "outage"
    assert sentence(one, "outage").startswith("At least 3 h: w-1 was the last member, its session expired")
    text = printed(one, capsys)
    assert "an outage of at least 3 h, as the last member expired and nobody came back." in text
    assert "no partition needs an owner" not in text


def test_the_last_member_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_texts(tmp_path, {"server.log": last_member("left") + LATER})
    one = explain(tmp_path / "out", frozenset({"g"}))[0]
    assert "outage" not in names(one)
    assert "no partition needs an owner then" in printed(one, capsys)
