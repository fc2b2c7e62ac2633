"""Who came to a group and who went, from the logs of its clients alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.importing import client_line, failed, figures, generation, import_texts, rows


def uuid(number: int) -> str:
    return f"{number:08x}-1111-4111-8111-111111111111"


def started(second: float, client: str) -> str:
    return client_line(second, "Subscribed to topic(s): t", client)


def joined(second: float, member: tuple[str, int], number: int, plan: dict[str, int] | None = None) -> str:
    """A member joins again and gets a generation. ``plan``, of the leader: client -> number of its id."""
    client, got = member[0], generation(number, f"{member[0]}-{uuid(member[1])}")
    text = client_line(second, "Request joining group due to: group is already rebalancing", client)
    text += client_line(second, "(Re-)joining group", client)
    text += client_line(second + 0.5, f"Successfully joined group with generation {got}", client)
    if plan is not None:
        given = ", ".join(
            f"{name}-{uuid(of)}=Assignment(partitions=[t-{at}])" for at, (name, of) in enumerate(plan.items())
        )
        finished = f"Finished assignment for group at generation {number}: {{{given}}}"
        text += client_line(second + 0.6, finished, client)
        text += client_line(second + 0.7, f"Successfully synced group in generation {got}", client)
    return text


def leaves(second: float, client: str, number: int) -> str:
    said = (
        f"Member {client}-{uuid(number)} sending LeaveGroup request to coordinator b:9092 (id: 1 rack: null)"
    )
    return client_line(second, f"{said} due to the consumer is being closed", client)


def changes(folder: Path) -> list[tuple[float, str, str, str]]:
    """Seconds since the first row, what the coordinator did, client, and cause."""
    return [
        (row["time_us"] / 1_000_000, row["event"].removeprefix("member_"), row["member"], row["cause"])
        for row in rows(folder)
        if row["event"] in ("member_added", "member_removed")
    ]


LEADER = joined(0, ("a", 1), 1, {"a": 1, "b": 1}) + joined(60, ("a", 1), 2, {"a": 1})


def test_the_leaders_plans_say_who_went_and_who_came(tmp_path: Path) -> None:
    import_texts(tmp_path, {"a.log": LEADER + joined(90, ("a", 1), 3, {"a": 1, "b": 2, "c": 1})})
    assert changes(tmp_path) == [
        (60.0, "removed", "b", "unknown"),
        (90.0, "added", "b", "new-member"),
        (90.0, "added", "c", "new-member"),
    ]


def test_a_member_that_says_that_it_leaves_goes_once_and_then(tmp_path: Path) -> None:
    other = joined(0, ("b", 1), 1) + leaves(55, "b", 1)
    import_texts(tmp_path, {"a.log": LEADER, "b.log": other})
    assert changes(tmp_path) == [(55.0, "removed", "b", "left")]


def test_behind_generations_that_no_log_has_a_member_has_gone_by_its_next_one_at_the_latest(
    tmp_path: Path,
) -> None:
    """Others may have had its partitions meanwhile: they did not wait since it left."""
    first = started(0, "a") + joined(1, ("a", 1), 1) + leaves(30, "a", 1)
    import_texts(tmp_path, {"a.log": first + started(40, "a") + joined(41, ("a", 2), 5)})
    assert changes(tmp_path) == [
        (1.0, "added", "a", "new-member"),
        (41.0, "removed", "a", "left"),
        (41.0, "added", "a", "new-member"),
    ]


def test_a_line_of_the_coordinator_is_believed_instead(tmp_path: Path) -> None:
    broker = failed("10:00:55,000", f"b-{uuid(1)}").replace("2024-11-18", "2026-03-04")
    import_texts(tmp_path, {"a.log": LEADER, "broker.log": broker})
    assert changes(tmp_path) == [(55.0, "removed", "b", "session-expired")]


@pytest.mark.parametrize(
    ("later", "crashed"), [("", [60.0]), ("Lost previously assigned partitions t-1", [])]
)
def test_a_member_that_went_has_died_unless_its_own_log_goes_on(
    tmp_path: Path, later: str, crashed: list[float]
) -> None:
    """Its partitions had no owner before the first generation without it, and no log says since when."""
    own = joined(0, ("b", 1), 1) + client_line(0.8, "Adding newly assigned partitions: t-1", "b")
    done = import_texts(tmp_path, {"a.log": LEADER, "b.log": own + (later and client_line(75, later, "b"))})
    assert [row["time_us"] / 1_000_000 for row in rows(tmp_path, "member_crashed")] == crashed
    assert ("deaths" in done.groups[0].missing) == bool(crashed)


GROWS = joined(0, ("a", 1), 1, {"a": 1}) + joined(60, ("a", 1), 2, {"a": 1, "b": 1})


@pytest.mark.parametrize(
    ("leader", "own", "began", "came"),
    [
        # others learn with their next heartbeats that b has left
        (LEADER, joined(0, ("b", 1), 1) + leaves(55, "b", 1), (55.0, "left", f"b-{uuid(1)}"), []),
        (GROWS, started(58, "b") + joined(59.9, ("b", 1), 2), (59.9, "new-member", f"b-{uuid(1)}"), [59.9]),
        # b joins a round that has begun before, and no line says why
        (GROWS, started(60.1, "b") + joined(60.2, ("b", 1), 2), (60.0, "unknown", None), [60.2]),
    ],
)
def test_a_round_begins_with_the_member_that_came_or_left_before_the_others_asked(
    tmp_path: Path, leader: str, own: str, began: tuple[float, str, str | None], came: list[float]
) -> None:
    import_texts(tmp_path, {"a.log": leader, "b.log": own})
    *_, begun = [row for row in rows(tmp_path) if row.get("state") == "PreparingRebalance"]
    assert (begun["time_us"] / 1e6, begun["cause"], begun.get("member_id")) == began
    added = [row for row in rows(tmp_path, "member_added") if row["generation"] == 1]
    assert [row["time_us"] / 1e6 for row in added] == came


def given(second: float, whole: str, added: str) -> str:
    """Return the lines of a cooperative member on its assignment, behind those of `joined`."""
    text = client_line(second, f"Notifying assignor about the new Assignment(partitions=[{whole}])", "a")
    return text + client_line(second + 0.3, f"Adding newly assigned partitions: [{added}]", "a")


#: The logs begin when a has t-0, and b has t-1.
CLOSED = client_line(57, "Revoke previously assigned partitions [t-1]", "b") + leaves(57, "b", 1)
TAKEN = joined(60, ("a", 1), 8, {"a": 1}) + given(60.7, "t-0, t-1", "t-1")
#: From 90 s to 95 s the group has no members.
AWAY = client_line(90, "Revoke previously assigned partitions [t-0, t-1]", "a") + leaves(90, "a", 1)
BACK = started(95, "a") + joined(95, ("a", 2), 9, {"a": 2}) + given(95.7, "t-0, t-1", "t-0, t-1")


# t-1 has no owner from 57 s to 61 s, and both have none from 95 s to 96 s
@pytest.mark.parametrize(("later", "unowned_s"), [("", 4.0), (AWAY + BACK, 6.0)])
def test_logs_that_begin_later_than_their_members(tmp_path: Path, later: str, unowned_s: float) -> None:
    """A member had before what it gives up, or has without being newly assigned it."""
    import_texts(tmp_path, {"a.log": TAKEN + later, "b.log": CLOSED})
    assert figures(tmp_path)["g"].unowned_partition_seconds == unowned_s
    gone = [row["time_us"] / 1e6 + 57 for row in rows(tmp_path, "members_gone")]
    assert gone == [90.0] * bool(later)
    held = {name for row in rows(tmp_path, "partitions_assigned") for name in row["partitions"]}
    assert held == {"t-0", "t-1"}
