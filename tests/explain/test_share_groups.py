"""Explanations of share groups, whose members have no generation and no rebalance that they wait in."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.explain.advice import first_answer
from tests.explain.explaining import SECOND_US, explained, names, scenario_storm

SHARE = """
name: share
figures_from: 60s
settings:
  {group.protocol: share, members: 4, partitions: 2, process_ms: 100, record_rate: 4, records_per_batch: 1,
  max.poll.records: 5, start_ms: 5s, restart_failed: true, least_duration_ms: 6m%s}
steps:
  - {at_ms: 0, do: start}
"""


def test_a_record_that_ends_consumers_of_a_share_group_is_to_be_rejected(tmp_path: Path) -> None:
    """The broker delivers it five times; no process stood still, and no CPU or memory lacked."""
    poison = ", slow_records: [{partition: 1, at: 2m, takes: 1s, then: crash}]"
    one = explained(scenario_storm(tmp_path, SHARE % poison))
    (found,) = [finding for finding in one.findings if finding.pattern.name == "poison-record"]
    assert found.match.sentence.startswith("Work on a record ended a consumer's process 5 times: member-")
    assert found.pattern.advice.startswith("Reject the record")
    assert found.pattern.presets == ("poison-in-a-share-group",)
    assert "session-expired" not in names(one)


def test_a_share_group_has_no_static_members(tmp_path: Path) -> None:
    deploy = "  - {at_ms: 2m, do: rolling-restart}\n  - {at_ms: 4m, do: pause, members: [1], for_ms: 50s}\n"
    one = explained(scenario_storm(tmp_path, SHARE % "" + deploy))
    found = {finding.pattern.name: finding.pattern for finding in one.findings}
    assert found["deploy-wave"].advice.startswith("Nothing in the group. With share.acknowledgement.mode=")
    assert found["deploy-wave"].presets == ("share-deploy",)
    assert "group.share.record.lock.duration.ms" in found["session-expired"].advice
    (silent,) = [each.match for each in one.findings if each.pattern.name == "session-expired"]
    assert "the last row of it is of 240.0" in silent.sentence or "of 239." in silent.sentence
    assert max(each.lasted_us for each in one.history.rebalances) < 15 * SECOND_US, (
        "a share group is Stable as long as it has members: members have their targets in 10 s"
    )


def test_share_consumers_that_poll_too_late_are_no_deployment(tmp_path: Path) -> None:
    """Each leaves while it works on the record for longer than max.poll.interval.ms, and comes back."""
    slow = ", max.poll.interval.ms: 30s, slow_records: [{partition: 1, at: 2m, takes: 60s}]"
    one = explained(scenario_storm(tmp_path, SHARE % slow))
    assert len({change.member for change in one.history.went()}) >= 3
    assert "deploy-wave" not in names(one)


def test_share_consumers_that_an_autoscaler_stops_and_starts_do_not_restart(tmp_path: Path) -> None:
    text = """
name: thumbs
figures_from: warm_up_ms
settings:
  {group.protocol: share, members: 12, partitions: 2, process_ms: 400, record_rate: 10, max.poll.records: 1,
  record_rate_over_time: [{at: 0, factor: 1}, {at: 150s, factor: 0}, {at: 180s, factor: 1}],
  start_ms: 12s, stop_grace_ms: 1s, autoscaler: hpa, min_replicas: 2, max_replicas: 12, lag_threshold: 2,
  scale_down_stabilization_ms: 0}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 90s, do: autoscale, for_ms: 150s}
"""
    one = explained(scenario_storm(tmp_path, text))
    assert sum(each.cause == "left" for each in one.history.went()) >= 3
    assert "aligned-restart" not in names(one)
    assert "deploy-wave" not in names(one)


def test_a_share_consumer_that_polls_too_late_after_a_deploy_is_no_part_of_it(tmp_path: Path) -> None:
    slow = ", max.poll.interval.ms: 20s, slow_records: [{partition: 0, at: 3m, takes: 30s}]"
    one = explained(scenario_storm(tmp_path, SHARE % slow + "  - {at_ms: 2m, do: rolling-restart}\n"))
    (wave,) = [each.match for each in one.findings if each.pattern.name == "deploy-wave"]
    assert wave.sentence.startswith("4 members stopped and came back or were replaced, one after the other")
    assert sum(each.cause == "left" for each in one.history.went()) > 4


@pytest.mark.parametrize("protocol", ["consumer", "share"])
def test_a_coordinator_with_epochs_sees_new_partitions_by_itself(tmp_path: Path, protocol: str) -> None:
    grows = "  - {at_ms: 2m, do: add-partitions, topic: topic-0, partitions: 6}\n"
    text = SHARE.replace("protocol: share", f"protocol: {protocol}") % "" + grows
    found, *_ = explained(scenario_storm(tmp_path, text)).findings
    assert (found.pattern.name, len(found.rebalances)) == ("topics-changed", 1)
    assert f"next heartbeats (group.{protocol}.heartbeat.interval.ms)" in found.pattern.advice


def test_a_share_group_whose_records_are_given_up_is_not_called_quiet(tmp_path: Path) -> None:
    one = explained(
        scenario_storm(
            tmp_path,
            SHARE
            % ", group.share.record.lock.duration.ms: 1s, machines: [{members: [0, 1, 2, 3], factor: 9}]",
        )
    )
    assert first_answer(one.history) == "No member came or went."
