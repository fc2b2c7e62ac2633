"""The state of a member follows from the rows of the members, or from those of the coordinator alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.report.lanes.members import Activity, GroupLanes, Member
from groupstorm.trace.events.scenario import PartitionsDeleted
from groupstorm.trace.reader import Row, read_rows
from groupstorm.trace.rows import as_mapping
from groupstorm.trace.schema import Source
from tests.explain.explaining import storm
from tests.figures.tracing import SECOND, Trace, coordinator_trace
from tests.imports.importing import import_texts
from tests.imports.test_several_logs import BROKER, FOLLOWER, LEADER, client_log

MEMBER_ID = "app-0-9f3a1c55-5408-43c9-81c4-45055e2ed762"


def history_of(trace: Trace, member: str) -> list[tuple[float, Activity]]:
    """The changes of what the member does, with the second of each."""
    rows = [as_mapping(seq, *row) for seq, row in enumerate(trace.rows)]
    return changes(rows, member)


def taken(rows: Iterable[Row]) -> Iterator[tuple[Row, GroupLanes, Iterable[Member]]]:
    """Each row with the lanes behind it, and the members of which it may have changed something."""
    lanes = GroupLanes()
    figures = FiguresAccumulator(listener=lanes)
    for row in rows:
        figures.add_row(row)
        yield row, lanes, lanes.take(row, figures)


def changes(rows: Iterable[Row], member: str) -> list[tuple[float, Activity]]:
    found: list[tuple[float, Activity]] = []
    for row, lanes, touched in taken(rows):
        if member not in [one.name for one in touched]:
            continue
        activity = lanes.members[member].activity(lanes.knows_owners)
        if not found or found[-1][1] is not activity:
            found.append((row["time_us"] / SECOND, activity))
    return found


def test_a_member_from_its_start_to_its_crash() -> None:
    trace = Trace.begun("t-0", "t-1")
    trace.start(1, "a")
    trace.take(2, "a", 1, "t-0", "t-1")
    trace.rejoin(5, "a")
    trace.revoke(6, "a", 1, "t-0", "t-1")
    trace.take(7, "a", 2)
    trace.rejoin(8, "a")
    trace.take(9, "a", 3, "t-0")
    trace.pause(10, "a", "t-0")
    trace.resume(12, "a", "t-0")
    trace.crash(13, "a", 3, "t-0")
    trace.remove(20, "a")
    assert history_of(trace, "a") == [
        (1, Activity.JOINS),
        (2, Activity.OWNS),
        (5, Activity.REJOINS),
        (6, Activity.JOINS),
        (7, Activity.IDLE),
        (8, Activity.JOINS),
        (9, Activity.OWNS),
        (10, Activity.PAUSED),
        (12, Activity.OWNS),
        (13, Activity.GONE),
    ]


def test_a_member_that_fetches_from_some_of_its_partitions_does_not_stand_still() -> None:
    trace = Trace()
    trace.start(0, "a")
    trace.take(1, "a", 1, "t-0", "t-1")
    rows = [as_mapping(seq, *row) for seq, row in enumerate(trace.rows)]
    paused = {"seq": 99, "source": "member", "event": "partitions_paused", "group": "g", "member": "a"}
    paused |= {"member_id": "a-id", "positions": [0]}
    some = paused | {"time_us": 2 * SECOND, "partitions": ["t-0"]}
    others = paused | {"time_us": 3 * SECOND, "partitions": ["t-1"]}
    assert changes([*rows, some], "a")[-1] == (1, Activity.OWNS)
    assert changes([*rows, some, others], "a")[-1] == (3, Activity.PAUSED)


def test_a_member_does_not_own_a_partition_that_was_deleted() -> None:
    trace = Trace.begun("t-0")
    trace.start(1, "a")
    trace.take(2, "a", 1, "t-0")
    trace.rejoin(4, "a")
    trace.add(5, Source.WORLD, PartitionsDeleted("g", ("t",), ("t-0",)))
    trace.revoke(6, "a", 1, "t-0")
    assert history_of(trace, "a")[-2:] == [(4, Activity.REJOINS), (5, Activity.JOINS)]


def test_rows_of_the_coordinator_alone() -> None:
    trace = coordinator_trace("range")
    trace.remove(20, "a")
    assert history_of(trace, "a-id") == [
        (0, Activity.JOINS),
        (3, Activity.OWNS),
        (12, Activity.JOINS),
        (13, Activity.OWNS),
        (20, Activity.GONE),
    ]
    assert history_of(trace, "b-id") == [(10, Activity.JOINS)]


def test_a_cooperative_member_keeps_its_partitions_while_it_joins() -> None:
    assert (12, Activity.REJOINS) in history_of(coordinator_trace("cooperative-sticky"), "a-id")


def test_what_a_log_does_not_say_is_unknown(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": BROKER})
    *_, (_, lanes, _) = taken(read_rows(tmp_path / "out"))
    assert not lanes.knows_owners
    assert {one.activity(lanes.knows_owners) for one in lanes.members.values() if one.present} <= {
        Activity.UNKNOWN
    }


def test_the_logs_of_the_members_say_it(tmp_path: Path) -> None:
    logs = {
        "server.log": BROKER,
        "a.log": client_log("app-a", LEADER),
        "b.log": client_log("app-b", FOLLOWER),
    }
    import_texts(tmp_path, logs)
    found = [activity for _, activity in changes(read_rows(tmp_path / "out"), "app-a")]
    assert found[0] is Activity.JOINS
    assert Activity.OWNS in found
    assert Activity.UNKNOWN not in found


def test_a_static_member_that_was_closed_is_gone_when_its_session_expires() -> None:
    def row(s: float, source: str, event: str, **more: Any) -> dict[str, Any]:
        known = {"seq": 1, "source": source, "event": event, "group": "g", "member": "a", "member_id": "a-1"}
        known |= {"generation": 1, "topics": ["t"], "positions": [0], "duration_us": 0}
        return known | {"time_us": round(s * SECOND)} | more

    rows = [
        row(0, "world", "group_imported", cause="members", detail="{}"),
        row(0, "member", "member_started"),
        row(1, "member", "partitions_assigned", partitions=["t-0"]),
        row(2, "member", "partitions_revoked", partitions=["t-0"], cause="assignment"),
        row(2, "member", "rejoin_requested", cause="left-group"),
        row(9, "coordinator", "member_removed", cause="session-expired"),
    ]
    assert changes(rows, "a") == [
        (0, Activity.JOINS),
        (1, Activity.OWNS),
        (2, Activity.IDLE),
        (9, Activity.GONE),
    ]


def test_labels_are_short_and_tell_members_of_one_client_apart() -> None:
    assert Member(MEMBER_ID, "app-0", True, True).label == "app-0-9f3a"
    assert Member("jA-_6DKoOagZN8xxtrqQ3A", "app-0", True, True).label == "app-0-jA-_"
    assert Member("seat-2", "app-0", False, True).label == "seat-2"


def test_a_share_consumer_is_there_from_its_start_to_its_end(tmp_path: Path) -> None:
    run = storm(tmp_path / "x", "share-deploy", "killed", {"members": 3, "partitions": 2})
    told = [
        (row["time_us"] / SECOND, Activity.GONE if row["event"] == "share_consumer_gone" else Activity.IDLE)
        for row in read_rows(run)
        if row.get("member") == "member-1" and row["event"].startswith("share_consumer_")
    ]
    assert len(told) > 2
    assert changes(read_rows(run), "member-1") == told
