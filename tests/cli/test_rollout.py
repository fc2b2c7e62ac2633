"""`groupstorm rollout`: the answer in words, what it asks for, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.command import COMMAND, environment_of_command, groupstorm, refused
from tests.processes import run_process
from tests.storms.manifests.manifest_files import text_of, workload
from tests.whatif.storms import as_logs, storm

GIVEN = ("--set", "partitions=12", "--set", "record_rate=10", "--set", "start_ms=10s", "--seeds", "1")
ALONE = (*GIVEN, "--alone")
READY = {"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}


def manifest(folder: Path, *objects: dict[str, Any]) -> str:
    (folder / "orders.yaml").write_text(text_of(*objects), "utf-8")
    return "orders.yaml"


def test_the_answer_in_words(tmp_path: Path) -> None:
    env = [{"name": "KAFKA_SESSION_TIMEOUT_MS", "value": "30000"}]
    file = manifest(tmp_path, SERVICE, workload(container={**READY, "env": env}))
    result = groupstorm("rollout", file, *ALONE, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stdout.split())
    for expected in (
        "Deployment orders: 4 pods, maxSurge 25%, maxUnavailable 25%",
        "session.timeout.ms=30000 (env KAFKA_SESSION_TIMEOUT_MS)",
        "partition.assignment.strategy=range,cooperative-sticky (the client's default)",
        "Not used: 1 Service (no part in a rollout).",
        "4 pods of Deployment orders are replaced, 1 more at most and 1 missing at most: that takes",
        "partitions are un-owned for",
    ):
        assert expected in said
    assert "Recommendation" not in said
    assert (tmp_path / "runs" / "rollout-orders" / "rollout.yaml").is_file()


def test_no_partition_of_a_share_group_is_un_owned(tmp_path: Path) -> None:
    """With Recreate nobody is left for a time: it is not said that others go on."""
    env = [{"name": "KAFKA_GROUP_PROTOCOL", "value": "share"}]
    file = manifest(tmp_path, workload(container={**READY, "env": env}, strategy={"type": "Recreate"}))
    result = groupstorm("rollout", file, *ALONE, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "Nobody owns partitions in a share group: the consumers that run get all records." in said
    assert "partitions are un-owned for" not in said


@pytest.mark.slow
def test_instances_of_kafka_streams_that_leave_no_group(tmp_path: Path) -> None:
    """Instances of a Deployment do not come back: their tasks wait for the session if nothing is changed."""
    env = [
        {"name": "SPRING_KAFKA_STREAMS_APPLICATION_ID", "value": "orders"},
        {"name": "SPRING_KAFKA_STREAMS_PROPERTIES_NUM_STREAM_THREADS", "value": "2"},
    ]
    file = manifest(tmp_path, workload(container={**READY, "env": env}))
    result = groupstorm("rollout", file, *GIVEN, "--set", "state_bytes=0", cwd=tmp_path)
    said = " ".join(result.stdout.split())
    assert "Recommendation: leave-on-close." in said
    assert "spring.kafka.streams.properties.internal.leave.group.on.close=true" in result.stdout.splitlines()
    assert "down: tasks, also while their state is restored" in said
    assert "un-owned: partition-seconds" not in said
    assert "to silent members whose session has to expire (session.timeout.ms)" in said
    assert "Tasks are down for" in said


@pytest.mark.slow
def test_instances_of_kafka_streams_whose_state_goes_with_their_pod(tmp_path: Path) -> None:
    env = [{"name": "KAFKA_STREAMS_APPLICATION_ID", "value": "orders"}]
    file = manifest(tmp_path, workload(container={**READY, "env": env}))
    result = groupstorm("rollout", file, *GIVEN, "--set", "state_bytes=20GB", cwd=tmp_path)
    said = " ".join(result.stdout.split())
    assert "Recommendation: static-members." in said
    assert re.search(r"2\d\d\.?\d* GB( \(.*?\))? of state are restored", said), "of twelve tasks, all"
    assert "volumeClaimTemplates:" in said


@pytest.mark.slow
def test_pods_that_share_an_instance_id_fence_each_other(tmp_path: Path) -> None:
    """Pods that wait until they start again are replaced, too."""
    held = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kafka"},
        "data": {"KAFKA_GROUP_INSTANCE_ID": "$(POD_NAME)"},
    }  # fmt: skip
    container = {**READY, "envFrom": [{"configMapRef": {"name": "kafka"}}]}
    file = manifest(tmp_path, held, workload("StatefulSet", container=container))
    lines = groupstorm("rollout", file, *GIVEN, cwd=tmp_path).stdout.splitlines()
    assert lines[2].startswith("All pods have the same group.instance.id: $(POD_NAME)")
    assert '  - {name: KAFKA_GROUP_INSTANCE_ID, value: "$(POD_NAME)"}' in lines
    assert "Recommendation: ids-of-their-own, before anything else." in " ".join(lines)
    rows = (tmp_path / "runs" / "rollout-orders" / "as-it-is" / "trace.jsonl").read_text("utf-8")
    assert rows.count('"instance":"$(POD_NAME)"') > 4
    assert "4 processes are replaced" in rows
    assert "restart-failed" in rows


def test_a_stateful_set_whose_partition_keeps_pods(tmp_path: Path) -> None:
    strategy = {"rollingUpdate": {"partition": 3}}
    file = manifest(tmp_path, workload("StatefulSet", container=READY, updateStrategy=strategy))
    said = " ".join(groupstorm("rollout", file, *ALONE, cwd=tmp_path).stdout.split())
    assert "StatefulSet orders: 4 pods, partition 3, maxSurge 0" in said
    assert "1 of 4 pods of StatefulSet orders are replaced (partition 3 keeps the lower ordinals)" in said


def test_a_consumer_group_rebalances_with_each_target(tmp_path: Path) -> None:
    env = [{"name": "KAFKA_GROUP_PROTOCOL", "value": "consumer"}]
    file = manifest(tmp_path, workload(container={**READY, "env": env}))
    said = " ".join(groupstorm("rollout", file, *ALONE, cwd=tmp_path).stdout.split())
    assert "group.protocol=consumer (env KAFKA_GROUP_PROTOCOL)" in said
    # four pods come and four go; the second that comes and the first that goes after it share a target
    assert "The group rebalances 6 times" in said


def test_a_recreated_deployment_with_a_value_from_elsewhere(tmp_path: Path) -> None:
    secret = {"name": "KAFKA_MAX_POLL_RECORDS", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    container = {**READY, "env": [secret]}
    file = manifest(tmp_path, workload(container=container, replicas=1, strategy={"type": "Recreate"}))
    said = " ".join(groupstorm("rollout", file, *ALONE, cwd=tmp_path).stdout.split())
    assert "Deployment orders: 1 pod, Recreate, terminationGracePeriodSeconds" in said
    assert "Not known: max.poll.records (env KAFKA_MAX_POLL_RECORDS, from Secret s): give" in said
    assert "1 pod of Deployment orders stops before the first new one starts" in said


@pytest.mark.slow
def test_json_with_seeds_and_a_requirement_that_is_not_met(tmp_path: Path) -> None:
    file = manifest(tmp_path, workload(container=READY))
    options = ("--seeds", "2", "--alone", "--json", "--require", "generations<1")
    result = groupstorm("rollout", file, *GIVEN, *options, cwd=tmp_path)
    assert result.returncode == 1
    assert "generations is" in result.stderr
    content = json.loads(result.stdout)
    assert content["workload"] == {"kind": "Deployment", "name": "orders", "namespace": ""}
    assert list(content["seeds"]) == ["0", "1"]
    assert all(run["rollout"]["stuck"] is None for run in content["seeds"].values())
    assert (content["alternatives"], content["recommended"]) == ({}, None)


def alternatives(folder: Path, one: dict[str, Any], *options: str) -> dict[str, Any]:
    """The answer on ``one`` workload, with one seed, as JSON."""
    small = ("--set", "partitions=6", "--set", "record_rate=1", "--set", "start_ms=5s", "--seeds", "1")
    result = groupstorm("rollout", manifest(folder, one), *small, "--json", *options, cwd=folder)
    assert result.returncode == 0, result.stderr
    content: dict[str, Any] = json.loads(result.stdout)
    return content


@pytest.mark.slow
def test_the_alternatives_come_first_then_the_lines_to_paste(tmp_path: Path) -> None:
    """Static members of a Deployment: whatever the seeds, dynamic ones cost a fraction."""
    env = [{"name": "KAFKA_GROUP_INSTANCE_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    file = manifest(tmp_path, workload(container={**READY, "env": env}))
    result = groupstorm("rollout", file, *GIVEN, "--seeds", "2", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stdout.split())
    places = [
        said.index(part)
        for part in (
            "Recommendation: dynamic-members. It costs (medians of 2 seeds, with their range): the oldest",
            "Its price: each pod that goes or comes causes a rebalance and moves partitions.",
            "As it is: 4 pods of Deployment orders are replaced",
            "rollout-orders, seeds 0 to 1",
            "longest gap s",
            "* recommended",
            "static-members: pods are replaced one at a time, without surge; nobody takes the partitions of "
            "a dead pod before session.timeout.ms is over (45.0 s).",
            "To paste for dynamic-members: # remove group.instance.id (env KAFKA_GROUP_INSTANCE_ID)",
            "Assumed:",
        )
    ]
    assert places == sorted(places)
    assert "12 of 12 runs" in result.stderr
    assert "To paste for kip-848" not in said
    runs = tmp_path / "runs" / "rollout-orders"
    assert (runs / "dynamic-members" / "seed-1" / "scenario.yaml").is_file()


@pytest.mark.slow
def test_pods_that_are_killed_before_they_close_get_a_longer_grace(tmp_path: Path) -> None:
    """The hook of 60 s is ended after 45 s, and the last batch takes longer than the 2 s after it: a pod that
    is killed is missed for its session of 45 s."""
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "sleep 60"]}}}
    pod = {"terminationGracePeriodSeconds": 45}
    file = manifest(tmp_path, workload(container={**READY, "lifecycle": hook}, pod=pod))
    drain = ("--set", "drain_ms=5s")
    said = " ".join(groupstorm("rollout", file, *GIVEN, *drain, cwd=tmp_path).stdout.split())
    assert "terminationGracePeriodSeconds 45, ready_when polls Recommendation: longer-grace." in said
    assert "To paste for longer-grace: spec: template: spec: terminationGracePeriodSeconds: 90" in said
    assert "pre_stop_ms=60000 (lifecycle.preStop sleeps for 60 s, and ends with the grace of 45 s)" in said
    assert "preStop.exec" not in said
    assert "(45.0 s, SIGKILL 2.0 s after the preStop hook; they may need 6.6 s)" in said
    assert "): a pod that is killed sends no LeaveGroup then" in said


@pytest.mark.slow
def test_no_alternative_of_settings_that_contradict_each_other_is_run(tmp_path: Path) -> None:
    """500 records of 700 ms take 350 s of the 300 s between two polls."""
    file = manifest(tmp_path, workload(container=READY))
    slow = ("--set", "process_ms=700", "--set", "record_rate=0.1", "--seeds", "1", "--json")
    content = json.loads(groupstorm("rollout", file, *GIVEN, *slow, cwd=tmp_path).stdout)
    assert content["answer"].startswith("No recommendation, as settings contradict each other: a full batch ")
    assert content["recommended"] is None
    assert content["alternatives"] == {}


def test_a_hook_that_does_more_than_sleep_is_named(tmp_path: Path) -> None:
    hook = {"preStop": {"exec": {"command": ["/opt/stop.sh"]}}}
    file = manifest(tmp_path, workload(container={**READY, "lifecycle": hook}))
    said = " ".join(groupstorm("rollout", file, *ALONE, cwd=tmp_path).stdout.split())
    assert "Not used: lifecycle.preStop.exec (only a sleep in it is counted: --set pre_stop_ms=10s)" in said
    assert "longer-grace" not in said


@pytest.mark.slow
def test_a_rollout_that_nothing_makes_cheaper_stays_as_it_is(tmp_path: Path) -> None:
    """Four pods of 5 s and 60 s until they are available, two at a time: twice the time of all at once."""
    content = alternatives(tmp_path, workload(container=READY, minReadySeconds=60))
    assert content["recommended"] == "as-it-is"
    assert content["answer"].startswith("Recommendation: stay with as-it-is, the settings in use: ")
    assert re.search(
        r"The rollout itself takes \d+\.\d s with more-surge, and 1\d\d s with as-it-is\.", content["answer"]
    )
    assert list(content["alternatives"]) == ["cooperative-sticky", "static-members", "kip-848", "more-surge"]
    assert content["alternatives"]["cooperative-sticky"]["lines"] == [
        "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    ], "Java's default list has it already: one deployment"


def test_a_group_that_cannot_keep_up_is_told_what_is_missing_first(tmp_path: Path) -> None:
    """12 partitions of 10 records a second, and a member does 25: of 5 members two have 3 partitions."""
    file = manifest(tmp_path, workload(container=READY))
    content = json.loads(
        groupstorm("rollout", file, *GIVEN, "--set", "process_ms=40ms", "--json", cwd=tmp_path).stdout
    )
    assert content["recommended"] is None
    assert content["answer"].startswith(
        "No recommendation before the group keeps up: 120 records a second arrive, and 4 members process at "
        "most 100: the lag grows; 6 members or less than 33.3 ms of work on a record would keep up."
    )


def test_a_rollout_that_never_completes(tmp_path: Path) -> None:
    """sentry-kubernetes/charts#2238: one pod, one partition, a health file, Kubernetes' defaults."""
    probe = {"startupProbe": {"exec": {"command": ["rm", "/tmp/health.txt"]}}}
    file = manifest(tmp_path, workload(replicas=1, container=probe))
    one = ("--set", "partitions=1", "--set", "record_rate=10", "--set", "start_ms=10s", "--seeds", "1")
    result = groupstorm("rollout", file, *one, cwd=tmp_path)
    assert result.returncode == 1
    assert "this rollout never completes: no progress for 600 s" in result.stderr
    said = " ".join(result.stdout.split())
    assert "member-0-v2 gets no partition while the old pod runs (1 partition in all)" in said
    assert "Tried and complete: maxUnavailable: 1" in said
    assert "strategy: Recreate" in said


