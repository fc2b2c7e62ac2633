"""Static members: a coordinator does not say when they stop, nor whether a process was started again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from groupstorm.cli.explain import print_explanation
from groupstorm.explain.findings import Finding
from tests.explain.explaining import (
    END_OF_FORMED,
    FORMED,
    added,
    explained,
    removed,
    round_of,
    scenario_storm,
    trace_of,
)
from tests.explain.test_first_answers import answer
from tests.imports.importing import broker_line
from tests.watch.rolling_rows import GROUP

Row = dict[str, Any]
Rows = list[Row]


def static_group(*names: str) -> Rows:
    return [*FORMED[:2], *(added(0.2, name, f"{name}-1", name) for name in names), *FORMED[3:]]


def taken_over(s: float, name: str, number: int = 2) -> Row:
    """Process ``number`` of a static member takes the place of the one before it."""
    ids = {"member_id": f"{name}-{number}", "previous_member_id": f"{name}-{number - 1}", "instance": name}
    return {"s": s, "event": "member_replaced", "member": name, "generation": 1} | ids


def test_how_long_a_static_member_was_away_is_unknown_to_its_coordinator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every partition has an owner from 3.1 s on, as far as the coordinator says."""
    found = explained(trace_of(tmp_path, [*GROUP[:8], taken_over(20, "b"), END_OF_FORMED]))
    print_explanation(found, {}, False)
    assert "Time without an owner: unknown: how long partitions waited for static" in capsys.readouterr().out


def closed(s: float, name: str) -> Row:
    row = {"s": s, "source": "member", "event": "member_closed", "member": name, "cause": "silent"}
    return row | {"member_id": f"{name}-1"}


def found_in(folder: Path, rows: Sequence[Row]) -> list[Finding]:
    return explained(
        trace_of(folder, [*sorted(rows, key=lambda row: float(row["s"])), END_OF_FORMED])
    ).findings


@pytest.mark.parametrize("apart_s", [30, 0])
def test_members_whose_stop_no_row_says_are_not_said_to_stop_at_once_nor_in_turn(
    tmp_path: Path, apart_s: int
) -> None:
    """Six members join at 0.2 s and are back from 3,000 s on. Their last sign of life is no stop: any order
    of stops fits."""
    back = [taken_over(3_000 + apart_s * number, name) for number, name in enumerate("bcdefg")]
    (finding,) = found_in(tmp_path, [*static_group(*"bcdefg"), *back])
    assert finding.pattern.name == "deploy-wave"
    assert finding.match.sentence == (
        "6 members stopped and came back or were replaced, in 1 wave (back from 50 min on); 6 of them as "
        "static members that say nothing when they stop."
    )
    assert finding.pattern.advice.startswith("Nothing in the group")
    assert finding.match.unknown == "when each of them stopped, so whether several were away at once"


@pytest.mark.parametrize(
    ("stop_after_s", "name", "how"),
    [(30, "deploy-wave", "one after the other"), (1, "aligned-restart", "at the same time")],
)
def test_members_whose_own_rows_say_when_they_stopped(
    tmp_path: Path, stop_after_s: int, name: str, how: str
) -> None:
    """Each is back 20 s after it stops: with 30 s in between one is away at a time, with 1 s all six are."""
    rows = static_group(*"bcdefg")
    for number, member in enumerate("bcdefg"):
        stop_s = 3_000 + stop_after_s * number
        rows += [closed(stop_s, member), taken_over(stop_s + 20, member)]
    (finding,) = found_in(tmp_path, rows)
    assert finding.pattern.name == name
    assert f"6 members stopped and came back or were replaced, {how}," in finding.match.sentence
    assert not finding.match.unknown


