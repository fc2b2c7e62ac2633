"""Kafka Connect: the recorded logs of a broker and two workers, and what single lines say.

`python -m tests.imports.record --connect` records them anew: worker-b is restarted after it has left, and
then killed; its work waits for scheduled.rebalance.max.delay.ms each time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from groupstorm.explain.work import Uneven, WorkGap
from tests.explain.explaining import Trace, names, recorded_of
from tests.explain.test_first_answers import answer, printed
from tests.imports.importing import emptied, import_texts, joins, preparing, rows, stabilized

GROUP: Final = "connect-pair"
DELAY_US: Final = 10_000_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return Trace("connect", tmp_path_factory.mktemp("connect"), "server", "worker-a", "worker-b")


def test_workers_run_what_the_harness_saw(trace: Trace) -> None:
    """Three times, when all had settled, it asked the workers over HTTP."""
    seen = recorded_of("connect")["groups"][GROUP]["work"]
    assert len(seen) == 3
    for one in seen:
        now: dict[str, list[str]] = {}
        for row in trace.of("work_assigned"):
            if trace.ms(row) <= one["time_ms"]:
                now[row["member"]] = sorted(row["tasks"])
        for row in trace.of("member_removed"):
            later = [each for each in trace.of("work_assigned") if each["time_us"] > row["time_us"]]
            back = any(each["member"] == row["member"] and trace.ms(each) <= one["time_ms"] for each in later)
            if trace.ms(row) <= one["time_ms"] and not back:
                now.pop(row["member"])
        assert now == {worker: sorted(work) for worker, work in one["work"].items()}


def test_every_generation_is_there_with_its_leader_and_its_workers(trace: Trace) -> None:
    stable = [row["generation"] for row in trace.of("group_state_changed") if row["state"] == "Stable"]
    assert stable == [*range(1, 15)]
    for generation in stable:
        told = [row for row in trace.of("work_assigned") if row["generation"] == generation]
        joined = {row["member"] for row in trace.of("sync_answered") if row["generation"] == generation}
        assert joined <= {row["member"] for row in told}
        assert len({row["leader"] for row in told}) == 1
        assert told[0]["leader"].startswith("worker-a-")


def test_the_settings_of_the_workers(trace: Trace) -> None:
    """A worker logs the settings of consumers and producers, too, that are in no group."""
    settings = {row["member"]: json.loads(row["detail"]) for row in trace.of("member_configured")}
    assert settings.keys() == {"worker-a", "worker-b"}
    for said in settings.values():
        assert said["scheduled.rebalance.max.delay.ms"] == str(DELAY_US // 1000)
        assert said["session.timeout.ms"] == "6000"


def test_what_is_missing_is_one_sentence(trace: Trace) -> None:
    (group,) = trace.done.groups
    assert group.missing.keys() == {"ownership"}
    assert "has connectors and tasks, and no partitions" in group.missing["ownership"][1]
    for log in trace.done.logs[1:]:
        assert log.not_understood <= 6, log.log.name  # announcements that begin with an empty line


def test_the_rounds_and_the_time_without_a_worker(trace: Trace) -> None:
    explained = trace.explained
    assert names(explained) == ["session-expired", "waiting-work", "stopped"]
    assert explained.findings[0].match.members == ("worker-b",)
    assert [(one.cause, one.culprit) for one in explained.history.rebalances] == [
        ("pending-member", "worker-a"),
        ("pending-member", "worker-b"),
        ("left", "worker-b"),
        ("leader-rejoined", "worker-a"),
        ("pending-member", "worker-b"),
        ("session-expired", "worker-b"),
        ("leader-rejoined", "worker-a"),
        ("left", "worker-a"),
    ]
    assert "up to 10.0 s each time" in explained.findings[1].match.sentence
    assert explained.history.ended is not None


def test_work_of_a_worker_that_has_gone_waits_for_the_delay(trace: Trace) -> None:
    """Its two connectors and tasks, twice: after it had left, and after its session had expired."""
    waited = [one for one in trace.explained.history.work.gaps if one.lasted_us >= DELAY_US]
    assert [(one.name, one.old_worker, one.new_worker) for one in waited] == [
        ("lines-1", "worker-b", "worker-a"),
        ("lines-2-0", "worker-b", "worker-a"),
        ("lines-1", "worker-b", "worker-a"),
        ("lines-1-0", "worker-b", "worker-a"),
    ]
    assert all(one.lasted_us < DELAY_US + 2_000_000 for one in waited)


def test_a_brokers_log_alone_has_the_rounds(tmp_path: Path) -> None:
    trace = Trace("connect", tmp_path, "server")
    assert len(trace.explained.history.rebalances) == 8
    assert not trace.explained.history.work.is_seen


def worker_line(time: str, message: str, worker: str = "w-a") -> str:
    name = "org.apache.kafka.connect.runtime.distributed.DistributedHerder"
    return f"[2024-11-18 {time}] INFO [Worker clientId={worker}, groupId=c] {message} ({name})\n"


def work(
    time: str, generation: int, tasks: str, revoked: str = "", worker: str = "w-a", error: int = 0
) -> str:
    assignment = (
        f"Assignment{{error={error}, leader='w-a-1', leaderUrl='http://h:1/', offset=4, connectorIds=[], "
        f"taskIds=[{tasks}], revokedConnectorIds=[], revokedTaskIds=[{revoked}], delay=0}}"
    )
    said = f"Joined group at generation {generation} with protocol version 2 and got assignment: "
    return worker_line(time, f"{said}{assignment} with rebalance delay: 0", worker)


def test_an_assignment_that_failed(tmp_path: Path) -> None:
    import_texts(tmp_path, {"worker.log": work("10:00:00,000", 7, "", error=1)})
    (row,) = rows(tmp_path, "work_assigned")
    assert (row["error"], row["tasks"], row["generation"]) == ("CONFIG_MISMATCH", [], 7)
    assert json.loads(row["detail"]) == {"revoked": [], "offset": 4}


def test_a_line_of_kafka_2_2(tmp_path: Path) -> None:
    message = (
        "Joined group at generation 3 and got assignment: Assignment{error=0, leader='w-a-1', "
        "leaderUrl='http://h:1/', offset=4, connectorIds=[x], taskIds=[x-0, x-1]}"
    )
    import_texts(tmp_path, {"worker.log": worker_line("10:00:00,000", message)})
    (row,) = rows(tmp_path, "work_assigned")
    assert (row["tasks"], "duration_us" in row) == (["x", "x-0", "x-1"], False)


def test_a_worker_that_loses_its_coordinator_stops_its_work(tmp_path: Path) -> None:
    lost = worker_line(
        "10:00:30,000",
        "Broker coordinator was unreachable for 3000ms. Revoking previous assignment Assignment{error=0} to "
        "avoid running tasks while not being a member the group",
    )
    log = work("10:00:00,000", 1, "x-0") + lost + work("10:00:40,000", 2, "x-0")
    gaps = answer(tmp_path, log).history.work.gaps
    assert gaps == [WorkGap("x-0", 30_000_000, 40_000_000, "w-a", "w-a")]


def test_the_work_of_a_worker_that_stays_out_is_not_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another worker may run it meanwhile: its log would say so."""
    lost = worker_line(
        "10:00:30,000",
        "Broker coordinator was unreachable for 3000ms. Revoking previous assignment Assignment{error=0} to",
    )
    out = "Request joining group due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"
    log = work("10:00:00,000", 1, "x-0") + lost + worker_line("10:00:40,000", out)
    one = answer(tmp_path, log)
    assert one.history.work.gaps == [WorkGap("x-0", 30_000_000, 40_000_000, "w-a", "")]
    assert "its rebalance timeout (rebalance.timeout.ms)" in " ".join(printed(one, capsys).split())
    assert "connectors and tasks: unknown: one worker's log says nothing of" in printed(one, capsys)


