"""The effect of each step on a Kafka Streams application and its tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupstorm.problems import InputError
from groupstorm.report.deployment_notes import unused_note
from groupstorm.storms.scenario.files import parse
from tests.storms.storms_in_memory import Storm, storm
from tests.storms.streams.applications import QUIET_MS, SECOND, after, require_invariants, small


def restorations(found: Storm, from_ms: int = QUIET_MS) -> list[tuple[str, str, int]]:
    """Task, cause and bytes of what was restored after the quiet time."""
    return [
        (event.task, event.cause, event.bytes)
        for time_us, event in found.events("task_restoring")
        if time_us >= from_ms * 1000
    ]


def test_an_application_starts_by_restoring_everything() -> None:
    found = require_invariants(storm(small()))
    restored = found.events("task_restored")
    assert [(event.bytes, event.duration_us) for _, event in restored] == [(10**9, 40 * SECOND)] * 4, (
        "two on each thread, side by side"
    )
    assert len(found.events("task_running")) == 4
    assert (found.figures.task_downtime_seconds, found.figures.restored_bytes) == (0, 0), (
        "from the first instant on at which all tasks run"
    )


def test_partitions_are_paused_while_their_tasks_restore() -> None:
    found = require_invariants(storm(small()))
    for (paused_us, paused), (resumed_us, resumed) in zip(
        found.events("partitions_paused"), found.events("partitions_resumed"), strict=True
    ):
        assert (paused.member, paused.partitions) == (resumed.member, resumed.partitions)
        assert resumed_us - paused_us == pytest.approx(40 * SECOND, abs=SECOND)
    assert found.figures.records_skipped == found.figures.records_duplicated == 0


def test_a_thread_that_is_behind_after_it_restored_has_rows_of_how_far_it_comes() -> None:
    """Two tasks get 80 records a second, and a thread does 50: the figures see its lag grow."""
    found = require_invariants(storm(small(record_rate=40, process_ms=20, least_duration_ms=300_000)))
    resumed = {(time_us, event.member) for time_us, event in found.events("partitions_resumed")}
    rates = found.events("processing_rates_changed")
    assert resumed <= {(time_us, event.member) for time_us, event in rates}
    assert found.figures.lag_growth_per_second == pytest.approx(60, abs=2)


def test_a_thread_polls_behind_half_of_max_poll_interval_whatever_it_has_left() -> None:
    """Each finds 480 records of 100 ms, more than fit into max.poll.interval.ms (StreamThread.runOnce)."""
    stopped = after("stop", members="all"), {**after("restart", members="all"), "at_ms": QUIET_MS + 60_000}
    found = require_invariants(
        storm(small(*stopped, record_rate=4, process_ms=100, max__poll__interval__ms=20_000))
    )
    assert found.figures.max_poll_interval_exceeded == 0
    assert found.figures.lag_peak is not None
    assert found.figures.lag_peak > 900


def test_a_thread_commits_what_it_has_done_between_two_polls_too() -> None:
    """Kafka: StreamThread.maybeCommit. It works on a poll for 96 s, and commits every 10 s."""
    steps = [after("stop", members="all"), *(after(do, members=[0]) for do in ("restart", "crash-restart"))]
    for step, later_ms in zip(steps[1:], (120_000, 200_000), strict=True):
        step["at_ms"] = QUIET_MS + later_ms
    found = storm(
        small(*steps, members=1, partitions=2, process_ms=200, record_rate=2, commit__interval__ms=10_000)
    )
    processed = 5 * 10
    assert 0 < (found.figures.records_duplicated or 0) <= processed


def test_an_instance_that_comes_back_to_its_host_has_its_state() -> None:
    found = require_invariants(storm(small(after("restart", members=[0]))))
    assert all(cause == "checkpoint" and read < 10**6 for _, cause, read in restorations(found))
    assert len(restorations(found)) == 2
    assert found.figures.tasks_from_scratch == 0


def test_an_instance_whose_disk_goes_with_its_pod_comes_back_without_state() -> None:
    found = require_invariants(storm(small(after("restart", members=[0]), state_outlasts_process=False)))
    assert {cause for _, cause, read in restorations(found) if read > 10**6} == {"nothing"}
    assert found.figures.tasks_from_scratch == 2


def test_the_pod_that_takes_anothers_place_in_a_deployment_begins_without_state() -> None:
    given = {"deployment": "deployment", "max_surge": 1, "max_unavailable": 0, "first_hosts_have_state": True}
    found = require_invariants(storm(small(after("rolling-restart"), leave_on_close=True, **given)))
    assert {cause for _, cause, read in restorations(found) if read > 10**9} == {"nothing"}
    assert found.figures.restored_bytes is not None
    assert found.figures.restored_bytes > 10**9


def test_state_of_a_lost_host_is_restored_from_nothing() -> None:
    found = require_invariants(storm(small(after("lose-host", members=[0]))))
    assert [cause for _, cause, _ in restorations(found)] == ["nothing", "nothing"]
    assert found.figures.tasks_from_scratch == 2
    assert found.figures.restored_bytes is not None
    assert found.figures.restored_bytes > 2 * 10**9
    assert found.figures.task_downtime_max_seconds == pytest.approx(45 + 40, abs=5), (
        "session, then restoration"
    )


def test_an_instance_whose_host_is_lost_starts_again_with_a_restart() -> None:
    again = {"at_ms": QUIET_MS + 120_000, "do": "restart", "members": [0]}
    found = require_invariants(storm(small(after("lose-host", members=[0]), again)))
    assert len(found.events("instance_started", process="instance-0")) == 2


def test_a_standby_takes_over_with_its_state() -> None:
    found = require_invariants(storm(small(after("lose-host", members=[0]), num__standby__replicas=1)))
    assert len(restorations(found)) == 2
    assert all(cause == "standby" and read < 10**6 for _, cause, read in restorations(found))
    assert found.figures.task_downtime_max_seconds == pytest.approx(45, abs=5)


def test_a_new_instance_warms_up_before_it_takes_over() -> None:
    settings = {"members": 1, "max__warmup__replicas": 2}
    found = require_invariants(storm(small(after("add"), **settings)))
    assert [event.task for _, event in found.events("warm_up_placed")][:2] == ["0_1", "0_3"]
    (due_us, _), *more = found.events("follow_up_due", cause="probing")
    assert not more
    placed_us = next(t for t, event in found.events("tasks_placed", cause="probing"))
    assert due_us // 1000 == placed_us // 1000 + 600_000 + 1, "once the time is past"
    assert found.figures.probing_rebalances == 1
    assert found.figures.tasks_from_scratch == 0
    assert found.figures.task_downtime_max_seconds == 0.01, (
        "a commit and a round of two members, both of which know that it is due: messages of 1 ms each"
    )
    assert found.figures.converged_after_seconds == pytest.approx(600, abs=10)
    assert found.figures.task_imbalance == 0


def test_more_warm_ups_take_fewer_probing_rebalances() -> None:
    settings = {"members": 1, "partitions": 12}
    few = storm(small(after("add"), **settings, max__warmup__replicas=2)).figures
    many = storm(small(after("add"), **settings, max__warmup__replicas=6)).figures
    assert (few.probing_rebalances, many.probing_rebalances) == (3, 1)


def test_the_draft_asks_as_soon_as_its_standbys_have_caught_up() -> None:
    settings = {"members": 1, "task__assignor": "kip441-draft"}
    found = require_invariants(storm(small(after("add"), **settings)))
    caught_up_us = max(time_us for time_us, _ in found.events("standby_caught_up"))
    assert caught_up_us in [time_us for time_us, _ in found.events("follow_up_due", cause="watching")]
    assert found.figures.converged_after_seconds == pytest.approx(40, abs=15)
    assert found.figures.task_imbalance == 0


@pytest.mark.parametrize("watch_list", [False, True])
def test_the_draft_to_the_letter_never_settles(watch_list: bool) -> None:
    """No standby is ever nearer than the task that runs: its watchers ask again after every rebalance."""
    settings = {"members": 1, "task__assignor": "kip441-draft", "settle_timeout_ms": 120_000}
    found = require_invariants(
        storm(small(after("add"), **settings, near_zero_gap=None, watch_list=watch_list))
    )
    assert found.figures.converged_after_seconds is None
    assert (found.figures.probing_rebalances or 0) > 10
    assert found.figures.moves == 0
    assert "no stable assignment came" in found.figures.answer


def test_more_standbys_than_hosts_end_the_application_under_the_draft() -> None:
    """The draft throws; Kafka's threads die of a TaskAssignmentException."""
    found = storm(small(task__assignor="kip441-draft", num__standby__replicas=2, settle_timeout_ms=1000))
    assert {event.error for _, event in found.events("member_failed")} == {"TaskAssignmentException"}
    assert {event.cause for _, event in found.events("tasks_placed")} == {"ASSIGNMENT_ERROR"}
    assert {event.cause for _, event in found.events("instance_gone")} == {"failed"}