def test_restarts_of_the_same_members_are_not_more_members(tmp_path: Path) -> None:
    """Three members are back at 1,000 s and again at 3,000 s: six restarts."""
    rows = [
        taken_over(s + number, name, process)
        for process, s in ((2, 1_000), (3, 3_000))
        for number, name in enumerate("bcd")
    ]
    (finding,) = found_in(tmp_path, [*static_group(*"bcd"), *rows])
    assert "3 members stopped and came back or were replaced 6 times, in 2 waves" in finding.match.sentence


def expired_and_back(number: int = 2) -> Rows:
    """The session of the static member b expires at 100 s; b is back at 130 s under its id ``number``."""
    return [
        *static_group("b", "c"),
        removed(100, "b", "b-1", "session-expired", "b"),
        *round_of(100, 2, "session-expired", "b-1"),
        added(130, "b", f"b-{number}", "b"),
        *round_of(130, 3, "static-member", f"b-{number}"),
    ]


@pytest.mark.parametrize(("s", "cause"), [(129, "UNKNOWN_MEMBER_ID"), (90, "poll-timeout")])
def test_a_process_that_says_it_is_out_of_the_group_was_not_restarted(
    tmp_path: Path, s: int, cause: str
) -> None:
    """A new process begins without a member id: only the old one can be told that its id is unknown, or
    stop its heartbeats for want of a poll(). Both rebalances are the doing of its silence."""
    noticed = {"s": s, "source": "member", "event": "rejoin_requested", "member": "b", "member_id": "b-1"}
    (finding, *more) = found_in(tmp_path, [*expired_and_back(), noticed | {"cause": cause, "generation": 1}])
    expected = "max-poll-interval" if cause == "poll-timeout" else "session-expired"
    assert (finding.pattern.name, finding.match.members) == (expected, ("b",))
    assert [one.begun_us // 1_000_000 for one in finding.rebalances] == [100, 130]
    assert {one.pattern.name for one in more}.isdisjoint({"static-session-too-short", "session-expired"})


def test_a_process_that_keeps_the_id_which_it_gave_itself_was_not_restarted(tmp_path: Path) -> None:
    """So does a member of a consumer group (KIP-848)."""
    (finding,) = found_in(tmp_path, expired_and_back(1))
    assert finding.pattern.name == "session-expired"


LOST = {"s": 90, "event": "partitions_lost", "generation": 1, "partitions": ["t-0"], "positions": [5]}
NOTICED = {"event": "rejoin_requested", "cause": "UNKNOWN_MEMBER_ID", "generation": 1}
CRASHED = {"s": 60, "event": "member_crashed", "generation": 1, "partitions": [], "positions": []}
STARTED = {"s": 129, "event": "member_started", "topics": ["t"]}


@pytest.mark.parametrize(
    ("row", "is_known"),
    [
        (None, False),
        (LOST | {"cause": "close", "duration_us": 0}, True),
        (NOTICED | {"s": 0.1}, False),  # in an earlier life
        (CRASHED, True),
        (STARTED | {"s": 200}, False),  # it may have been started in between, too
        (STARTED, True),
    ],
)
def test_a_restart_is_only_sure_if_a_row_tells_of_the_process(
    tmp_path: Path, row: Row | None, is_known: bool
) -> None:
    own = [] if row is None else [row | {"source": "member", "member": "b", "member_id": "b-1"}]
    (finding,) = found_in(tmp_path, [*expired_and_back(), *own])
    assert finding.pattern.name == "static-session-too-short"
    assert (finding.match.unknown == "") == is_known
    assert ("If they were not restarted" in finding.pattern.advice) != is_known


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("crash-restart, members: [1, 2, 3]", "3 static members came back 3 times within the session"),
        (
            "restart, members: [1, 2, 3]",
            "3 members stopped and came back or were replaced, up to 3 at a time",
        ),
    ],
)
def test_static_members_that_are_killed_together_are_no_deployment(
    tmp_path: Path, step: str, said: str
) -> None:
    trace = scenario_storm(
        tmp_path,
        f"""
        name: together
        figures_from: warm_up_ms
        settings: {{group.instance.id: ordinal, members: 12, start_ms: {{exactly: 10s}}}}
        steps:
          - {{at_ms: 0, do: start}}
          - {{at_ms: 2m, do: {step}}}
        """,
    )
    assert explained(trace).findings[0].match.sentence.startswith(said)