def test_what_one_worker_gives_up_another_one_takes(tmp_path: Path) -> None:
    log = (
        work("10:00:00,000", 1, "x-0, x-1")
        + work("10:00:10,000", 2, "x-0, x-1", revoked="x-1")
        + work("10:00:10,000", 2, "", worker="w-b")
        + work("10:00:13,000", 3, "x-1", worker="w-b")
        + work("10:00:13,000", 3, "x-0")
    )
    history = answer(tmp_path, log).history
    assert history.work.gaps == [WorkGap("x-1", 10_000_000, 13_000_000, "w-a", "w-b")]


def test_work_that_is_deleted_waits_for_nobody(tmp_path: Path) -> None:
    log = (
        work("10:00:00,000", 1, "x-0, x-1") + work("10:00:10,000", 2, "x-0") + work("10:05:00,000", 3, "x-0")
    )
    assert answer(tmp_path, log).history.work.gaps == []


def delayed(line: str, delay_ms: int) -> str:
    return line.replace("rebalance delay: 0", f"rebalance delay: {delay_ms}")


def test_work_of_a_worker_that_restarts_waits_from_the_assignment_without_it(tmp_path: Path) -> None:
    """It is back after 40 s, and the others were told to wait for it before: for 300 s, not for 260 s."""
    log = (
        work("10:00:00,000", 1, "x-0")
        + work("10:00:00,000", 1, "x-1", worker="w-b")
        + delayed(work("10:01:00,000", 2, "x-0"), 300_000)
        + delayed(work("10:01:40,000", 3, "x-0"), 260_000)
        + delayed(work("10:01:40,000", 3, "", worker="w-b"), 260_000)
        + work("10:06:00,000", 4, "x-0")
        + work("10:06:00,000", 4, "x-1", worker="w-b")
    )
    history = answer(tmp_path, log).history
    assert history.work.gaps == [WorkGap("x-1", 60_000_000, 360_000_000, "w-b", "w-b")]
    assert history.work.uneven is None


