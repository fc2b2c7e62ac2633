"""Rows on the rates of logs and of the processing of members: a reader lets each position go on by its rate.

A member alone has its partition at 3.01 s. It looks every 50 ms, a record takes 1 ms, and a poll brings up to
500. Rates are in records per 1,000 s.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import Storm
from tests.storms.transcript import ADD, played

PAUSE = {"at_ms": 10_000, "do": "pause", "members": [0], "for_ms": 10_000}


def rates(ran: Storm, kind: str, **fields: object) -> list[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    """Seconds, positions and rates."""
    return [(at_us / 1e6, row.positions, row.rates) for at_us, row in ran.events(kind, **fields)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # It keeps up with 100 records a second, and could do 1,000: one row is enough for the whole run.
        ({"record_rate": 100}, [(3.01, (301,), (1_000_000,))]),
        # No row adds more than 9 times the rate of the log and 1,000 records a second, nor less than 1.
        ({"record_rate": 0.1, "process_ms": 0.1}, [(3.01, (0,), (100 + 900 + 1_000_000,))]),
        ({"record_rate": 1_000}, [(3.01, (3_010,), (1_000_000 + 1_000,))]),
        # Of 2,000 records a second it does 1,000: a row every ten seconds, and one at the end. It had
        # nothing to do until 3.06 s, since it began at the end of the log.
        ({"record_rate": 2_000, "settle_timeout_ms": 30_000},
         [(3.01, (6_020,), (2_001_000,)), (13.01, (15_970,), (1_000_000,)), (23.01, (25_970,), (1_000_000,)),
          (32, (34_960,), (1_000_000,))]),
        # It is behind between two polls if these are more than a second apart.
        ({"record_rate": 100, "poll_interval_ms": 1_000}, [(3.01, (301,), (1_000_000,))]),
        ({"record_rate": 100, "poll_interval_ms": 1_001, "least_duration_ms": 15_000},
         [(3.01, (301,), (90_000,)), (13.01, (1_201,), (100_100,)), (16, (1_502,), (100_100,))]),
    ],
)  # fmt: skip
def test_a_member_has_a_row_when_it_begins_and_every_ten_seconds_while_it_is_behind(
    settings: dict[str, Any], expected: list[Any]
) -> None:
    ran = played(**settings)
    assert rates(ran, "processing_rates_changed") == expected


def test_a_member_that_stood_still_gets_the_rate_with_which_it_catches_up() -> None:
    """1,000 records and a few more wait at 20 s. Two polls of 500 take until 21 s: 1,000 records within this
    second, and the 100 that arrive meanwhile."""
    ran = played(PAUSE, record_rate=100)
    [_, again] = rates(ran, "processing_rates_changed")
    assert again == (20, (996,), (1_100_000,))


@pytest.mark.parametrize("exact", [False, True])
def test_a_member_of_a_consumer_group_that_is_behind_gets_a_row_when_it_stops_with_a_partition(
    exact: bool,
) -> None:
    """It processes 1,000 records a second of both partitions. When it has to give one up, it stops with that
    one at once, and works on the other one alone. The next batch of 500 records takes half a second: the
    callback comes at the poll() behind it."""
    ran = played(ADD, exact=exact, partitions=2, record_rate=2_000, **{"group.protocol": "consumer"})
    (paused_us, paused), *_ = ran.events("partitions_paused", member="member-0")
    rows = ran.events("processing_rates_changed", member="member-0")
    assert [(row.partitions, row.rates) for at_us, row in rows if at_us == paused_us] == [
        (("topic-0-0",), (1_000_000,))
    ]
    assert paused.partitions == ("topic-0-1",)
    (revoked_us, revoked), *_ = ran.events("partitions_revoked", member="member-0")
    assert (revoked_us - paused_us, revoked.positions) == (500_000, paused.positions)


def test_a_row_names_the_logs_whose_rate_changes() -> None:
    """100 records a second, and none from 5 s to 9 s: 500 have arrived by then."""
    stops = [{"at": "0s", "factor": 1}, {"at": "5s", "factor": 0}, {"at": "9s", "factor": 1}]
    ran = played(record_rate=100, record_rate_over_time=stops, least_duration_ms=12_000)
    assert rates(ran, "record_rates_changed") == [(5, (500,), (0,)), (9, (500,), (100_000,))]
