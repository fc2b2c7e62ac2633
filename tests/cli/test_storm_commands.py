"""The commands as a user meets them: files, exit codes, one line for bad input."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from groupstorm.figures import Figures
from groupstorm.storms.scenario.files import load
from tests.command import groupstorm, refused

SMALL = ["--set", "members=4", "--set", "partitions=8", "--set", "start_ms=1000", "--set", "ready_ms=500"]
STRATEGY = "partition.assignment.strategy"


def test_run_writes_its_files_and_prints_figures_and_answer(tmp_path: Path) -> None:
    result = groupstorm("run", "rolling-deploy", "--seed", "7", *SMALL, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    name = "rolling-deploy-members=4-partitions=8-start_ms=1000-ready_ms=500-seed7"
    folder = tmp_path / "runs" / name
    names = {path.name for path in folder.iterdir()}
    assert names == {"trace.jsonl", "scenario.yaml", "figures.json", "measured.json"}
    figures = json.loads((folder / "figures.json").read_text())
    assert list(figures) == list(Figures.__dataclass_fields__)
    assert " ".join(figures["answer"].split()) in " ".join(result.stdout.split())
    again = groupstorm("replay", str(folder), cwd=tmp_path)
    assert (again.returncode, again.stderr) == (0, "")
    assert groupstorm("replay", str(folder), "--exact", cwd=tmp_path).returncode == 0


def test_run_logs_for_people_bound_with_group_generation_and_member(tmp_path: Path) -> None:
    result = groupstorm("run", "cold-start", "--log", "--out", "x", *SMALL[:4], cwd=tmp_path)
    assert result.returncode == 0
    [line] = [
        line
        for line in result.stderr.splitlines()
        if "partitions assigned" in line and "member=member-2" in line and "generation=1" in line
    ]
    assert "group=storm" in line
    assert "at=3." in line
    assert "join parked" not in result.stderr
    assert "one run at a time" in refused(
        groupstorm("run", "cold-start", "--log", "--seeds", "2", cwd=tmp_path)
    )


@pytest.mark.slow
def test_compare_runs_every_variant_and_says_the_difference(tmp_path: Path) -> None:
    one = ("--json", *SMALL, "--seeds", "1")
    result = groupstorm("compare", "rolling-deploy", *one, "--out", "c", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    assert content == json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert list(content) == ["preset", "seed", "variants", "answer"]
    assert list(content["variants"]) == ["eager", "cooperative", "static", "consumer"]
    for variant, figures in content["variants"].items():
        assert figures == json.loads((tmp_path / "c" / variant / "figures.json").read_text())
    only = groupstorm("compare", "rolling-deploy", "--variant", "static", *one, "--out", "d", cwd=tmp_path)
    assert list(json.loads(only.stdout)["variants"]) == ["static"]


@pytest.mark.slow
def test_a_comparison_leaves_nothing_of_an_older_one(tmp_path: Path) -> None:
    command = ["compare", "cold-start", "--out", "c", *SMALL[:4]]
    assert groupstorm(*command, "--seeds", "3", cwd=tmp_path).returncode == 0
    assert groupstorm(*command, "--variant", "no-delay", "--seeds", "2", cwd=tmp_path).returncode == 0
    assert {path.name for path in (tmp_path / "c").iterdir()} == {"no-delay", "comparison.json"}
    assert {path.name for path in (tmp_path / "c" / "no-delay").iterdir()} == {"seed-0", "seed-1"}
    assert groupstorm(*command, "--variant", "no-delay", "--seeds", "1", cwd=tmp_path).returncode == 0
    assert [*(tmp_path / "c" / "no-delay").glob("seed-*")] == []


@pytest.mark.slow
def test_several_seeds_give_the_spread(tmp_path: Path) -> None:
    result = groupstorm("run", "cold-start", "--seeds", "3", "--json", "--out", "s", *SMALL[:4], cwd=tmp_path)
    content = json.loads(result.stdout)
    assert list(content["seeds"]) == ["0", "1", "2"]
    settled = sorted(figures["settled_after_ms"] for figures in content["seeds"].values())
    assert content["spread"]["settled_after_ms"] == {
        "least": settled[0],
        "median": settled[1],
        "most": settled[2],
    }
    assert (tmp_path / "s" / "seed-2" / "trace.jsonl").is_file()


def test_require_is_a_gate(tmp_path: Path) -> None:
    command = ["run", "cold-start", *SMALL[:4], "--out", "x"]
    assert groupstorm(*command, "--require", "generations>=1", cwd=tmp_path).returncode == 0
    failed = groupstorm(*command, "--require", "generations>=1", "--require", "generations>99", cwd=tmp_path)
    assert failed.returncode == 1
    assert "generations is 4, but > 99 was required" in failed.stderr
    assert "no such figure" in refused(groupstorm(*command, "--require", "generatons<1", cwd=tmp_path))
    assert "expected FIGURE" in refused(groupstorm(*command, "--require", "generations", cwd=tmp_path))


@pytest.mark.slow
def test_compare_names_the_variants_that_meet_a_requirement(tmp_path: Path) -> None:
    command = ["compare", "cold-start", *SMALL[:4], "--out", "c", "--require"]
    some = groupstorm(*command, "settled_after_ms<16s", cwd=tmp_path)
    assert some.returncode == 0, some.stderr
    settled = {
        name: figures["settled_after_ms"]
        for name, figures in json.loads((tmp_path / "c" / "comparison.json").read_text())["variants"].items()
    }
    meeting = [name for name, value in settled.items() if value < 16_000]
    assert 0 < len(meeting) < len(settled)
    told = " ".join(some.stdout.split())
    assert all(name in told.rpartition("files in c")[2] for name in meeting)
    assert "settled_after_ms<16000" in told
    none = groupstorm(*command, "generations<1 for 50%", "--require", "generations<1", cwd=tmp_path)
    assert none.returncode == 1
    assert "no variant meets generations<1 for 50% and generations<1" in none.stderr
    assert "seed 0: generations is " in none.stderr


@pytest.mark.slow
def test_tables_come_in_other_formats(tmp_path: Path) -> None:
    command = ["compare", "cold-start", *SMALL[:4], "--seeds", "2", "--variant", "no-delay", "--out", "c"]
    rows = list(csv.DictReader(io.StringIO(groupstorm(*command, "--csv", cwd=tmp_path).stdout)))
    assert [(row["variant"], row["seed"]) for row in rows] == [("no-delay", "0"), ("no-delay", "1")]
    figures = json.loads((tmp_path / "c" / "no-delay" / "seed-1" / "figures.json").read_text())
    assert rows[1]["settled_after_ms"] == str(figures["settled_after_ms"])
    page = groupstorm(*command, "--markdown", cwd=tmp_path).stdout
    assert "| figure | no-delay |\n| :-- | --: |\n| generations | " in page
    assert "one of them at a time" in refused(groupstorm(*command, "--csv", "--json", cwd=tmp_path))


def test_a_broken_invariant_fails_the_run_and_says_how_to_see_it_again(tmp_path: Path) -> None:
    """A callback of three hours under a rebalance timeout of a day: nothing goes on in the group."""
    settings = ["--set", "assign_callback_ms=10800000", "--set", "max.poll.interval.ms=86400000"]
    again = ["--set", "settle_timeout_ms=60000", "--set", "group.initial.rebalance.delay.ms=0"]
    result = groupstorm("run", "cold-start", *SMALL[:4], *settings, *again, "--out", "x", cwd=tmp_path)
    assert result.returncode == 1
    assert "an invariant broke" in result.stderr
    assert "group_settles: the group had not settled" in result.stderr
    assert "seed 0" in result.stderr
    assert "assign_callback_ms=10800000" in result.stderr
    assert "groupstorm run x/scenario.yaml" in result.stderr
    assert "raise settle_timeout_ms" in result.stderr


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("partition.assignment.strategy=sticky", "partition.assignment.strategy that ends it: range"),
        ("group.protocol=consumer", "group.remote.assignor that ends it: range"),
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
def test_variants_that_cannot_settle_for_one_cause_are_named_once_with_what_it_costs(tmp_path: Path) -> None:
    named = ["--variant", "crashes", "--variant", "slower-than-the-poll-interval"]
    few = ["--seeds", "2", "--no-remedies", "--out", "x"]
    ran = groupstorm("compare", "poison-livelock", *named, *few, cwd=tmp_path)
    assert ran.returncode == 0
    assert ran.stderr.count("this configuration cannot settle") == 2, "once for both seeds"
    said, answer = (" ".join(text.split()) for text in (ran.stderr, ran.stdout))
    assert "because a record of topic-0-7 ends every process that reads it" in said
    assert "because a slow record of topic-0-7 takes 360 s (slow_records)" in said
    assert "crashes cannot settle because a record of topic-0-7 ends" in answer
    both = (
        "Not ranked are crashes and slower-than-the-poll-interval: the group did not come to rest (crashes: "
    )
    assert answer.count(both) == 1
    assert json.loads((tmp_path / "x" / "comparison.json").read_text())["answer"].count("; it costs ") == 2


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
    assert "nobody took it until the end" in said
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


def test_advice_that_there_is_none_is_said_once(tmp_path: Path) -> None:
    few = ["--seeds", "1", "--runs", "2", "--set", "members=2", "--set", "partitions=4"]
    answer = groupstorm("advise", "cold-start", *few, "--goal", "generations<0", cwd=tmp_path)
    assert answer.returncode == 1
    assert "No change of one or two settings meets generations<0" in " ".join(answer.stdout.split())
    assert answer.stderr.endswith("\ngroupstorm: cold-start: nothing that was tried meets the goal\n")
    assert "generations<0" not in answer.stderr


def test_a_client_without_the_consumer_protocol_is_refused_by_name(tmp_path: Path) -> None:
    settings = ("--set", "group.protocol=consumer", "--set", "client_profile=aiokafka")
    said = refused(groupstorm("run", "cold-start", *settings, cwd=tmp_path))
    assert "group.protocol" in said
    assert "aiokafka" in said


def test_replay_finds_a_trace_that_was_changed(tmp_path: Path) -> None:
    groupstorm("run", "cold-start", *SMALL[:4], "--out", "x", cwd=tmp_path)
    trace = tmp_path / "x" / "trace.jsonl"
    trace.write_text(trace.read_text().replace('"Stable"', '"Stale"', 1))
    result = groupstorm("replay", "x", cwd=tmp_path)
    assert result.returncode == 1
    assert "differs" in result.stderr


def test_trace_tells_the_story(tmp_path: Path) -> None:
    groupstorm("run", "cold-start", *SMALL[:4], "--out", "x", cwd=tmp_path)
    told = groupstorm("trace", "x", cwd=tmp_path)
    assert "PreparingRebalance -> CompletingRebalance" in told.stdout
    assert "nothing in it matches" in refused(groupstorm("trace", "x", "--from", "99999", cwd=tmp_path))


def test_list_names_presets_settings_and_steps(tmp_path: Path) -> None:
    presets = json.loads(groupstorm("list", "--json", cwd=tmp_path).stdout)
    assert {"name", "question", "variants"} == set(presets[0])
    assert "rolling-deploy" in {preset["name"] for preset in presets}
    assert "session.timeout.ms" in groupstorm("list", "--settings", cwd=tmp_path).stdout
    assert "rolling-restart" in groupstorm("list", "--steps", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "nowhere"], "neither a preset"),
        (["run", "."], ".: is a folder: expected a preset or a scenario file (.yaml, .toml)"),
        (
            ["compare", "/dev/zero"],
            "/dev/zero: its name ends neither in .yaml nor in .toml: expected a preset",
        ),
        (["trace", "/dev/zero"], "/dev/zero: is a device, a socket or a pipe: expected a trace"),
        (["rollout", "/dev/zero"], "/dev/zero: is a device: expected a file"),
        (["script", "/dev/zero"], "/dev/zero: a line of more than 16,777,216 characters"),
        (["run", "cold-start", "--variant", "x"], "'x' is not one of delay-3s"),
        (["run", "cold-start", "--set", "members"], "expected NAME=VALUE"),
        (["run", "cold-start", "--set", "members=["], "--set members"),
        (["run", "cold-start", "--set", "sesion.timeout.ms=1"], "did you mean session.timeout.ms"),
        (["run", "cold-start", "--set", "partition.assignment.strategy=best"], "'best'"),
        (["run", "cold-start", "--format", "csv"], "csv"),
        (["replay", "."], "no scenario.yaml"),
        (["trace", "nowhere"], "nowhere"),
        (["compare", "cold-start", "--variant", "x"], "'x' is not one of delay-3s"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(tmp_path: Path, arguments: list[str], told: str) -> None:
    assert told in refused(groupstorm(*arguments, cwd=tmp_path))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("session.timeout.ms: 1s", "variant bad: heartbeat.interval.ms: 3000 must be lower than"),
        ("partition.assignment.strategy: [stikcy]", "variant bad: assignor 'stikcy': did you mean sticky"),
        ("group.max.size: 1", "variant bad: group.max.size: 1: the broker refuses further members"),
        ("members: 0", "s.yaml: variants: bad: members: 0 lies outside"),
    ],
)
def test_an_error_of_one_variant_names_it(tmp_path: Path, settings: str, told: str) -> None:
    steps = "steps: [{at_ms: 0, do: start}]"
    (tmp_path / "s.yaml").write_text(f"{{name: s, variants: {{good: {{}}, bad: {{{settings}}}}}, {steps}}}")
    result = groupstorm("compare", "s.yaml", "--seeds", "1", cwd=tmp_path)
    assert result.returncode == 2
    assert told in result.stderr.splitlines()[-1]  # the progress of slow runs comes before


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert "thesis.txt" in refused(groupstorm("run", "cold-start", "--out", "mine", cwd=tmp_path))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--on", "nowhere"], "--on 'nowhere': expected emulator, jvm, container[=IMAGE] or HOST:PORT"),
        (["--on", "127.0.0.1:9"], "say --allow-writes"),
        (
            ["--on", "127.0.0.1:9", "--allow-writes"],
            "--on 127.0.0.1:9: connection refused: nothing listens there",
        ),
        (["--on", "emulator", "--exact"], "--exact: means something only in virtual time"),
        (["--on", "emulator", "--seeds", "2"], "--on: one run at a time, not --seeds"),
        (["--allow-writes"], "--allow-writes: means something only with --on HOST:PORT"),
    ],
)
def test_broker_that_cannot_be_used_is_refused(options: list[str], says: str, tmp_path: Path) -> None:
    assert says in refused(groupstorm("run", "cold-start", *options, cwd=tmp_path))
    assert list(tmp_path.glob("runs/*/*")) == []


@pytest.mark.slow
def test_compare_with_a_broker_sets_virtual_beside_real(tmp_path: Path) -> None:
    quick = ["--set", "arrival_ms=200", "--set", "tail_ms=100", "--set", "record_rate=0"]
    quick += ["--set", "group.initial.rebalance.delay.ms=2000"]
    different: list[object] = [None]
    for attempt in range(3):  # on a busy machine members come one after the other
        if not different:
            break
        out = tmp_path / f"x{attempt}"
        result = groupstorm(
            "compare", "cold-start", "--on", "emulator", "--out", out.name, *SMALL[:4], *quick, cwd=tmp_path
        )
        assert result.returncode == 0, result.stderr
        assert "figure" in result.stdout
        variants = json.loads((out / "fidelity.json").read_text())["variants"]
        assert all((out / name / "real" / "trace.jsonl").is_file() for name in variants)
        generations = [
            [one[side]["generations"] for side in ("virtual", "real")] for one in variants.values()
        ]
        different = [pair for pair in generations if pair[0] != pair[1]]
    assert not different