def test_a_workers_own_log_says_for_how_long_the_others_have_waited(tmp_path: Path) -> None:
    name = "org.apache.kafka.connect.runtime.distributed.DistributedConfig"
    settings = (
        f"[2024-11-18 09:59:00,000] INFO DistributedConfig values: \n\tclient.id = w-a\n\tgroup.id = c\n"
        f"\tscheduled.rebalance.max.delay.ms = 300000\n ({name})\n"
    )
    log = (
        settings
        + work("10:00:00,000", 1, "x-0")
        + delayed(work("10:01:40,000", 3, ""), 260_000)
        + work("10:06:00,000", 4, "x-0")
    )
    (gap,) = answer(tmp_path, log).history.work.gaps
    assert (gap.name, gap.lasted_us) == ("x-0", 300_000_000)


def test_work_of_a_worker_that_never_comes_back_waits_for_another_one(tmp_path: Path) -> None:
    log = (
        work("10:00:00,000", 1, "x-0")
        + work("10:00:00,000", 1, "x-1, x-2", worker="w-b")
        + work("10:00:00,000", 1, "x-3", worker="w-c")
        + delayed(work("10:01:00,000", 2, "x-0"), 300_000)
        + delayed(work("10:01:00,000", 2, "x-3", worker="w-c"), 300_000)
        + work("10:06:00,000", 3, "x-0, x-1")
        + work("10:06:00,000", 3, "x-2, x-3", worker="w-c")
        + work("10:10:00,000", 4, "x-0, x-1")
    )
    history = answer(tmp_path, log).history
    assert history.work.gaps == [
        WorkGap("x-1", 60_000_000, 360_000_000, "w-b", "w-a"),
        WorkGap("x-2", 60_000_000, 360_000_000, "w-b", "w-c"),
    ]
    assert history.work.uneven is None


def test_workers_that_have_much_more_than_others_are_said(tmp_path: Path) -> None:
    log = (
        work("10:00:00,000", 1, "x-0, x-1, x-2, x-3")
        + work("10:00:10,000", 2, "x-0, x-1, x-2, x-3")
        + work("10:00:10,000", 2, "x-4", worker="w-b")
        + work("10:05:00,000", 3, "x-0, x-1, x-2", revoked="x-2")
        + work("10:05:00,010", 3, "x-3, x-4", worker="w-b")
    )
    history = answer(tmp_path, log).history
    assert history.work.uneven == Uneven(290_000_000, {"w-a": 4, "w-b": 1})


