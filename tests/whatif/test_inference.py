"""Lives, deployments, delays and settings that follow from rows and rounds, calculated in each test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from groupstorm.storms.scenario.setting_names import How, observed
from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.whatif import facts as signs
from groupstorm.whatif.agreement import matches, partners_of
from groupstorm.whatif.drafting import draft_of
from groupstorm.whatif.facts import Reading, Round, Sign
from groupstorm.whatif.inference import infer_settings
from groupstorm.whatif.lives import Lives, Moment, Stint, Timeouts, lives_of
from groupstorm.whatif.waves import find_waves

S = 1_000_000
PREPARING = "PreparingRebalance"
TIMEOUTS = Timeouts(session_us=45 * S, heartbeat_us=3 * S, max_poll_interval_us=300 * S)

#: A process starts and joins at once.
BEGUN = ((0, signs.STARTED, "", ""), (0, signs.JOINED, "", "a"))


def lives(*rows: tuple[float, str, str, str], instances: Mapping[str, str] = MappingProxyType({})) -> Lives:
    """Return the life of one process; each row: seconds, kind, detail, member id."""
    reading = Reading("g", Path("x"), instances=dict(instances))
    reading.signs["app"] = [
        Sign(int(at_s * S), kind, detail, f"log:{number}", member_id=member_id)
        for number, (at_s, kind, detail, member_id) in enumerate(rows, start=1)
    ]
    return lives_of(reading, lambda _: TIMEOUTS)


def told(found: Lives) -> list[tuple[str, float, str, float]]:
    """Each beginning, end and pause: what, when, how it is known, how long."""
    moments = [
        moment for stint in found.stints for moment in (stint.start, stint.end) if moment is not None
    ] + [pause for _, pause in found.pauses]
    moments.sort(key=lambda moment: moment.at_us)
    return [(one.do, one.at_us / S, str(one.at.how), one.for_us / S) for one in moments]


def test_a_process_that_dies_is_silent_from_its_last_heartbeat_on() -> None:
    """Its session of 45 s expires at 100 s: the last heartbeat was at 55 s, the next one was due at 58 s."""
    found = lives(*BEGUN, (100, signs.REMOVED, "session-expired", "a"))
    assert told(found) == [("start", 0, "observed", 0), ("crash", 56.5, "inferred", 0)]


def test_a_process_that_goes_on_after_its_session_expired_stood_still() -> None:
    found = lives(
        *BEGUN,
        (100, signs.REMOVED, "session-expired", "a"),
        (130, signs.LOST, "UNKNOWN_MEMBER_ID", "a"),
    )
    assert told(found) == [("start", 0, "observed", 0), ("pause", 56.5, "inferred", 73.5)]


def test_the_session_of_a_dead_process_expires_though_its_successor_runs() -> None:
    """The member id says whose session expires."""
    found = lives(
        *BEGUN,
        (80, signs.STARTED, "", ""),
        (80, signs.JOINED, "", "b"),
        (100, signs.REMOVED, "session-expired", "a"),
    )
    assert [(do, at) for do, at, _, _ in told(found)] == [("start", 0), ("crash", 56.5), ("start", 80)]


def test_a_process_counts_from_its_first_join_on() -> None:
    """It starts at 2 s and looks for its coordinator; a scenario's process joins as soon as it starts."""
    found = lives(
        (2, signs.STARTED, "", ""),
        (7, signs.REJOIN, "first-join", ""),
        (9, signs.JOINED, "", "a"),
        (9.5, signs.JOINED, "", "a"),
    )
    assert told(found) == [("start", 9, "inferred", 0)]


def test_a_member_of_which_only_the_round_is_known_joined_when_it_began() -> None:
    """Its process starts at 2 s; a round begins at 5 s, and is over at 9 s with the member in it."""
    found = lives((2, signs.STARTED, "", ""), (5, signs.JOINED, signs.IN_ROUND, "a"))
    assert told(found) == [("start", 5, "inferred", 0)]
    (stint,) = found.stints
    assert stint.start.at.why == "log:2: the first round that it is in"