def test_a_zone_is_lost_and_comes_back_without_state() -> None:
    steps = (
        after("lose-zone", rack=1),
        {"at_ms": 2 * QUIET_MS, "do": "restore-zone", "rack": 1, "over_ms": 1000},
    )
    found = require_invariants(storm(small(*steps, members=4, racks=2)))
    gone = {event.process for _, event in found.events("instance_gone")}
    assert gone == {"instance-1", "instance-3"}
    late_us = 2 * QUIET_MS * 1000
    assert {event.process for time_us, event in found.events("instance_started") if time_us > late_us} == gone
    assert found.figures.tasks_from_scratch == 2, "what the zone ran; what comes back is warmed up"


def test_a_rolling_upgrade_probes_versions() -> None:
    settings = {"members": 3, "metadata_version": 10, "leave_on_close": True}
    found = require_invariants(storm(small(after("rolling-upgrade"), **settings)))
    versions = [event.version for _, event in found.events("instance_started")]
    assert versions == [10, 10, 10, 11, 11, 11]
    changes = [event.cause for _, event in found.events("subscription_version_changed")]
    assert "downgrade" in changes
    last = {event.member: event.version for _, event in found.events("subscription_version_changed")}
    assert set(last.values()) == {11}, "at the end everybody speaks the newest version"
    assert found.events("follow_up_due", cause="version-probing")
    assert found.events("tasks_placed")[-1][1].cause == "stable"