def test_a_process_that_ends_before_the_next_one_comes_is_no_twin(tmp_path: Path) -> None:
    """However often it is restarted within ten minutes."""
    trace = scenario_storm(
        tmp_path,
        """
        name: often
        figures_from: warm_up_ms
        settings: {group.instance.id: ordinal, members: 3, start_ms: {exactly: 10s}}
        steps:
          - {at_ms: 0, do: start}
          - {at_ms: 2m, do: restart, members: [1]}
          - {at_ms: 4m, do: crash-restart, members: [1]}
          - {at_ms: 6m, do: restart, members: [1]}
        """,
    )
    assert [one.pattern.name for one in explained(trace).findings][:1] == ["static-restart"]


def test_a_consumer_group_keeps_the_place_of_a_dead_member_from_its_successor(tmp_path: Path) -> None:
    """KIP-848: the dead process cannot release its group.instance.id. A longer session makes it worse."""
    trace = scenario_storm(
        tmp_path,
        """
        name: dies
        question: A static member of a consumer group dies. When is it back?
        figures_from: warm_up_ms
        settings: {group.protocol: consumer, group.instance.id: ordinal, members: 3, restart_failed: true,
          start_ms: {exactly: 10s}}
        steps:
          - {at_ms: 0, do: start}
          - {at_ms: 2m, do: crash-restart, members: [1]}
        """,
    )
    finding = explained(trace).findings[0]
    assert finding.pattern.name == "static-unreleased"
    assert finding.match.sentence.startswith("1 session expired; 1 member died, and their place was kept")
    assert finding.match.sentence.endswith(" Refused before with UNRELEASED_INSTANCE_ID: 2 starts.")
    assert "a shorter group.consumer.session.timeout.ms ends that sooner" in finding.pattern.advice


def test_a_living_member_whose_id_another_process_has_is_a_twin(tmp_path: Path) -> None:
    refused = {"s": 80, "source": "member", "event": "member_failed", "error": "UNRELEASED_INSTANCE_ID"}
    rows = [*static_group("b", "c"), refused | {"member": "b", "member_id": "b-2"}]
    (finding,) = found_in(tmp_path, rows)
    assert finding.pattern.name == "static-fenced"


@pytest.mark.parametrize(("end_s", "until"), [(279, " or before the trace ended"), (281, "")])
def test_a_trace_that_ends_within_three_minutes_does_not_say_that_a_member_stayed_away(
    tmp_path: Path, end_s: int, until: str
) -> None:
    rows = [
        *expired_and_back()[:-1],
        {"s": end_s, "event": "offsets_committed", "member": "c", "member_id": "c-1"},
    ]
    rows = [row for row in rows if row.get("member_id") != "b-2" and float(row["s"]) != 130]
    (finding,) = explained(trace_of(tmp_path, sorted(rows, key=lambda row: float(row["s"])))).findings
    assert finding.pattern.name == "static-orphan"
    assert f"within three minutes{until}." in finding.match.sentence


def test_a_broker_may_log_a_failed_member_some_time_before_its_round(tmp_path: Path) -> None:
    """A busy broker: the round that its reason says to remove the member is of the expired session."""
    imported = {"s": 0, "source": "world", "event": "group_imported", "cause": "members", "detail": "{}"}
    rows = [
        imported,
        *static_group("b"),
        removed(95, "b", "b-1", "session-expired", "b"),
        *round_of(95.4, 2, "session-expired", "b-1"),
        added(110, "b", "b-2", "b"),
        *round_of(110, 3, "static-member", "b-2"),
    ]
    (finding,) = found_in(tmp_path, rows)
    assert finding.pattern.name == "static-session-too-short"
    assert [one.cause for one in finding.rebalances] == ["session-expired", "static-member"]
    assert "saves rebalances, but nobody takes over what waits for the restart" in finding.pattern.advice