def test_a_delay_that_no_setting_has_is_none(tmp_path: Path) -> None:
    log = work("10:00:00,000", 1, "x-0").replace("rebalance delay: 0", f"rebalance delay: {10**17}")
    import_texts(tmp_path, {"worker.log": log})
    (row,) = rows(tmp_path, "work_assigned")
    assert "duration_us" not in row


# -- workers that turn in circles ----------------------------------------------------------------


def joined(time: str, generation: int) -> str:
    described = f"Generation{{generationId={generation}, memberId='w-a-1', protocol='sessioned'}}"
    return worker_line(time, f"Successfully joined group with generation {described}") + worker_line(
        time, f"Successfully synced group in generation {described}"
    )


def test_a_worker_with_another_configuration_turns_in_circles(tmp_path: Path) -> None:
    """As confluentinc's images log it, if the topic of the configuration was made anew."""
    log = "".join(
        work(f"10:00:0{second},000", second, "")
        + worker_line(
            f"10:00:0{second},147",
            "Current config state offset -1 does not match group assignment 4. Forcing rebalance.",
        )
        + worker_line(f"10:00:0{second},147", "Rebalance started")
        + joined(f"10:00:0{second},294", second + 1)
        for second in range(1, 6)
    )
    one = answer(tmp_path, log)
    (found,) = one.findings
    assert (found.pattern.name, len(found.rebalances)) == ("config-behind", 5)
    assert len(one.history.rebalances) == 5
    assert found.match.sentence.startswith("Within 4.0 s workers asked for another rebalance")
    assert "w-a 5 times" in found.match.sentence
    assert "config.storage.topic" in found.pattern.advice


def test_a_worker_that_reads_its_configuration_later_is_no_pattern(tmp_path: Path) -> None:
    log = work("10:00:01,000", 1, "") + worker_line(
        "10:00:01,147", "Current config state offset 3 does not match group assignment 4. Forcing rebalance."
    )
    assert names(answer(tmp_path, log)) == []


TOO_SLOW: Final = (
    "worker poll timeout has expired. This means the time between subsequent calls to poll() in "
    "DistributedHerder tick() method was longer than the configured rebalance.timeout.ms. If you see this "
    "happening consistently, then it can be addressed by adding more workers"
)


@pytest.mark.parametrize(("setting", "busy"), [("", "95.0 s"), ("\trebalance.timeout.ms = 60000\n", "155 s")])
def test_a_worker_that_stops_its_tasks_for_longer_than_the_rebalance_timeout(
    tmp_path: Path, setting: str, busy: str
) -> None:
    """From the last poll() to the next: the time-out, if the log has it, and 95 s more."""
    config = "[2024-11-18 09:59:00,000] INFO DistributedConfig values: \n\tclient.id = w-a\n\tgroup.id = c\n"
    log = (
        (config + setting if setting else "")
        + work("10:00:00,000", 1, "x-0")
        + worker_line("10:01:00,000", TOO_SLOW)
        + joined("10:02:35,000", 3)
        + work("10:02:35,100", 3, "x-0")
    )
    (found,) = answer(tmp_path, log).findings[:1]
    assert found.pattern.name == "slow-worker"
    assert f"The herder was busy for at least {busy}." in found.match.sentence
    assert found.pattern.advice.startswith(
        f"Raise rebalance.timeout.ms above the {busy} for which it was busy"
    )


def test_a_broker_tells_who_left_for_want_of_a_poll(tmp_path: Path) -> None:
    """The reason of a LeaveGroup (KIP-800): nobody has stopped the group."""
    left = "Removing member w-a-1 on LeaveGroup; client reason: consumer poll timeout has expired."
    log = joins("10:00:00,000", 4, "w-a-1") + stabilized("10:00:03,000", 5, 1)
    log += preparing("10:05:03,000", 5, left) + emptied("10:05:03,001", 6)
    assert names(answer(tmp_path, log)) == ["max-poll-interval"]
