"""Storms of share groups: the same traces in both modes, deployments, figures, refused settings."""

from __future__ import annotations

import re
from math import ceil
from typing import Any

import pytest

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.problems import InputError
from groupstorm.storms.live.play import play
from groupstorm.storms.runs.contradictions import contradictions
from groupstorm.trace.events import share as events
from groupstorm.trace.events.scenario import ScenarioStarted
from groupstorm.trace.schema import Source
from groupstorm.verdicts.comparison import compare_sentences
from groupstorm.wording import counted
from tests.soaking import one_in
from tests.storms.storms_in_memory import START, MemorySink, scenario, storm

SMALL = {
    "group.protocol": "share", "members": 5, "partitions": 3, "process_ms": 300, "record_rate": 2,
    "max.poll.records": 4, "records_per_batch": 3, "warm_up_ms": 20_000, "start_ms": 2_000,
    "least_duration_ms": 60_000, "settle_timeout_ms": 20_000,
}  # fmt: skip
STEPS = [
    START,
    {"at_ms": 20_000, "do": "crash-restart", "members": [1]},
    {"at_ms": 25_000, "do": "pause", "members": [2], "for_ms": 50_000},
    {"at_ms": 30_000, "do": "disconnect", "members": [3], "for_ms": 3_000},
    {"at_ms": 35_000, "do": "rolling-restart"},
    {"at_ms": 40_000, "do": "add", "count": 1},
]


@pytest.mark.parametrize("seed", one_in(2, [1, 2]))
def test_computed_heartbeats_give_the_trace_of_simulated_ones(seed: int) -> None:
    what = scenario(STEPS, **SMALL)
    computed, simulated = storm(what, seed), storm(what, seed, exact=True)
    assert computed.rows == simulated.rows
    assert computed.broken == {}


def test_heartbeats_that_wait_for_the_answer_before_are_sent_in_both_modes() -> None:
    """An answer may take 2 x 0.9 s, and the next heartbeat is due 1 s after the one before."""
    short = {"group.share.heartbeat.interval.ms": 1_000, "net_latency_ms": {"uniform": [20, 900]}}
    what = scenario([START], **SMALL | {"members": 1, "record_rate": 0}, **short)
    assert storm(what, 0).rows == storm(what, 0, exact=True).rows


def _all_members(do: str, **how: int) -> list[dict[str, Any]]:
    return [{"at_ms": 30_000, "do": do, "members": [member], **how} for member in range(2)]


@pytest.mark.parametrize(
    "steps", [_all_members("crash"), _all_members("crash-restart"), _all_members("disconnect", for_ms=1_000)]
)
def test_a_group_whose_last_connection_breaks_is_forgotten(steps: list[dict[str, Any]]) -> None:
    """The records that arrive at that instant go to a fetch whose client is gone: nobody has them when the
    partitions are loaded again, and that delivery is not counted."""
    small = {"group.protocol": "share", "members": 2, "partitions": 2, "record_rate": 5}
    for seed in range(6):
        ran = storm(scenario([START, *steps], **small), seed)
        assert set((ran.figures.invariants or {}).values()) == {"held"}


def test_records_behind_those_of_an_answer_that_waits_may_be_told_first() -> None:
    """An answer that takes acknowledgements along waits 500 ms until they are written."""
    slow = {"group.protocol": "share", "members": 1, "partitions": 1, "append_latency_ms": 500}
    ran = storm(scenario([START, {"at_ms": 1_000, "do": "add"}], **slow), 0)
    assert set((ran.figures.invariants or {}).values()) == {"held"}


@pytest.mark.parametrize(("mode", "again"), [("implicit", 10), ("explicit", 5)])
def test_a_consumer_that_closes_gives_back_what_it_has_not_acknowledged(mode: str, again: int) -> None:
    """Ten records of a second each, fetched after the heartbeat at 5 s; SIGTERM comes 5.5 s after that."""
    settings: dict[str, Any] = {
        **SMALL, "members": 1, "partitions": 1, "phases": "aligned", "net_latency_ms": 0, "process_ms": 1_000,
        "share.auto.offset.reset": "earliest", "share.acknowledgement.mode": mode, "record_rate": 10,
        "record_rate_over_time": [{"at": "1s", "factor": 0}], "records_per_batch": 10, "max.poll.records": 10,
        "append_latency_ms": 0, "least_duration_ms": 0,
    }  # fmt: skip
    run = storm(scenario([START, {"at_ms": 10_500, "do": "restart", "members": [0]}], **settings))
    assert run.figures.redeliveries_by_cause == {"closed": again}
    assert run.figures.records_duplicated == again
    assert run.figures.records_processed == 10


def test_records_that_are_released_before_their_answer_leaves_are_delivered_once_more() -> None:
    """A consumer dies while its fetch waits. The end of its session answers that fetch with a new record of
    each of its partitions. It releases the second, and the first waits for the end of its lock."""
    settings = {"members": 10, "partitions": 4, "process_ms": 200, "record_rate": 8}
    steps = [START, {"at_ms": 120_000, "do": "crash-restart", "members": [3]}]
    what = scenario(steps, **settings, **{"group.protocol": "share", "least_duration_ms": 125_000})
    run = storm(what, seed=0)
    assert run.figures.redeliveries_by_cause == {"connection-closed": 1, "lock-expired": 1}
    assert run.broken == {}