def test_it_asks_for_what_no_manifest_says(tmp_path: Path) -> None:
    line = refused(groupstorm("rollout", manifest(tmp_path, workload()), cwd=tmp_path))
    assert line.endswith("give --set partitions=240 --set record_rate=100 --set start_ms=25s")


def test_what_a_trace_measures_takes_the_place_of_answers(tmp_path: Path) -> None:
    run = storm(tmp_path / "hours", "rolling-deploy", "eager", record_rate=3)
    as_logs(run, tmp_path / "logs").rename(tmp_path / "imported")
    file = manifest(tmp_path, workload(container=READY))
    options = ("--from", "imported", "--alone", "--seeds", "1")
    line = refused(groupstorm("rollout", file, *options, cwd=tmp_path))
    assert "neither it nor imported says record_rate" in line
    assert line.endswith("give --set record_rate=100")
    result = groupstorm("rollout", file, *options, "--set", "record_rate=3", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "Measured in imported: client_profile=java" in said
    assert "(4 starts, " in said
    assert "Not known: stop_grace_ms (no log says when a process got SIGTERM)" in said
    assert "--group" in refused(groupstorm("rollout", file, *GIVEN, "--group", "storm", cwd=tmp_path))


@pytest.mark.parametrize(
    "text", ["", "a: [", "[1, 2]", "kind: Deployment", "\x00", "{{- if .Values.x }}\nkind: {{ x }}"]
)
def test_malformed_manifests_end_with_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text, "utf-8")
    assert "bad.yaml" in refused(groupstorm("rollout", "bad.yaml", *GIVEN, cwd=tmp_path))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("max_surge=many", "--set max_surge: 'many': expected a number"),
        ("max_sruge=1", "--set max_sruge: no such setting: did you mean max_surge"),
    ],
)
def test_settings_that_are_refused(tmp_path: Path, option: str, message: str) -> None:
    file = manifest(tmp_path, workload(container=READY))
    assert message in refused(groupstorm("rollout", file, *GIVEN, "--set", option, cwd=tmp_path))


@pytest.mark.slow
def test_standard_input(tmp_path: Path) -> None:
    manifest(tmp_path, workload(container=READY))
    with (tmp_path / "orders.yaml").open() as text:
        result = run_process(
            [*COMMAND, "rollout", "-", *GIVEN],
            stdin=text, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment_of_command(),
        )  # fmt: skip
    assert "4 pods of Deployment orders are replaced" in " ".join(result.stdout.split())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "none.yaml: no such file" in refused(groupstorm("rollout", "none.yaml", *GIVEN, cwd=tmp_path))
