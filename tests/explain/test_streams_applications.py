"""Kafka Streams, ksqlDB and Kafka Streams in Spring: what their lines answer, and advice that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from groupstorm.cli.explain import print_explanation
from groupstorm.explain.findings import Finding
from groupstorm.wording import seconds
from tests.explain.explaining import SECOND_US, explained, names, scenario_storm, storm
from tests.explain.test_first_answers import answer
from tests.imports.importing import broker_line, client_line, joins, rows, stabilized

INSTANCE: Final = "shop-11111111-2222-3333-4444-555555555555"
THREAD: Final = f"{INSTANCE}-StreamThread-1"
DIED: Final = "Encountered the following exception during processing and the thread is going to shut down:"
THROWN: Final = "org.apache.kafka.streams.errors.{}: why\n\tat org.apache.kafka.streams.A.b(A.java:1)\n"


def thread_line(second: float, message: str, prefix: str = f"stream-thread [{THREAD}]") -> str:
    return f"2026-03-04 10:00:{second:06.3f} INFO {prefix} {message} (org.apache.kafka.streams.A)\n"


def only_finding(folder: Path, log: str) -> Finding:
    (found,) = answer(folder, log).findings
    return found


def test_two_lines_of_one_fencing(tmp_path: Path) -> None:
    migrated = "Failed to punctuate stream task 1_8 since it got migrated to another thread already. Rejoin."
    fenced = "Detected that the thread is being fenced. This implies that this thread missed a rebalance"
    found = only_finding(tmp_path, thread_line(0, migrated) + thread_line(0.2, fenced))
    assert found.pattern.name == "out-of-group"
    assert "sarama" not in found.pattern.advice
    assert not found.pattern.presets
    assert len(rows(tmp_path, "request_refused")) == 1


def test_the_exception_of_a_thread_stands_in_the_next_line(tmp_path: Path) -> None:
    found = only_finding(tmp_path, thread_line(0, DIED) + THROWN.format("StreamsException"))
    assert found.match.sentence == "1 consumer ended with StreamsException."
    assert not found.pattern.presets


@pytest.mark.parametrize(
    "log",
    [
        thread_line(0, DIED) + THROWN.format("MissingSourceTopicException"),
        thread_line(0, "Received error code INCOMPLETE_SOURCE_TOPIC_METADATA"),
    ],
)
def test_source_topics_that_are_missing(tmp_path: Path, log: str) -> None:
    assert only_finding(tmp_path, log).pattern.advice.startswith("Create the source topics")


ALL_DIED: Final = thread_line(
    1, "All stream threads have died. The instance will be in error state.", f"stream-client [{INSTANCE}]"
)


def test_an_instance_all_of_whose_threads_have_died(tmp_path: Path) -> None:
    found = only_finding(tmp_path, ALL_DIED)
    assert (found.pattern.name, found.match.members) == ("failing-members", (INSTANCE,))
    found = only_finding(tmp_path, thread_line(0, DIED) + ALL_DIED)
    assert found.match.members == (THREAD,)


def test_a_thread_of_which_no_line_names_the_group(tmp_path: Path) -> None:
    one = answer(tmp_path, thread_line(0, DIED).replace(INSTANCE, "shop-1"))
    assert (one.history.group, names(one)) == ("(unnamed)", ["failing-members"])


def test_a_thread_that_did_not_poll_in_time(tmp_path: Path) -> None:
    """It cannot process its records in another thread."""
    late = (
        f"Member {THREAD}-consumer-1 sending LeaveGroup request to coordinator b due to consumer poll timeout"
    )
    log = client_line(0, f"{late} has expired. This means the time", f"{THREAD}-consumer")
    found = only_finding(tmp_path, log)
    assert found.pattern.name == "max-poll-interval"
    assert "another thread" not in found.pattern.advice
    assert not found.pattern.presets


def test_threads_that_restart_one_after_the_other_have_an_assignor_of_their_own(tmp_path: Path) -> None:
    """The broker's log names none, but the members say what they are."""
    log = ""
    for number in range(3):
        id_ = f"shop-{number}-StreamThread-1-consumer-{number}1111111-2222-3333-4444-555555555555"
        new = id_.replace("1111111", "2222222")
        left = f"Member {id_} in group g has left, removing it from the group"
        at = f"10:0{number}"
        log += broker_line(f"{at}:00,000", left) + joins(f"{at}:10,000", 10 + number, new)
        log += stabilized(f"{at}:12,000", 11 + number, 3)
    found = next(one for one in answer(tmp_path, log).findings if one.pattern.name == "deploy-wave")
    assert "cooperative-sticky" not in found.pattern.advice


