"""When a process died whose own log just ends: from the end of its session, which its coordinator logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.history.unknown import DEATHS, OWNERSHIP, Unknown
from groupstorm.trace.events.imported import EvidenceMissing
from tests.imports.importing import broker_line, failed, figures, generation, import_texts, java_line, rows
from tests.imports.real_logs import BOTH, Recording, each, imported, recorded, recordings
from tests.imports.recording.situation import DYNAMIC
from tests.imports.test_ends_of_members import ROUND as ROUND_OF_TWO
from tests.imports.test_ends_of_members import A

ROUND = ROUND_OF_TWO.replace("with 2 members", "with 1 members")
CONFIGURED = (
    "[2024-11-18 10:00:00,000] INFO ConsumerConfig values: \n\tclient.id = app-a\n\tgroup.id = g\n"
    "\theartbeat.interval.ms = {heartbeat}\n\tsession.timeout.ms = {session}\n"
    " (org.apache.kafka.clients.consumer.ConsumerConfig)\n"
)
STARTED = java_line("10:00:00,005", "Subscribed to topic(s): t")
OWNS = java_line("10:00:03,012", f"Successfully joined group with generation {generation(1, A)}") + java_line(
    "10:00:03,060", "Adding newly assigned partitions: t-0, t-1"
)
EXPIRED = failed("10:01:10,000", A)


def deaths(folder: Path) -> list[tuple[float, ...]]:
    """When each member died, the earliest and the latest time: seconds since the first line."""
    return [
        tuple(round(row[name] / 1e6, 3) for name in ("time_us", "earliest_us", "latest_us"))
        for row in rows(folder, "member_crashed")
    ]


def left(number: int, client: str, session_ms: int) -> str:
    """Return the line of a broker before Kafka 4 on a member that leaves."""
    described = (
        f"memberId={client}-{number}, groupInstanceId=None, clientId={client}, clientHost=/127.0.0.1, "
        f"sessionTimeoutMs={session_ms}, rebalanceTimeoutMs=300000, supportedProtocols=List(range)"
    )
    return broker_line(
        f"10:02:0{number},000",
        f"Member MemberMetadata({described}) has left group g through explicit `LeaveGroup`; "
        "client reason: not provided",
    )


CONFIG = CONFIGURED.format(session=30_000, heartbeat=4_000)
LATER = java_line("10:00:43,000", "Request joining group due to: group is already rebalancing")
AGAIN = STARTED.replace("10:00:00,005", "10:00:50,000")
OTHERS = left(1, "app-a", 30_000) + left(2, "app-a", 30_000) + left(3, "app-b", 10_000)


@pytest.mark.parametrize(
    ("ends", "own", "death", "is_exact"),
    [
        # The session of 30 s is over at 70 s: the last heartbeat came at 40 s, the next one was due at 44 s.
        # A coordinator may be 200 ms late.
        (EXPIRED, CONFIG + STARTED + OWNS, (41.9, 39.8, 44.0), True),
        # it lived until its last line
        (EXPIRED, CONFIG + STARTED + OWNS + LATER, (43.5, 43.0, 44.0), True),
        # without its time-out a death is only noticed; one that is no number is not taken
        (EXPIRED, STARTED + OWNS, (69.995, 3.055, 69.995), False),
        (EXPIRED, CONFIG.replace("30000", "30_000") + STARTED + OWNS, (70.0, 3.06, 70.0), False),
        # Other processes of this client share it. The coordinator tells it when they leave, long after the
        # death; heartbeats as usual, 3 s.
        (EXPIRED + OTHERS, STARTED + OWNS, (41.395, 39.795, 42.995), True),
        (EXPIRED + left(1, "app-a", 30_000) + left(2, "app-a", 10_000), STARTED + OWNS,
         (69.995, 3.055, 69.995), False),
        # a successor tells only that a process has died, whose session ends though the successor runs
        ("", CONFIG + STARTED + OWNS + AGAIN, (50.0, 3.06, 50.0), False),
        (EXPIRED, CONFIG + STARTED + OWNS + AGAIN, (41.9, 39.8, 44.0), True),
    ],
)  # fmt: skip
def test_a_death_lies_between_the_last_heartbeat_and_the_next(
    tmp_path: Path, ends: str, own: str, death: tuple[float, ...], is_exact: bool
) -> None:
    import_texts(tmp_path, {"server.log": ROUND + ends, "a.log": own})
    assert deaths(tmp_path) == [death]
    missing = rows(tmp_path, "evidence_missing")
    assert [row["cause"] for row in missing] == ([] if is_exact else [DEATHS])
    assert all("when app-a died (a log says only by when it had)" in row["detail"] for row in missing)
    if (ends, own) == (EXPIRED, STARTED + OWNS):
        assert "as far as the trace knows, no partition was ever un-owned" in figures(tmp_path)["g"].answer


@each(recordings())
def test_a_real_process_was_killed_within_the_bounds(recording: Recording, tmp_path: Path) -> None:
    """Its harness has noted when. Java logs its timeouts, and the broker those of consumer groups: there the
    bounds are one heartbeat interval of a second and the coordinator's delay apart."""
    (killed,) = [one for one in recorded(recording)[DYNAMIC]["actions"] if one["do"] == "kill"]
    found = imported(recording, BOTH, tmp_path / "out")
    (row,) = found.of(DYNAMIC, "member_crashed")
    assert row["member"] == killed["member"]
    earliest_ms, latest_ms = found.bounds(row)
    assert earliest_ms - 50 <= killed["time_ms"] <= latest_ms + 50
    if recording.clients.startswith("java") or recording.is_consumer_group:
        assert latest_ms - earliest_ms <= 1_200


def test_every_death_of_a_process_that_has_named_no_id_counts(tmp_path: Path) -> None:
    """A log of old clients that does not say the member id."""
    given = java_line("10:00:03,060", "Setting newly assigned partitions [t-0]")
    again = [STARTED.replace("10:00:00,005", f"10:00:{second},000") for second in (20, 40)]
    more = given.replace("10:00:03", "10:00:23")
    import_texts(tmp_path, {"a.log": STARTED + given + again[0] + more + again[1]})
    assert [at_s for at_s, _, _ in deaths(tmp_path)] == [19.995, 39.995]


def test_a_death_before_a_window_does_not_count_in_it() -> None:
    unknown = Unknown()
    for cause in (DEATHS, OWNERSHIP):
        unknown.missing(0, EvidenceMissing("g", cause, None, "why"))
    unknown.begin_window()
    assert unknown.sentences == {OWNERSHIP: "why"}