def test_a_process_that_starts_in_a_round_joins_no_sooner() -> None:
    """The round begins at 5 s, and the process starts at 6 s."""
    found = lives((6, signs.STARTED, "", ""), (5, signs.JOINED, signs.IN_ROUND, "a"))
    assert told(found) == [("start", 6, "observed", 0)]


def test_a_static_member_that_gives_up_everything_stops_and_does_not_die() -> None:
    """It sends no LeaveGroup: its session expires 45 s later."""
    found = lives(
        *BEGUN,
        (50, signs.REVOKED, "assignment", "a"),
        (50, signs.REJOIN, "left-group", ""),
        (94, signs.REMOVED, "session-expired", "a"),
        instances={"app": "seat"},
    )
    assert told(found) == [("start", 0, "observed", 0), ("stop", 50, "inferred", 0)]


def test_a_member_that_gives_up_everything_to_join_again_dies_later() -> None:
    found = lives(
        *BEGUN,
        (50, signs.REVOKED, "rebalance", "a"),
        (50, signs.PARKED, "", "a"),
        (51, signs.SYNCED, "", "a"),
        (100, signs.REMOVED, "session-expired", "a"),
        instances={"app": "seat"},
    )
    assert told(found)[-1] == ("crash", 56.5, "inferred", 0)


def test_a_member_that_leaves_because_nobody_polls_works_on() -> None:
    found = lives(
        (0, signs.STARTED, "", ""),
        (1, signs.JOINED, "", "a"),
        (400, signs.REMOVED, "left", "a"),
        (460, signs.LOST, "unknown", "a"),
        (461, signs.JOINED, "", "b"),
    )
    assert told(found)[1:] == [("busy", 100, "inferred", 361)]


def test_a_coordinator_alone_tells_of_two_processes() -> None:
    found = lives((5, signs.JOINED, "", "a"), (60, signs.REMOVED, "left", "a"), (90, signs.JOINED, "", "b"))
    assert [(do, at) for do, at, _, _ in told(found)] == [("start", 5), ("stop", 60), ("start", 90)]


def test_an_end_that_nothing_tells_is_a_problem() -> None:
    found = lives((0, signs.STARTED, "", ""), (1, signs.JOINED, "", "a"), (80, signs.STARTED, "", ""))
    assert "when the one before it ended, the trace does not say" in found.problems[0]
    back = lives((0, signs.JOINED, "", "a"), (80, signs.REPLACED, "", "b"))
    assert "static member comes back" in back.problems[0]


def test_a_removal_whose_cause_no_log_says_is_a_problem() -> None:
    """It left, or its session expired: then it died long before."""
    found = lives(
        (5, signs.JOINED, "", "a"), (60, signs.REMOVED, "unknown", "a"), (90, signs.JOINED, "", "b")
    )
    assert [(do, at) for do, at, _, _ in told(found)] == [("start", 5), ("stop", 60), ("start", 90)]
    (problem,) = found.problems
    assert "whether it left or its session expired, the trace does not say (at 60.0 s: log:2)" in problem


def test_a_member_whose_own_log_does_not_say_that_it_ends_was_silent() -> None:
    found = lives(*BEGUN, (100, signs.REMOVED, "unknown", "a"))
    assert told(found)[-1] == ("crash", 56.5, "inferred", 0)
    assert found.problems == []


def stints(*times: tuple[str, float, float | None]) -> Lives:
    found = Lives()
    for name, start_s, end_s in times:
        end = None if end_s is None else Moment(observed(int(end_s * S), ""), "stop")
        found.stints.append(Stint(name, Moment(observed(int(start_s * S), ""), "start"), end))
    found.stints.sort(key=lambda stint: stint.start.at_us)
    return found


def test_a_wave_two_at_a_time() -> None:
    """b and a stop; b is back after 20 s, 5 s later c stops; a is back after 29 s, 10 s later d stops."""
    found = stints(
        ("a", 0, 101), ("b", 0, 100), ("c", 0, 125), ("d", 0, 140),
        ("b", 120, None), ("a", 130, None), ("c", 150, None), ("d", 165, None),
    )  # fmt: skip
    [wave] = find_waves(found)
    assert (wave.names, wave.unavailable) == (("b", "a", "c", "d"), 2)
    assert wave.start_ms == (20_000, 29_000, 25_000, 25_000)
    assert wave.ready_ms == (5_000, 10_000, 7_500, 7_500)