LOST_HOST: Final = """
name: lost
figures_from: 10m
settings:
  {application: streams, members: 4, partitions: 8, state_bytes: 1GB, first_hosts_have_state: true,
  record_rate: 20, start_ms: 5s, settle_timeout_ms: 2h%s}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 20m, do: lose-host, members: [1]}
  - {at_ms: 40m, do: add, count: 1}
"""


def test_partitions_of_a_lost_host_wait_for_its_session_and_tasks_for_their_state(tmp_path: Path) -> None:
    """The rounds by which the tasks change their owners are one rebalance: the host's session began it."""
    one = explained(scenario_storm(tmp_path, LOST_HOST % ""))
    found = {each.pattern.name: each for each in one.findings}
    assert found["session-expired"].unowned_us == pytest.approx(2 * 45 * SECOND_US, abs=10 * SECOND_US)
    assert found["state-lost"].unowned_us == 0
    assert found["state-lost"].match.sentence.startswith("1 instance went, and 2 tasks had to be restored")
    assert found["follow-up-rebalances"].unowned_us < 30 * SECOND_US
    causes = {each.rounds[0].begun["cause"] for each in found["follow-up-rebalances"].rebalances}
    assert "session-expired" not in causes


def test_tasks_that_a_new_instance_takes_without_state_are_not_those_of_a_lost_host(tmp_path: Path) -> None:
    """A streams group warms nothing up, and its standbys are a setting of the group's coordinator."""
    one = explained(scenario_storm(tmp_path, LOST_HOST % ", group.protocol: streams"))
    (found,) = [each for each in one.findings if each.pattern.name == "state-lost"]
    assert found.match.sentence.startswith(
        "1 instance went, and 2 tasks had to be restored from the beginning of a changelog; 2 more tasks "
        "moved to instances without state. Their downtime, from the end of their owners on: "
    )
    assert found.match.members == ("instance-1",)
    assert found.pattern.advice.startswith("Raise group.streams.num.standby.replicas, and let disks outlast")


@pytest.mark.parametrize("settings", ["", "group.protocol: streams, "])
def test_threads_of_one_process_are_no_wave_and_no_autoscaler(tmp_path: Path, settings: str) -> None:
    """An instance is lost, another one is added, and one is stopped: each time three of the nine members."""
    text = f"""
name: ledger
figures_from: 10m
settings:
  {{application: streams, members: 3, num.stream.threads: 3, partitions: 9, stateless_topics: 1,
  record_rate: 5, start_ms: 15s, {settings}}}
steps:
  - {{at_ms: 0, do: start}}
  - {{at_ms: 12m, do: crash-restart, members: [1]}}
  - {{at_ms: 30m, do: add, count: 1}}
  - {{at_ms: 50m, do: stop, members: [0]}}
"""
    found = set(names(explained(scenario_storm(tmp_path, text))))
    assert not found & {"aligned-restart", "deploy-wave", "autoscaler-flapping"}


def test_a_rolling_restart_of_an_application_is_no_autoscaler(tmp_path: Path) -> None:
    """Figures count from a time on when all members are there: the rounds before it say how many."""
    text = """
name: fraud
figures_from: 10m
settings:
  {application: streams, group.protocol: streams, members: 6, num.stream.threads: 2, partitions: 12,
  stateless_topics: 1, record_rate: 5, start_ms: {exactly: 80s}}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 12m, do: rolling-restart}
  - {at_ms: 50m, do: lose-host, members: [3]}
  - {at_ms: 70m, do: add, count: 1}
"""
    found = {one.pattern.name: one.match for one in explained(scenario_storm(tmp_path, text)).findings}
    assert "one after the other" in found["deploy-wave"].sentence, "two threads are one process"
    assert "autoscaler-flapping" not in found


def test_threads_that_a_classic_group_refused_are_counted_together(tmp_path: Path) -> None:
    one = explained(storm(tmp_path, "migrate-streams", "leave-first", {"members": 4, "partitions": 6}))
    (found,) = [each.match for each in one.findings if each.pattern.name == "migration-refused"]
    assert len(found.members) == 6
    assert found.sentence.startswith("Refused 6 times in all by a classic group, for the new protocol: inst")


def test_the_time_in_which_tasks_restore_is_told_though_their_partitions_have_owners(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standbys that have just begun have little of the state: no pattern is about them."""
    run = scenario_storm(tmp_path, LOST_HOST % ", group.protocol: streams, num.standby.replicas: 1")
    one = explained(run)
    down_s = one.history.figures.task_downtime_seconds if one.history.figures else None
    assert down_s is not None
    print_explanation(one, {}, everything=False)
    assert f"Tasks were down for {seconds(down_s)} in all, " in " ".join(capsys.readouterr().out.split())
