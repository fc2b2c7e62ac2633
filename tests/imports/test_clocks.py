"""The offsets of logs' clocks in `import.json`: their bounds, and which of them are time zones."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.imports.importing import broker_line, generation, import_texts, stabilized
from tests.imports.offsets_dumps import old_generation
from tests.imports.test_several_logs import BROKER, LEADER, A, client_log

HOUR_US = 3_600_000_000
#: The rounds of `BROKER`, as its records have them: 10:00:03.052 and 10:05:02.033 in UTC.
RECORDS = old_generation(0, 1_731_924_003_052, 1, f"{{{A}=[t-0]}}") + old_generation(
    1, 1_731_924_302_033, 2, f"{{{A}=[t-0]}}"
)


def clock(folder: Path, logs: dict[str, str], number: int) -> dict[str, Any]:
    """The clock of the log with this number, from `import.json`."""
    import_texts(folder, logs)
    log = json.loads((folder / "out" / "import.json").read_text("utf-8"))["logs"][number]
    return {name.removeprefix("clock_"): value for name, value in log.items() if name.startswith("clock_")}


@pytest.mark.parametrize(
    ("instance", "has_first_start"), [("instanceId=i-0, ", False), ("instanceId=i-0, ", True), ("", True)]
)
def test_a_member_that_comes_back_bounds_no_clock(
    tmp_path: Path, instance: str, has_first_start: bool
) -> None:
    """A static member is restarted four minutes after its round, and told the generation it had. It asked
    after the coordinator had answered the joins of that round: its clock is right, not four minutes ahead.

    A log that has both starts shows it without an instance id, too.
    """
    start = LEADER[1:4]
    again = [
        ("10:04:00,000", "(Re-)joining group"),
        ("10:04:00,010", f"Successfully joined group with generation {generation(1, A)}"),
        ("10:04:00,020", f"Successfully synced group in generation {generation(1, A)}"),
    ]
    text = client_log("app-a", [*start, *again] if has_first_start else again)
    text = text.replace("clientId=", f"{instance}clientId=")
    found = clock(tmp_path, {"server.log": BROKER, "a.log": text}, 1)
    assert not found["contradiction"]
    assert found["offset_us"] == 0


def test_a_seat_that_no_line_of_its_client_names(tmp_path: Path) -> None:
    """aiokafka does not log its group.instance.id: another log says that a member's name is one, or its own
    does, if it has come back before."""
    first, second, third = (f"seat-0-11111111-2222-3333-4444-{digit * 12}" for digit in "123")
    server = stabilized("10:00:03,000", 1, 2)
    names = broker_line(
        "10:04:00,005",
        "Static member with groupInstanceId=seat-0 and unknown member id joins group g in Stable state. "
        f"Replacing previously mapped member {first} with this groupInstanceId.",
    )
    started = aiokafka_log(("10:00:00,000", "10:00:03,010", first))
    replaced = aiokafka_log(("10:04:00,000", "10:04:00,010", second))
    again = aiokafka_log(("10:04:00,000", "10:04:00,010", second), ("10:05:00,000", "10:05:00,010", third))
    assert clock(tmp_path, {"server.log": server + names, "a.log": replaced}, 1)["offset_us"] == 0
    assert clock(tmp_path, {"a.log": started, "b.log": again}, 1)["offset_us"] == 0
    unknown = clock(tmp_path, {"server.log": server, "a.log": replaced}, 1)  # it may be a clock
    assert unknown["offset_us"] == 236_999_000


def aiokafka_log(*joins: tuple[str, str, str]) -> str:
    """Joins of generation 1: when the member asked, when it was answered, and its id."""
    return "".join(
        f"2024-11-18 {asked} - aiokafka.consumer.group_coordinator - INFO - (Re-)joining group g\n"
        f"2024-11-18 {answered} - aiokafka.consumer.group_coordinator - INFO - Joined group 'g' "
        f"(generation 1) with member_id {member_id}\n"
        for asked, answered, member_id in joins
    )


@pytest.mark.parametrize(("hours", "zone_hours"), [(12, 12), (13, 13), (14, 14), (-12, -12), (15, 0)])
def test_the_zones_of_the_earth(tmp_path: Path, hours: int, zone_hours: int) -> None:
    """Nuku'alofa has +13:00, Kiritimati +14:00; a clock that is 15 hours ahead was set so."""
    text = client_log("app-a", LEADER, timedelta(hours=hours))
    found = clock(tmp_path, {"server.log": BROKER, "a.log": text}, 1)
    assert found["zone_us"] == zone_hours * HOUR_US
    assert abs(found["offset_us"] - hours * HOUR_US) < 50_000


@pytest.mark.parametrize("hours", [13, 14])
def test_a_broker_in_the_pacific_has_the_clock_of_its_records(tmp_path: Path, hours: int) -> None:
    """A coordinator and its records have one clock: their times differ by a zone, or not at all."""
    times = {f"10:0{minute}": f"{10 + hours - 24 * (hours > 13):02d}:0{minute}" for minute in (0, 5)}
    text = BROKER.replace("2024-11-18", "2024-11-19") if hours > 13 else BROKER
    for utc, there in times.items():
        text = text.replace(f" {utc}:", f" {there}:")
    found = clock(tmp_path, {"server.log": text, "dump.txt": RECORDS}, 0)
    assert found["offset_us"] == hours * HOUR_US


@pytest.mark.parametrize("ahead_ms", [0, 900])
def test_a_clock_is_not_moved_by_less_than_its_step(tmp_path: Path, ahead_ms: int) -> None:
    """A broker's log that prints whole seconds. It answers the joins at 10:00:03.9, and logs 10:00:03.

    The client asks at 3.5 s and has its answer at 3.95 s. So it is 500 ms less the second ahead at the least,
    and 950 ms and the second at the most. A clock that may be right is not moved.
    """
    broker = stabilized("10:00:03,000", 1, 1)
    broker = broker.replace(
        "[2024-11-18 10:00:03,000] INFO [", "24/11/18 10:00:03 INFO group.GroupCoordinator: ["
    )
    lines = [
        ("10:00:03,500", "(Re-)joining group"),
        ("10:00:03,950", f"Successfully joined group with generation {generation(1, A)}"),
    ]
    text = client_log("app-a", lines, timedelta(milliseconds=ahead_ms))
    found = clock(tmp_path, {"server.log": broker, "a.log": text}, 1)
    bounds = [(ahead_ms - 500) * 1000, (ahead_ms + 1950) * 1000]
    assert found["offset_bounds_us"] == bounds
    assert found["offset_us"] == max(0, bounds[0])