def test_figures_of_a_trace_that_was_made_by_hand() -> None:
    """Two consumers: the one gets 0..3 and loses them after 6 s, the other 4..9, and then 0..3."""
    group, of = "g", ("t-0",)
    rows: list[tuple[int, Any]] = [
        (0, ScenarioStarted(group, '{"settings": {}}', of, 1, 0)),
        (0, events.ShareConsumerStarted(group, "a", ("t",))),
        (0, events.ShareConsumerStarted(group, "b", ("t",))),
        (5, events.SharePartitionsLoaded(group, of, (0,))),
        (5, events.ShareRecordsAcquired(group, "a", of, (0,), (4,), (1,), (4,))),
        (5, events.ShareRecordsAcquired(group, "b", of, (4,), (6,), (1,), (10,))),
        (9, events.ShareRecordsAccepted(group, "b", of, (4,), (6,))),
        (11, events.ShareRecordsReturned(group, "a", of, (0,), (4,), 6_000_000, "lock-expired")),
        (11, events.ShareRecordsAcquired(group, "b", of, (0,), (4,), (2,), (10,))),
        (15, events.ShareRecordsAccepted(group, "b", of, (0,), (3,))),
        (15, events.ShareRecordsArchived(group, "b", of, (3,), (1,), 4_000_000, "rejected", ("dlq",))),
        (20, events.ShareConsumerGone(group, "a", "closed")),
    ]
    figures = FiguresAccumulator()
    for second, event in rows:
        figures.add(second * 1_000_000, Source.MEMBER, event)
    made = figures.figures(20_000_000)
    assert made.delivery_counts == {"1": 10, "2": 4}
    assert (made.records_processed, made.records_duplicated) == (9, 4)
    assert made.redeliveries_by_cause == {"lock-expired": 4}
    assert made.lock_seconds_lost == 24
    assert made.in_flight_max == 10
    assert (made.records_archived, made.records_dead_lettered, made.records_out_of_order) == (1, 1, 3)
    assert made.records_per_second == 0.9  # nine in the ten seconds from the first delivery on
    assert made.busy_consumers_percent == 35  # 6 s and 4 + 4 s of 40
    assert made.busy_consumers_mean == 0.7
    assert made.first_record_seconds == 5
    assert made.staleness_max_seconds == 14  # record 0 arrived after a second
    assert made.lag_peak == 15
    assert (made.moves, made.unowned_partition_seconds, made.dual_owner_seconds) == (None, None, None)


def test_a_comparison_says_how_many_consumers_it_takes_and_what_is_lost() -> None:
    shared = storm(scenario([START], **SMALL)).figures
    owned = storm(scenario([START], **SMALL | {"group.protocol": "consumer", "records_per_batch": 1})).figures
    sentences = compare_sentences({"share": [shared], "other": [shared], "consumer": [owned]})
    [takes] = [one for one in sentences if one.startswith("share and other kept ")]
    assert takes.endswith(
        f"that takes {counted(ceil(shared.busy_consumers_mean or 0), 'consumer')} at least, "
        "and more for deploys and crashes."
    )
    order = r"Of the records \d+ % under share and other were done out of order\."
    assert any(re.fullmatch(order, one) for one in sentences)
    assert any(one.startswith("What a share group loses is the order: consumer") for one in sentences)


def answer_of(**settings: Any) -> Figures:
    return storm(scenario([START], **{**SMALL, **settings})).figures


def test_the_answer_speaks_of_deliveries() -> None:
    assert "every record was delivered once" in answer_of().answer
    archived = answer_of(process_ms=2_000, **{"group.share.record.lock.duration.ms": 1_000})
    assert sum((archived.redeliveries_by_cause or {}).values()) > (archived.records_duplicated or 0)
    assert re.search(r"[\d,]+ records delivered again, of [\d,]+ taken back \(", archived.answer)


def test_locks_that_batches_outlast_are_said_before_any_run() -> None:
    settings = {**SMALL, "process_ms": 1_000, "max.poll.records": 500, "members": 20}
    resolved = scenario([START], **settings).resolve(None, 0, {})
    short, few = [one for one in contradictions({"a": resolved.settings}) if "lock" in one]
    assert "29 records (max.poll.records) would fit" in short
    resolved = scenario([START], **{**settings, "process_ms": 40_000}).resolve(None, 0, {})
    short, *_ = [one for one in contradictions({"a": resolved.settings}) if "lock" in one]
    assert "one that is longer than the work on a record would fit" in short
    assert "12 consumers can lock everything, and 8 get nothing" in few


def test_share_groups_do_not_run_against_a_broker() -> None:
    resolved = scenario([START], **SMALL).resolve(None, 0, {})
    with pytest.raises(InputError, match=r"group.protocol: share: .* in virtual time only"):
        play(resolved, lambda *_: pytest.fail("no broker is wanted"), MemorySink())


def test_records_that_a_consumer_gives_back_as_it_closes_are_not_those_of_a_lock_that_expired() -> None:
    """The broker gives them back when the acknowledgements of the same request are written."""
    explicit = SMALL | {"share.acknowledgement.mode": "explicit", "process_ms": 900, "drain_ms": 0}
    deploy = storm(scenario([START, {"at_ms": 30_000, "do": "rolling-restart"}], **explicit), 0)
    causes = {one.cause for _, one in deploy.events("share_records_returned")}
    assert causes == {"closed"}
