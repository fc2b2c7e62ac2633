"""The log of a broker beside those of its clients: one timeline, whatever their clocks say."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from groupstorm.imports.importing import Options
from groupstorm.imports.times import zone
from tests.imports.importing import (
    failed,
    figures,
    generation,
    import_texts,
    java_line,
    preparing,
    received,
    rows,
    stabilized,
)

A, B = "app-a-11111111-2222-3333-4444-555555555555", "app-b-11111111-2222-3333-4444-666666666666"
BROKER = (
    preparing(
        "10:00:00,010", 0, f"Adding new member {A} with group instance id None; client reason: not provided"
    )
    + stabilized("10:00:03,010", 1, 2)
    + received("10:00:03,050", 1, 2, leader=A)
    + failed("10:05:00,000", B)
    + preparing("10:05:00,000", 1, f"removing member {B} on heartbeat expiration")
    + stabilized("10:05:02,000", 2, 1)
    + received("10:05:02,030", 2, 1, leader=A)
)


LEADER = [
    ("10:00:00,000", "Subscribed to topic(s): t"),
    ("10:00:00,008", "(Re-)joining group"),
    ("10:00:03,012", f"Successfully joined group with generation {generation(1, A)}"),
    (
        "10:00:03,020",
        f"Finished assignment for group at generation 1: {{{A}=Assignment(partitions=[t-0]), "
        f"{B}=Assignment(partitions=[t-1])}}",
    ),
    ("10:00:03,055", f"Successfully synced group in generation {generation(1, A)}"),
    ("10:00:03,060", "Adding newly assigned partitions: t-0"),
    ("10:05:01,980", "Request joining group due to: group is already rebalancing"),
    ("10:05:01,990", "Revoke previously assigned partitions t-0"),
    ("10:05:01,991", "(Re-)joining group"),
    ("10:05:02,004", f"Successfully joined group with generation {generation(2, A)}"),
    (
        "10:05:02,010",
        f"Finished assignment for group at generation 2: {{{A}=Assignment(partitions=[t-0, t-1])}}",
    ),
    ("10:05:02,040", f"Successfully synced group in generation {generation(2, A)}"),
    ("10:05:02,050", "Adding newly assigned partitions: t-0, t-1"),
]
FOLLOWER = [
    ("10:00:00,001", "Subscribed to topic(s): t"),
    ("10:00:00,020", "(Re-)joining group"),
    ("10:00:03,013", f"Successfully joined group with generation {generation(1, B)}"),
    ("10:00:03,056", f"Successfully synced group in generation {generation(1, B)}"),
    ("10:00:03,061", "Adding newly assigned partitions: t-1"),
]


def client_log(client: str, lines: list[tuple[str, str]], ahead: timedelta = timedelta()) -> str:
    """The log of a Java client whose clock is ``ahead`` of the broker's."""
    text = ""
    for time, message in lines:
        said = datetime.strptime(f"2024-11-18 {time}", "%Y-%m-%d %H:%M:%S,%f") + ahead
        stamp = f"{said:%Y-%m-%d %H:%M:%S},{said.microsecond // 1000:03d}"
        text += java_line(stamp, message, client)
    return text


def test_the_leaders_log_says_who_owned_what(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": BROKER, "a.log": client_log("app-a", LEADER)})
    found = figures(tmp_path)["g"]
    assert rows(tmp_path, "group_imported")[0]["cause"] == "coordinator"
    assert found.generations == 2
    # t-1 from the removal of its owner on; t-0 from the leader's second JoinGroup on
    assert found.unowned_max_seconds == pytest.approx(2.03)
    assert found.unowned_worst_partition == "t-1"
    assert found.unowned_partition_seconds == pytest.approx(2.03 + 0.039)
    assert found.paused_partition_seconds is None
    assert found.deploys is None


@pytest.mark.parametrize("ahead_ms", [-90_000, -700, -5, 0, 5, 700, 90_000])
def test_clocks_are_moved_until_causes_come_before_effects(tmp_path: Path, ahead_ms: int) -> None:
    ahead = timedelta(milliseconds=ahead_ms)
    done = import_texts(tmp_path, {"server.log": BROKER, "a.log": client_log("app-a", LEADER, ahead)})
    assert abs(done.offsets[1].us - ahead_ms * 1000) <= 45_000
    assert_causal(tmp_path)


def test_a_clock_that_was_set_is_said(tmp_path: Path) -> None:
    early, late = LEADER[:6], LEADER[6:]
    text = client_log("app-a", early) + client_log("app-a", late, timedelta(seconds=30))
    done = import_texts(tmp_path, {"server.log": BROKER, "a.log": text})
    assert done.offsets[1].contradiction


def test_the_time_zone_of_one_log_can_be_given(tmp_path: Path) -> None:
    text = client_log("app-a", LEADER, timedelta(hours=9))
    name = str(tmp_path / "a.log")
    options = Options(zones={name: zone("--time-zone", "Asia/Tokyo")})
    done = import_texts(tmp_path, {"server.log": BROKER, "a.log": text}, options)
    assert done.offsets[1].us == 0


def assert_causal(folder: Path) -> None:
    """Every member has its assignment after the coordinator, and joins before it answers."""
    stable = {
        row["generation"]: row["time_us"]
        for row in rows(folder, "group_state_changed")
        if row["state"] == "Stable"
    }
    assigned = rows(folder, "partitions_assigned")
    assert len(assigned) == 2
    assert all(row["time_us"] >= stable[row["generation"]] - 1000 for row in assigned)
