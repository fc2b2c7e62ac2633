"""Notes on deployments: static membership, and what an autoscaler did, counted in the trace by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.report.deployment_notes import deployment_notes, notes_by_variant, unused_note
from groupstorm.storms.runs.run import Run, run
from groupstorm.trace.reader import read_rows
from tests.storms.storms_in_memory import START, scenario

SMALL: dict[str, Any] = {
    "members": 2, "partitions": 8, "start_ms": 5_000, "ready_ms": 1_000, "deployment": "deployment",
    "partition.assignment.strategy": "cooperative-sticky",
}  # fmt: skip
ROLL = {"at_ms": 60_000, "do": "rolling-restart"}
AUTOSCALE = {"at_ms": 60_000, "do": "autoscale", "for_ms": 1_800_000}


def ran(folder: Path, *steps: dict[str, Any], **settings: Any) -> Run:
    return run(scenario([START, *steps], **{**SMALL, **settings}).resolve(None, 1, {}), folder)


def noted(folder: Path, *steps: dict[str, Any], **settings: Any) -> list[str]:
    return deployment_notes([ran(folder, *steps, **settings)])


def test_an_autoscaler_is_summed_up(tmp_path: Path) -> None:
    rates = [{"at": "0m", "factor": 1}, {"at": "5m", "factor": 5}, {"at": "12m", "factor": 1}]
    keda: dict[str, Any] = {
        "autoscaler": "keda", "min_replicas": 2, "max_replicas": 6, "lag_threshold": 500, "record_rate": 20,
        "process_ms": 10, "record_rate_over_time": rates,
    }  # fmt: skip
    scaled_run = ran(tmp_path, AUTOSCALE, **keda)
    [note] = deployment_notes([scaled_run])
    trace = (tmp_path / "trace.jsonl").read_text("utf-8").splitlines()
    ups = sum('"cause":"scale-up"' in row for row in trace)
    downs = sum('"cause":"scale-down","detail":"from' in row for row in trace)
    assert ups
    assert downs
    assert f"{ups} scale-up{'s' * (ups > 1)} and {downs} scale-down{'s' * (downs > 1)} in 30 min" in note
    scaled = [
        (row["time_us"] // 1_000_000, int(row["detail"].split()[3]))
        for row in read_rows(tmp_path)
        if row.get("cause") in ("scale-up", "scale-down") and row["detail"].startswith("from ")
    ]
    in_each_second = [
        next((count for time_s, count in reversed(scaled) if time_s <= second), 2)
        for second in range(60, 1_860)
    ]
    assert f"{sum(in_each_second) / 1_800:.1f} processes on average and 6 at most" in note
    assert "rebalances an hour" in note
    assert (
        "scale-ups whose gain is known lost records" in note
        or "Every scale-up whose gain is known gained" in note
    )
    idle = ran(tmp_path / "idle", AUTOSCALE, **{**keda, "record_rate_over_time": rates[:1]})
    [both] = deployment_notes([scaled_run, idle])
    assert (
        f"{ups / 2:.0f} (0 to {ups}) scale-ups and {downs / 2:.0f} (0 to {downs}) scale-downs in 30" in both
    )


def test_a_consumer_group_that_is_scaled_rebalances_with_each_target(tmp_path: Path) -> None:
    rates = [{"at": "0m", "factor": 1}, {"at": "5m", "factor": 5}, {"at": "12m", "factor": 1}]
    settings = {name: value for name, value in SMALL.items() if name != "partition.assignment.strategy"}
    asked = scenario(
        [START, AUTOSCALE], **settings, autoscaler="keda", min_replicas=2, max_replicas=6, lag_threshold=500,
        record_rate=20, process_ms=10, record_rate_over_time=rates, **{"group.protocol": "consumer"},
    )  # fmt: skip
    one = run(asked.resolve(None, 1, {}), tmp_path)
    targets = [row for row in read_rows(tmp_path) if row["event"] == "target_assigned" and row["count"]]
    scaled = [row for row in targets if 60_000_000 <= row["time_us"] <= 1_860_000_000]
    assert one.figures.generations == len(targets) > len(scaled) > 2
    assert f"{len(scaled) * 2} rebalances an hour" in deployment_notes([one])[0]


def test_a_fixed_fleet_has_no_note(tmp_path: Path) -> None:
    assert noted(tmp_path, {**AUTOSCALE, "for_ms": 60_000}) == []


def test_members_that_only_some_variants_run_are_named_with_the_notes(tmp_path: Path) -> None:
    """An autoscaler between 2 and 6 pods beside six members throughout: no figure holds their price."""
    scaled = ran(
        tmp_path / "a", {**AUTOSCALE, "for_ms": 60_000}, autoscaler="hpa", min_replicas=2, max_replicas=6
    )
    fixed = ran(tmp_path / "b", members=6)
    notes = notes_by_variant({"hpa": [scaled], "fixed": [fixed], "more": [fixed]})
    price = "Members have a price that is in no figure and in no ranking"
    assert notes[0] == f"{price}: hpa 2 to 6 pods; fixed and more 6 members."
    assert notes_by_variant({"fixed": [fixed], "more": [fixed]}) == []


@pytest.mark.slow
def test_a_failover_says_that_partitions_stay_readable(tmp_path: Path) -> None:
    failover = {"at_ms": 60_000, "do": "coordinator-failover", "for_ms": 5_000}
    [note] = noted(tmp_path, failover)
    assert "every partition is taken to stay readable" in note


@pytest.mark.parametrize(
    ("kind", "beginning"),
    [("deployment", "Static membership works against a Deployment"), ("statefulset", "Pod names are stable")],
)
def test_static_members_under_kubernetes(tmp_path: Path, kind: str, beginning: str) -> None:
    [note] = noted(tmp_path, deployment=kind, **{"group.instance.id": "podname"})
    assert note.startswith(beginning)
    assert "45.0 s" in note


def test_static_members_that_leave_when_they_close_wait_for_no_session(tmp_path: Path) -> None:
    static: dict[str, Any] = {"group.instance.id": "podname", "leave_on_close": True}
    [note] = noted(tmp_path, **static)
    assert note.startswith("Static members that send LeaveGroup when they close")
    assert "session.timeout.ms" not in note


def test_static_members_with_a_surge_are_told_of_the_second_instance_id(tmp_path: Path) -> None:
    surge: dict[str, Any] = {"group.instance.id": "ordinal", "max_surge": 1, "max_unavailable": 0}
    [note] = noted(tmp_path, ROLL, deployment="processes", **surge)
    assert "another group.instance.id" in note
    assert "deployment=statefulset" in note
    assert noted(tmp_path, deployment="processes", **surge) == []


def test_variants_with_the_same_note_stand_together(tmp_path: Path) -> None:
    surge: dict[str, Any] = {"group.instance.id": "ordinal", "max_surge": 1}
    eager = ran(tmp_path / "a", ROLL, deployment="processes", **surge)
    notes = notes_by_variant({"eager": [eager], "static": [eager]})
    assert [note.split(":")[0] for note in notes] == ["eager and static"]


def test_static_members_on_hosts_of_their_own_need_no_note(tmp_path: Path) -> None:
    assert noted(tmp_path, deployment="processes", **{"group.instance.id": "ordinal"}) == []


@pytest.mark.parametrize(
    ("protocol", "given", "said"),
    [
        ("consumer", "session.timeout.ms", "group.consumer.session.timeout.ms"),
        ("classic", "group.remote.assignor", "partition.assignment.strategy"),
        ("consumer", "group.initial.rebalance.delay.ms", "group.consumer.assignment.interval.ms"),
        ("share", "group.max.size", "group.share.max.size"),
        ("classic", "group.max.size", None),
        ("consumer", "members", None),
        ("classic", "session.timeout.ms", None),
    ],
)
def test_a_setting_of_the_other_protocol_does_nothing(protocol: str, given: str, said: str | None) -> None:
    value = {"session.timeout.ms": 30_000, "group.remote.assignor": "range", "members": 2}.get(given, 12)
    resolved = scenario([START], **{"group.protocol": protocol}).resolve(None, 1, {given: value})
    expected = f"{given} does nothing here: members with group.protocol {protocol} have {said} instead."
    assert unused_note(resolved) == (said and expected)


def test_a_setting_of_either_protocol_is_used_if_members_speak_both() -> None:
    rule = {"members": [0], "settings": {"group.protocol": "classic"}}
    mixed: dict[str, Any] = {"group.protocol": "consumer", "member_settings": [rule]}
    given = {"session.timeout.ms": 30_000, "group.remote.assignor": "range"}
    assert unused_note(scenario([START], **mixed).resolve(None, 1, given)) is None


def test_static_members_of_a_consumer_group_wait_for_its_own_session_timeout(tmp_path: Path) -> None:
    session = {"group.protocol": "consumer", "group.consumer.session.timeout.ms": 20_000}
    settings = {**session, "deployment": "statefulset", "group.instance.id": "podname"}
    [note] = noted(tmp_path, **settings)
    assert "group.consumer.session.timeout.ms (20.0 s)" in note


def test_commits_that_are_assumed(tmp_path: Path) -> None:
    off = {"enable.auto.commit": False}
    [note] = noted(tmp_path / "assumed", deployment="processes", **off)
    assert note == (
        "enable.auto.commit=false: the application is assumed to commit by hand after each batch. "
        "--set commits=record, interval or never says otherwise."
    )
    assert noted(tmp_path / "known", deployment="processes", commits="never", **off) == []


def test_what_lies_behind_the_end_of_a_run(tmp_path: Path) -> None:
    """10 records a second into each partition: record 9,999 arrives after 1,000 s, record 19 after 2 s."""
    slow = [{"topic": "topic-0", "partition": 1, "offset": offset, "takes": "1s"} for offset in (19, 9_999)]
    asked: dict[str, Any] = {
        "deployment": "processes", "record_rate": 10, "slow_records": slow, "gc_pause_ms": 100,
        "gc_interval_ms": {"exactly": 900_000},
    }  # fmt: skip
    [note] = noted(tmp_path / "short", **asked)
    assert note.startswith("The run is over after ")
    assert note.endswith(
        " s, but a process pauses once in 15 min (gc_interval_ms) and record 9,999 of topic-0-1 arrives "
        "after 16 min 40 s (slow_records): not in these figures. --set least_duration_ms=34m makes the run "
        "long enough."
    )
    assert noted(tmp_path / "long", **asked, least_duration_ms=34 * 60_000) == []
    stops = [{"at": "0s", "factor": 1}, {"at": "10m", "factor": 0}]
    [never] = noted(tmp_path / "never", **{**asked, "gc_pause_ms": 0}, record_rate_over_time=stops)
    assert never.endswith("but record 9,999 of topic-0-1 never arrives (slow_records): not in these figures.")


def test_settings_of_members_that_never_run_are_told(tmp_path: Path) -> None:
    slow = {"machines": [{"members": [1, 3], "factor": 2}]}
    [note] = noted(tmp_path / "two", **slow)
    assert note == "machines or member_settings name member 3, but members have the numbers from 0 to 1."
    assert noted(tmp_path / "four", {"at_ms": 60_000, "do": "add", "count": 2}, **slow) == []
    own = {"member_settings": [{"members": [2, 9], "settings": {"process_ms": 2}}]}
    [note] = noted(tmp_path / "own", **own)
    assert "name members 2 and 9, but" in note