def test_static_members_that_die_of_a_record_are_not_gone_for_good(tmp_path: Path) -> None:
    """Each is started again, later each time: no session and no other id gets the group past the record."""
    trace = scenario_storm(
        tmp_path,
        """
        name: refunds
        question: One record ends every process that reads it. What is the cause?
        figures_from: warm_up_ms
        settings: {group.instance.id: ordinal, members: 3, partitions: 6, restart_failed: true,
          if_never_settled: report, slow_records: [{partition: 2, at: 2m, takes: 1s, then: crash}]}
        steps:
          - {at_ms: 0, do: start}
        """,
    )
    one = explained(trace)
    assert one.findings[0].pattern.name == "poison-record"
    assert one.findings[0].rebalances == one.history.rebalances


def test_a_static_member_without_a_poll_falls_silent_and_leaves_nothing(tmp_path: Path) -> None:
    trace = scenario_storm(
        tmp_path,
        """
        name: late
        question: A static member works on one batch for too long.
        figures_from: warm_up_ms
        settings: {members: 3, partitions: 6, group.instance.id: ordinal, max.poll.interval.ms: 60s}
        steps:
          - {at_ms: 0, do: start}
          - {at_ms: 2m, do: busy, members: [1], for_ms: 3m}
        """,
    )
    (finding,) = [one for one in explained(trace).findings if one.pattern.name == "max-poll-interval"]
    assert finding.match.sentence.startswith("1 member sent no more heartbeats 1 time because max.poll.")


@pytest.mark.parametrize(
    ("seen", "restarted", "each_s", "away_s", "how"),
    [
        (False, 12, 5, 18, " up to 4 at a time"),
        (True, 3, 5, 18, " up to 3 at a time"),
        (True, 3, 0.8, 0.5, " one after the other"),
    ],
)
def test_members_count_to_a_group_whose_rounds_say_no_number(
    tmp_path: Path, seen: bool, restarted: int, each_s: float, away_s: float, how: str
) -> None:
    """Three of twelve that logs saw coming are away at once, or four of twelve in logs that begin late, after
    five others that went: not half of the group. Who is back at once has not stopped with the next one."""
    rows: Rows = [
        {"s": 0, "source": "world", "event": "group_imported", "cause": "members", "detail": "{}"},
        {**FORMED[0], "previous_state": "unknown", "count": None},
    ]
    if seen:
        rows += [added(0, f"m{number}", f"m{number}-1") for number in range(12)]
    else:
        rows += [removed(60, f"x{number}", f"x{number}-1", "left") for number in range(5)]
    for number in range(restarted):
        down_s = 300 + each_s * number
        rows.append(removed(down_s, f"m{number}", f"m{number}-1", "left"))
        rows.append(added(down_s + away_s, f"m{number}", f"m{number}-2"))
    found = explained(trace_of(tmp_path, [*sorted(rows, key=lambda row: row["s"]), END_OF_FORMED]))
    said = [one.match.sentence for one in found.findings if one.pattern.name == "deploy-wave"]
    assert [sentence.split(",")[1] for sentence in said] == [how]


def test_a_brokers_log_does_not_say_whether_a_process_has_a_twin_or_starts_again(tmp_path: Path) -> None:
    ids = [f"i-{number}0000000-0000-0000-0000-000000000000" for number in range(4)]
    log = "".join(
        broker_line(
            f"10:0{minute}:00,000",
            f"Static member i of group g with unknown member id rejoins, assigning new member id {new}, "
            f"while old member id {old} will be removed.",
        )
        for minute, (old, new) in enumerate(pairwise(ids))
    )
    (finding,) = answer(tmp_path, log).findings
    assert finding.pattern.name == "static-fenced"
    assert finding.match.unknown.startswith("whether it is one process that ends and starts again")
