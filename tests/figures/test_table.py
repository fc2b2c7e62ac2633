"""Names, order, rounding; rows read back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import pytest

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.history.percentiles import nearest_rank, percentile
from groupstorm.problems import InputError
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import imported as imported_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import share as share_events
from groupstorm.trace.events import streams as streams_events
from groupstorm.trace.rows import as_mapping, event_types, read_row
from tests.figures.synthetic import trace

NAMES = [
    "generations",
    "generations_without_progress_max",
    "rounds_per_change",
    "rebalance_latency_avg_ms",
    "rebalance_latency_max_ms",
    "settled_after_ms",
    "unowned_partition_seconds",
    "unowned_max_seconds",
    "unowned_p50_seconds",
    "unowned_p95_seconds",
    "unowned_p99_seconds",
    "unowned_worst_partition",
    "deploys",
    "deploy_unowned_partition_seconds",
    "cost_per_deploy_partition_seconds",
    "crashes",
    "crash_unowned_partition_seconds",
    "cost_per_crash_partition_seconds",
    "nobody_consuming_seconds",
    "paused_partition_seconds",
    "dual_owner_seconds",
    "moves",
    "moves_lower_bound",
    "moves_wasted",
    "revoked_and_returned",
    "imbalance_max",
    "imbalance_records_max",
    "idle_members_max",
    "lag_peak",
    "lag_recovery_seconds",
    "lag_growth_per_second",
    "staleness_max_seconds",
    "staleness_p95_seconds",
    "staleness_worst_partition",
    "max_poll_interval_exceeded",
    "records_processed",
    "records_duplicated",
    "records_skipped",
    "records_skipped_at_start",
    "skipped_worst_partition",
    "commits_rejected",
    "requests",
    "errors",
    "cross_rack_bytes",
    "cross_rack_usd",
    "task_downtime_seconds",
    "task_downtime_max_seconds",
    "task_downtime_p50_seconds",
    "probing_rebalances",
    "converged_after_seconds",
    "restored_bytes",
    "standby_restored_bytes",
    "tasks_from_scratch",
    "task_imbalance",
    "subtopology_imbalance",
    "records_per_second",
    "busy_consumers_percent",
    "busy_consumers_mean",
    "consumers_without_records",
    "first_record_seconds",
    "delivery_counts",
    "redeliveries_by_cause",
    "lock_seconds_lost",
    "in_flight_max",
    "records_archived",
    "records_dead_lettered",
    "records_out_of_order",
    "invariants",
    "answer",
]


def test_names_and_order() -> None:
    assert [field.name for field in fields(Figures)] == NAMES
    assert list(FiguresAccumulator().figures().to_json()) == NAMES


@pytest.mark.parametrize("seed", range(6))
def test_rows_and_events_give_the_same(seed: int) -> None:
    events, rows = FiguresAccumulator(), FiguresAccumulator()
    for seq, row in enumerate(trace(seed)):
        events.add(*row)
        rows.add_row(as_mapping(seq, *row))
    assert events.figures() == rows.figures()


def test_percentiles_are_nearest_ranks() -> None:
    assert [percentile([10, 20, 30, 40], percent) for percent in (50, 95)] == [20, 40]
    assert percentile([7], 50) == 7
    assert percentile([], 95) == 0
    assert nearest_rank(20, 95) == 19
    assert nearest_rank(21, 95) == 20
    assert nearest_rank(1000, 50) == 500


def test_every_event_type_has_one_name() -> None:
    assert event_types()["partitions_assigned"].__name__ == "PartitionsAssigned"
    unions = (
        *(coordinator_events.Event, member_events.Event, streams_events.Event, world_events.Event),
        imported_events.Event,
        share_events.Event,
    )
    assert len(event_types()) == sum(len(get_args(union)) for union in unions)


GOOD = {
    "seq": 4,
    "time_us": 10,
    "source": "member",
    "event": "partitions_assigned",
    "group": "g",
    "member": "m",
    "member_id": "m-1",
    "generation": 1,
    "partitions": ["t-0"],
    "positions": [0],
    "duration_us": 5,
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"time_us": "soon"},
            "row 4 (partitions_assigned): time_us: 'soon': expected a whole number",
        ),
        ({"time_us": 1}, "time_us: 1: expected a whole number of at least 2"),
        ({"source": "me"}, "source: 'me': expected one of coordinator, member, world"),
        ({"seq": 3}, "seq: 3: expected a whole number of at least 4"),
        ({"group": None}, "group: None: expected a text"),
        ({"event": None}, "event: None: expected a text"),
        ({"count": "six"}, "count: 'six': expected a whole number"),
        ({"generation": 2**63}, "expected a whole number"),
        ({"duration_us": None}, "duration_us: None: expected a whole number"),
        ({"member": 7}, "member: 7: expected a text"),
        ({"partitions": "t-0"}, "partitions: 't-0': expected a list"),
        ({"positions": [1, 2]}, "positions: [1, 2]: expected one for each of ['t-0']"),
    ],
)
def test_rows_that_are_none(change: dict[str, Any], expected: str) -> None:
    assert read_row(GOOD, 2, 4) is not None
    with pytest.raises(InputError) as caught:
        read_row(GOOD | change, 2, 4)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_events_and_columns_are_ignored() -> None:
    assert read_row(GOOD | {"event": "lunch"}) is None
    assert read_row(GOOD | {"colour": 7}) == read_row(GOOD)