@pytest.mark.parametrize(
    "times",
    [
        [("a", 0, 100), ("a", 120, None), ("b", 0, None)],
        [("a", 0, 100), ("a", 120, None), ("b", 0, 130), ("b", 150, None), ("c", 110, None)],
        [("a", 0, 100), ("a", 120, None), ("b", 0, 101), ("b", 121, None)],
    ],
)
def test_what_a_rolling_restart_would_not_do_is_no_wave(times: list[tuple[str, float, float | None]]) -> None:
    """One process is not replaced; another one starts meanwhile; no time is seen in which one gets ready."""
    assert find_waves(stints(*times)) == []


@pytest.mark.parametrize(
    ("joins_s", "ended_s", "delay_ms"),
    [([1], 3, 3_000), ([1, 2], 6, 3_000), ([1, 2, 5], 9, 3_000), ([1], 0.002, 0), ([1, 4], 20, 10_000)],
)
def test_the_initial_delay_follows_from_the_first_round(
    joins_s: list[float], ended_s: float, delay_ms: int
) -> None:
    """The coordinator waits once more whenever somebody has joined within the delay."""
    found = Reading("g", Path("x"))
    for at_s, before, now in ((1, "Empty", PREPARING), (1 + ended_s, PREPARING, "CompletingRebalance")):
        changed = GroupStateChanged("g", before, now, 0, "new-member", "a", None, None, 1)
        found.rounds.add(int(at_s * S), changed)
    found.first_joins_us = [int(at_s * S) for at_s in joins_s]
    known = infer_settings(found, {})["group.initial.rebalance.delay.ms"]
    assert (known.value, known.how) == (delay_ms, How.INFERRED)


def test_rounds_have_one_partner_each() -> None:
    def round_at(at_s: float) -> Round:
        return Round(int(at_s * S), int((at_s + 1) * S), "left", 3, True)

    seen = [round_at(10), round_at(12), round_at(60)]
    again = [round_at(9), round_at(13), round_at(90)]
    found = partners_of(seen, again, 4 * S)
    assert [None if partner is None else partner.began_us // S for _, partner in found] == [9, 13, None]


@pytest.mark.parametrize(
    ("causes", "lines"),
    [
        (("left", "left"), [("of these, rounds of the same cause", 50)]),
        (("left", "unknown"), [("of these, if the cause is known, rounds of the same cause", 100)]),
        (("unknown", "unknown"), []),
    ],
)
def test_causes_that_no_log_says_are_not_compared(
    causes: tuple[str, str], lines: list[tuple[str, float]]
) -> None:
    seen = [Round(at * S, (at + 1) * S, cause, 3, True) for at, cause in zip((10, 20), causes, strict=True)]
    again = [Round(10 * S, 11 * S, "left", 3, True), Round(20 * S, 21 * S, "expired", 3, True)]
    begun, *compared = matches(seen, [again], 4 * S)
    assert begun.replayed.median == 100
    assert [(one.what, one.replayed.median) for one in compared] == lines


def test_a_member_whose_configuration_differs_has_settings_of_its_own() -> None:
    found = Reading("g", Path("x"))
    found.topics["t"] = 4
    for name, session_ms in (("a", "30000"), ("b", "30000"), ("c", "12000")):
        found.signs[name] = [Sign(0, signs.STARTED, "", "log:1")]
        found.configured[name] = {"session.timeout.ms": session_ms}
    draft = draft_of(found, "x", {})
    session = draft.settings["session.timeout.ms"]
    assert (session.value, session.comment) == (30_000, "observed: the configurations of 2 of 3 members")
    [*_, last] = draft.settings["member_settings"].value
    assert last == {"members": [2], "name": "c", "settings": {"session.timeout.ms": 12_000}}
