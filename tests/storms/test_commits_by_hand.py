"""Commits of an application by hand: where they stand when a process crashes, is late or closes.

In `WORLD` 100 records a second arrive, the owner polls at every full second, and works 5 ms on each record.
At 20.0 s it has finished record 1,899 and takes the hundred from 1,900 on, of which 40 are done at 20.2 s.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

WORLD: dict[str, Any] = {
    **FIXED, "net_latency_ms": 0, "members": 2, "partitions": 1, "record_rate": 100, "process_ms": 5,
    "poll_interval_ms": 1_000, "partition.assignment.strategy": ["range"],
}  # fmt: skip
CRASH: dict[str, Any] = {"at_ms": 20_200, "do": "crash", "members": [0]}


def ran(*steps: dict[str, Any], exact: bool = False, **settings: Any) -> Storm:
    return storm(scenario([START, *steps], **WORLD | settings), exact=exact)


@pytest.mark.parametrize(
    ("commits", "committed"),
    [
        ("batch", 1_900),
        ("record", 1_940),
        # The owner has had the partition since 6 s. The commit of 18 s has the positions of the poll() of
        # 17 s, the one of 16 s those of 15 s: what had arrived one second before is finished then.
        ("interval", 1_600),
        ("background", 1_400),
        ("never", -1),
    ],
)
def test_a_crash_finds_this_committed(commits: str, committed: int) -> None:
    found = ran(CRASH, commits=commits, commit_interval_ms=3_000)
    [(_, crash)] = found.events("member_crashed")
    assert (crash.positions, crash.committed) == ((1_940,), (committed,))
    if committed >= 0:
        assert found.figures.records_duplicated == 1_940 - committed
    else:
        assert (found.figures.records_skipped or 0) > 4_000  # the next owner begins at the end, 45 s later


def test_without_background_commits_the_application_commits_after_each_batch() -> None:
    given = ran(CRASH, **{"enable.auto.commit": False})
    assert given.rows[1:] == ran(CRASH, commits="batch").rows[1:]


@pytest.mark.parametrize("commits", ["batch", "record"])
def test_whoever_closes_has_committed(commits: str) -> None:
    """Nothing is skipped but the 600 records that have come when the first owner begins."""
    figures = ran({"at_ms": 20_200, "do": "stop", "members": [0]}, commits=commits).figures
    assert (figures.records_duplicated, figures.records_skipped) == (0, 600)


def test_a_batch_that_takes_too_long_is_processed_again() -> None:
    """The batch of 20.0 s is finished at 50.8 s. The member has left at 30.0 s, when max.poll.interval.ms has
    passed: nobody takes its commit any more, and its hundred records are processed twice."""
    late: dict[str, Any] = {"at_ms": 20_200, "do": "busy", "members": [0], "for_ms": 30_000}
    limits: dict[str, Any] = {"max.poll.interval.ms": 10_000}
    found = ran(late, commits="batch", **limits)
    [(_, lost)] = found.events("partitions_lost")
    assert lost.positions == (2_000,)
    taken = [row.positions for _, row in found.events("partitions_assigned", member="member-1")]
    assert (1_900,) in taken
    assert found.figures.records_duplicated == 100


def test_commits_are_counted() -> None:
    """One member has its partition from 3 s on, and looks at 4, 5 ... 13 s. The run ends at the last look,
    whose batch is in hand: ten looks, and 900 records.
    """
    for commits, count in (("batch", 10), ("record", 900)):
        requests = ran(members=1, commits=commits).figures.requests
        assert requests is not None
        assert requests["OffsetCommit"] == count
    requests = ran(members=1, commits="batch", record_rate=0).figures.requests
    assert requests is not None
    assert "OffsetCommit" not in requests


def test_a_commit_takes_a_round_trip() -> None:
    """9 ms for a record, and 2 ms for its commit: 90.9 of 100 records a second. A batch shares the 2 ms."""
    settings: dict[str, Any] = {
        "members": 1,
        "net_latency_ms": 1,
        "process_ms": 9,
        "settle_timeout_ms": 20_000,
    }
    growths = {
        commits: ran(**settings, commits=commits, if_never_settled="report").figures.lag_growth_per_second
        for commits in ("record", "batch")
    }
    assert growths == {"record": 9.1, "batch": 0.0}
