"""`groupstorm run` names what a configuration cannot do, and what would end it."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.storms.scenario.files import load
from tests.command import groupstorm

SMALL = ["--set", "members=4", "--set", "partitions=8", "--set", "start_ms=1000", "--set", "ready_ms=500"]
STRATEGY = "partition.assignment.strategy"


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("partition.assignment.strategy=sticky", "partition.assignment.strategy that ends it: range"),
        ("group.protocol=consumer", "group.remote.assignor that ends it: range"),
        ("topic_partitions={a: 24, b: 18}", "range may give partition n of two topics to two members"),
    ],
)
def test_an_assignor_that_tears_joins_apart_is_named_with_the_remedy(
    tmp_path: Path, setting: str, remedy: str
) -> None:
    result = groupstorm("run", "stream-join", "--set", setting, "--out", "x", cwd=tmp_path)
    assert result.returncode == 1
    assert "this configuration cannot join its topics" in result.stderr
    assert remedy in result.stderr
    assert "fault of groupstorm" not in result.stderr


@pytest.mark.slow
def test_run_says_that_consumers_ended(tmp_path: Path) -> None:
    """Only a comparison said so, of variants that it does not rank."""
    full = ["--set", "if_never_settled=report", "--set", "group.max.size=3"]
    result = groupstorm("run", "cold-start", *SMALL, *full, "--out", "x", cwd=tmp_path)
    assert "Consumers ended with GROUP_MAX_SIZE_REACHED (the group is full, see" in result.stdout


@pytest.mark.slow
def test_a_configuration_that_cannot_settle_fails_the_run_with_the_remedy(tmp_path: Path) -> None:
    slow = ["--variant", "no-delay", "--set", "poll_interval_ms=400000"]
    slow += ["--set", "members=10", "--set", "partitions=20"]
    result = groupstorm("run", "cold-start", *slow, "--out", "x", cwd=tmp_path)
    assert result.returncode == 1
    assert "this configuration cannot settle" in result.stderr
    assert "rounds in an hour" in result.stderr
    both = "max.poll.interval.ms=500000 and group.protocol=consumer together end it"
    needs = "group.protocol=consumer needs Apache Kafka 4.0 (brokers) and kafka-clients 4.0 or later"
    assert f"{both} (now 300000 and classic) {needs}" in " ".join(result.stderr.split())
    assert "invariant broke" not in result.stderr
    assert "violated" not in result.stdout
    verdict = " ".join(result.stderr.split("groupstorm: ")[-1].split())
    assert "the application may call poll() only every 400 s (poll_interval_ms)" in verdict
    assert "it costs " in result.stderr
    reported = groupstorm(
        "run", "cold-start", *slow, "--set", "if_never_settled=report", "--out", "x", cwd=tmp_path
    )
    assert reported.returncode == 0
    assert "this configuration cannot settle" in reported.stderr
    assert "groupstorm: " not in reported.stderr


@pytest.mark.slow
def test_a_group_that_nobody_reads_for_is_not_told_to_have_more_members(tmp_path: Path) -> None:
    """All instances come back with a protocol that the group refuses."""
    ran = groupstorm("run", "migrate-streams", "--variant", "at-once", "--out", "x", cwd=tmp_path)
    assert "nobody processes any of the 1,200 records a second that arrive" in ran.stderr
    assert "with which it keeps up" not in ran.stderr


def test_partitions_that_an_assignor_gave_to_nobody_are_no_overload(tmp_path: Path) -> None:
    """stream-join-sticky leaves out the numbers that the smallest topic does not have."""
    (tmp_path / "joins.yaml").write_text(
        "{name: joins, settings: {members: 2, topic_partitions: {a: 2, b: 4}, least_duration_ms: 4m, "
        "partition.assignment.strategy: [stream-join-sticky]}, steps: [{at_ms: 0, do: start}]}"
    )
    ran = groupstorm("run", "joins.yaml", "--out", "x", cwd=tmp_path)
    said = " ".join(ran.stdout.split())
    assert "the lag still grew by 200 records a second; violated" in said
    assert "nobody took it" in said
    assert "the time went to rounds that gave partitions to nobody" in said
    assert "or an assignor left them out: see `" in ran.stderr
    assert "raise settle_timeout_ms" not in ran.stderr


def test_no_assignor_is_blamed_for_a_topic_that_a_release_reads_no_more(tmp_path: Path) -> None:
    (tmp_path / "release.yaml").write_text(
        "{name: release, settings: {members: 2, topic_partitions: {a: 2, b: 2}, topic_pattern: a|b, "
        "start_ms: 5s}, steps: [{at_ms: 0, do: start}, "
        "{at_ms: 1m, do: rolling-restart, settings: {topic_pattern: a}}]}"
    )
    ran = groupstorm("run", "release.yaml", "--out", "x", cwd=tmp_path)
    assert "nobody (no member subscribes to their topic, or an" in " ".join(ran.stdout.split())
    assert (
        "a real group does this, too\n  no member subscribes to b: 2 partitions have no owner" in ran.stderr
    )
    assert "assignor" not in ran.stderr
    why = groupstorm("explain", "x", cwd=tmp_path).stdout
    assert "of it because of rounds that gave partitions to nobody (no member" in " ".join(why.split())


def test_a_group_whose_processes_steps_have_ended_is_no_overload(tmp_path: Path) -> None:
    """Nobody could have processed the records behind the last of them."""
    gone = (
        "{name: gone, settings: {members: 2, partitions: 6, record_rate: 100, least_duration_ms: 4m}, "
        "variants: {a: {}, b: {session.timeout.ms: 10s}}, steps: "
        "[{at_ms: 0, do: start}, {at_ms: 1m, do: stop, members: [1]}, {at_ms: 2m, do: crash, members: [0]}"
    )
    (tmp_path / "gone.yaml").write_text(f"{gone}]}}")
    ran = groupstorm("compare", "gone.yaml", "--seeds", "1", "--out", "x", cwd=tmp_path)
    assert "keep up" not in ran.stderr
    assert "Not ranked" not in ran.stdout
    ran = groupstorm("run", "gone.yaml", "--out", "y", cwd=tmp_path)
    assert "keep up" not in ran.stderr
    assert "at the end no process was left." in " ".join(ran.stdout.split())
    (tmp_path / "back.yaml").write_text(f"{gone}, {{at_ms: 3m, do: start, members: all}}]}}")
    ran = groupstorm("run", "back.yaml", "--set", "record_rate=400", "--out", "z", cwd=tmp_path)
    assert "no process was left" not in " ".join(ran.stdout.split())
    assert "with which it keeps up" in ran.stderr


def test_a_share_group_whose_last_consumers_died_late_has_nobody(tmp_path: Path) -> None:
    """The work of a share group counts over the last half of its time."""
    (tmp_path / "dead.yaml").write_text(
        "{name: dead, settings: {group.protocol: share, members: 3, partitions: 4, record_rate: 1, "
        "process_ms: 50, start_ms: 5s, least_duration_ms: 4m}, "
        "steps: [{at_ms: 0, do: start}, {at_ms: 200s, do: crash, members: all}]}"
    )
    ran = groupstorm("run", "dead.yaml", "--out", "x", cwd=tmp_path)
    assert "at the end no process was left." in " ".join(ran.stdout.split())
    assert "keep up" not in ran.stderr


def test_a_group_that_died_of_a_record_was_ended_by_no_step(tmp_path: Path) -> None:
    (tmp_path / "dead.yaml").write_text(
        "{name: dead, settings: {members: 2, partitions: 2, record_rate: 10, restart_failed: false, "
        "slow_records: [{partition: 0, offset: 300, takes: 1s, then: crash}], least_duration_ms: 2m}, "
        "steps: [{at_ms: 0, do: start}]}"
    )
    ran = groupstorm("run", "dead.yaml", "--out", "x", cwd=tmp_path)
    assert "nobody processes any of the 20 records a second that arrive" in ran.stderr


def test_a_share_group_whose_batches_outlast_the_poll_interval_is_told_so(tmp_path: Path) -> None:
    """500 records of 20 s each are in hand for hours; who leaves and comes back never settles."""
    (tmp_path / "slow.yaml").write_text(
        "{name: slow, settings: {group.protocol: share, members: 3, partitions: 2, record_rate: 2, "
        "process_ms: 20s, max.poll.interval.ms: 1m, least_duration_ms: 4m}, steps: [{at_ms: 0, do: start}]}"
    )
    ran = groupstorm("run", "slow.yaml", "--out", "x", cwd=tmp_path)
    assert "it takes work of less than 60.0 s from poll() to poll()" in ran.stderr
    assert "settle_timeout_ms" not in ran.stderr


def test_members_that_do_no_record_in_the_last_seconds_may_just_be_slow(tmp_path: Path) -> None:
    slow = [
        f"--set={name}={value}"
        for name, value in {
            "members": 2, "partitions": 2, "record_rate": 1, "process_ms": "25s", "max.poll.records": 1,
            "least_duration_ms": "5m",
        }.items()
    ]  # fmt: skip
    ran = groupstorm("run", "deploy-and-crash", *slow, "--out", "x", cwd=tmp_path)
    assert "the lag still grew by 2 records a second" in ran.stderr
    assert "nobody processes any" not in ran.stderr
    assert "concurrency with which it keeps up: 26 (now 1)" in ran.stderr
    assert "more members do not help" in ran.stderr


def test_more_members_may_help_if_the_quick_ones_keep_up_with_each_partition(tmp_path: Path) -> None:
    """5 records a second come into each partition; member-0 does 3 a second, others 10."""
    (tmp_path / "slow.yaml").write_text(
        "{name: slow, settings: {members: 2, partitions: 2, record_rate: 5, process_ms: 100, "
        "machines: [{members: [0], factor: 3}], least_duration_ms: 5m}, steps: [{at_ms: 0, do: start}]}"
    )
    ran = groupstorm("run", "slow.yaml", "--out", "x", cwd=tmp_path)
    assert "the slowest member processes at most 3" in " ".join(ran.stderr.split())
    assert "more members do not help" not in ran.stderr


@pytest.mark.slow
def test_a_configuration_that_cannot_keep_up_is_a_finding_and_no_failure(tmp_path: Path) -> None:
    """Two members do 2,000 records a second, 30 partitions get 3,000; steps come to an end without them."""
    little = ["--set", "members=2", "--set", "partitions=30", "--set", "settle_timeout_ms=60s"]
    ran = groupstorm("run", "cold-start", *little, "--out", "x", cwd=tmp_path)
    assert ran.returncode == 0
    assert "this configuration cannot keep up" in ran.stderr
    assert "overload: at the end the lag still grew by 1,000 records a second" in ran.stderr
    assert "members with which it keeps up: 4 (now 2)" in ran.stderr, "three have no room for what is late"
    assert "concurrency with which it keeps up: 2 (now 1)" in ran.stderr
    assert "3,000 records a second arrive, and 2 members process at most 2,000" in " ".join(
        ran.stdout.split()
    )
    required = ["--require", "lag_growth_per_second<1"]
    assert groupstorm("run", "cold-start", *little, *required, "--out", "x", cwd=tmp_path).returncode == 1
    compared = groupstorm("compare", "cold-start", *little, "--seeds", "2", "--out", "y", cwd=tmp_path)
    assert compared.returncode == 0
    assert compared.stderr.count("this configuration cannot keep up") == 1, "once per cause"
    assert all(variant in compared.stderr for variant in load("cold-start").variants)
    assert "There is no best variant: none of them can be ranked." in compared.stdout


def test_what_ends_an_overload_by_commits_and_by_a_slow_machine(tmp_path: Path) -> None:
    """A commit after each record takes 20 ms: 48 records a second, whatever the concurrency. One of two
    machines does 333 of the 500 records a second in its partitions, the other 1,000."""
    steps = "steps: [{at_ms: 0, do: start}, {at_ms: 30s, do: restart, members: [0]}]\n"
    by_hand = "commits: record, net_latency_ms: 10, members: 1, partitions: 1, record_rate: 100"
    slow = "members: 2, partitions: 10, record_rate: 100, machines: [{members: [0], factor: 3}]"
    said = {}
    for name, settings in (("commits", by_hand), ("machine", slow)):
        text = f"name: {name}\nsettings: {{{settings}, process_ms: 1, settle_timeout_ms: 60s}}\n{steps}"
        (tmp_path / f"{name}.yaml").write_text(text)
        said[name] = " ".join(groupstorm("run", f"{name}.yaml", "--out", name, cwd=tmp_path).stderr.split())
    assert "a member processes at most 48" in said["commits"]
    assert "concurrency with which it keeps up" not in said["commits"]
    assert "or with a commit for each batch, in the place of each record (commits=batch)" in said["commits"]
    assert "the slowest member processes at most 333" in said["machine"]
    assert "or if all members were as quick as the quickest" in said["machine"]
    assert "commits=batch" not in said["machine"]


def test_members_that_steps_add_count_in_the_arithmetic_of_an_overload(tmp_path: Path) -> None:
    """Three members do 3,000 records a second, two of them added, and 40 partitions get 4,000."""
    (tmp_path / "s.yaml").write_text(
        "name: s\nsettings: {members: 1, partitions: 40, settle_timeout_ms: 60s}\n"
        "steps: [{at_ms: 0, do: start}, {at_ms: 10s, do: add, count: 2}]\n"
    )
    ran = groupstorm("run", "s.yaml", "--out", "x", cwd=tmp_path)
    assert "members with which it keeps up: 5 (now 3, 2 of them added by steps)" in ran.stderr
    assert "4,000 records a second arrive, and 3 members process at most 3,000" in " ".join(
        ran.stdout.split()
    )


@pytest.mark.slow
def test_an_assignor_that_gives_out_what_nobody_asked_for_is_why_members_join_again(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def foreign(topics, members):\n"
        "    return {min(members): [('audit', 0)]} | {max(members): [('topic-0', 0)]}\n",
        "utf-8",
    )
    settings = ["members=2", "partitions=1", "settle_timeout_ms=1s", "record_rate=0"]
    options = [word for one in settings for word in ("--set", one)]
    options += ["--set", "partition.assignment.strategy=mine:foreign", "--no-remedies", "--out", "run"]
    ran = groupstorm("run", "cold-start", *options, cwd=tmp_path)
    assert ran.returncode == 1
    told = "times the assignor gave a member topics that it does not subscribe to, and it joined again"
    assert told in " ".join(ran.stderr.split())
    why = groupstorm("explain", "run", cwd=tmp_path).stdout
    assert "(assignment-mismatch)" in why
    assert "topics-changed" not in why


@pytest.mark.slow
def test_an_assignor_that_throws_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def oops(topics, members):\n    return members['nobody']\n")
    strategy = ["--set", "partition.assignment.strategy=mine:oops", "--set", "settle_timeout_ms=1000"]
    result = groupstorm("run", "cold-start", *SMALL, *strategy, cwd=tmp_path)
    said = "an assignor failed, and with it the leader: KeyError: oops: 'nobody' (mine.py, line 2)"
    assert said in " ".join(result.stderr.split())
    assert "records a second that arrive: an assignor failed, and its leaders with it" in " ".join(
        result.stderr.split()
    )
    assert max(map(len, result.stderr.splitlines())) <= 80
    assert "Traceback" not in result.stderr
    compared = groupstorm("compare", "cold-start", "--variant", "no-delay", *SMALL, *strategy, cwd=tmp_path)
    assert "cold-start (no-delay), seed 0: an assignor failed" in compared.stderr
    over = ["--over", "partition.assignment.strategy=range,mine:oops", "--seeds", "1"]
    swept = groupstorm("sweep", "cold-start", *over, *SMALL, cwd=tmp_path)
    assert said[0].upper() + said[1:] in " ".join(swept.stdout.split())


def test_an_assignor_that_gives_what_does_not_exist_or_has_anothers_name_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def beyond(topics, members):\n"
        "    numbers = range(topics['topic-0'].partitions + 1)\n"
        "    return {min(members): [('topic-0', number) for number in numbers]}\n"
        "def other(topics, members):\n"
        "    return {}\n"
        "other.name = 'range'\n"
    )
    result = groupstorm("run", "cold-start", *SMALL, "--set", f"{STRATEGY}=mine:beyond", cwd=tmp_path)
    assert result.returncode == 1
    assert "topic-0-8 is assigned and does not exist" in result.stderr
    result = groupstorm("run", "cold-start", *SMALL, "--set", f"{STRATEGY}=mine:other,range", cwd=tmp_path)
    assert result.returncode == 2
    assert "mine:other, range: two assignors of one name: no consumer starts" in result.stderr
    result = groupstorm("run", "cold-start", *SMALL, "--set", f"{STRATEGY}=uniform", cwd=tmp_path)
    assert "the broker's own by group.remote.assignor" in result.stderr