_STREAMS = {"group__protocol": "streams"}


def test_a_variant_of_another_protocol_keeps_the_settings_that_both_share() -> None:
    """The variant that does not have them says so; what it sets itself is refused."""
    shared = replace(
        small(max__warmup__replicas=8, num__standby__replicas=1),
        variants={"classic": {}, "streams": {"group.protocol": "streams"}},
    )
    assert unused_note(shared.resolve("classic", 0, {})) is None
    assert unused_note(shared.resolve("streams", 0, {"reliable_standbys": 1})) == (
        "With group.protocol streams max.warmup.replicas and reliable_standbys do nothing: use "
        "num.standby.replicas, as Kafka 4.4.0 places no warm-ups in streams groups; group.protocol classic, "
        "in which the leader's task assignor has it."
    )
    again = parse(shared.resolve("streams", 0, {}).as_yaml(), "yaml", "again").resolve(None, None, {})
    assert again.settings.integer("num.standby.replicas") == 1
    own = replace(
        shared, variants={"classic": {}, "streams": {"group.protocol": "streams", "watch_list": True}}
    )
    with pytest.raises(InputError, match="test: variants: streams: watch_list: True: has no effect"):
        own.resolve("streams", 0, {})


def test_settings_of_both_protocols_are_used_by_steps_that_change_it() -> None:
    back = after("restart", members=[0], settings={"group.protocol": "classic"})
    mixed = small(back, **_STREAMS, max__warmup__replicas=8, task__assignor="sticky")
    assert unused_note(mixed.resolve(None, 0, {})) is None
