"""Pods whose clients share one client id are told apart by what stands in front of their lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from groupstorm.imports.lines import find_logs
from groupstorm.imports.parser import LogParser
from tests.imports.importing import generation, import_texts, rows

ID = "consumer-g-1-{0}1111111-1111-1111-1111-111111111111"


def java_lines(number: int, partition: str) -> list[str]:
    got = generation(4, ID.format(number))
    messages = (
        f"Successfully joined group with generation {got}",
        f"Successfully synced group in generation {got}",
        f"Adding newly assigned partitions: {partition}",
    )
    return [
        f"2026-03-04 10:00:00,0{at}{number} INFO [Consumer clientId=consumer-g-1, groupId=g] {message}"
        for at, message in enumerate(messages)
    ]


def aiokafka_lines(number: int, partition: str) -> list[str]:
    topic, at = partition.split("-")
    messages = (
        f"Joined group 'g' (generation 4) with member_id aiokafka-0.12.0-{number}",
        "Successfully synced group g with generation 4",
        f"Setting newly assigned partitions {{TopicPartition(topic='{topic}', partition={at})}} for group g",
    )
    return [
        f"2026-03-04 10:00:00,0{second}{number} INFO {message}" for second, message in enumerate(messages)
    ]


Fronts = Callable[[str, str], str]
FORMS: dict[str, Fronts] = {
    "kubectl --prefix": lambda pod, line: f"[pod/{pod}/app] {line}",
    "kubectl --prefix of JSON": lambda pod, line: f"[pod/{pod}/app] {json.dumps({'message': line})}",
    "kubectl --prefix --timestamps": lambda pod, line: f"[pod/{pod}/app] 2026-03-04T10:00:09.1Z {line}",
    "docker compose": lambda pod, line: f"{pod}  | {line}",
    "stern": lambda pod, line: f"{pod} app {line}",
    "kubetail": lambda pod, line: f"[{pod}] {line}",
    "Kubernetes JSON": lambda pod, line: json.dumps(
        {"log": line + "\n", "time": "2026-03-04T10:00:09Z", "kubernetes": {"pod_name": pod, "host": "n1"}}
    ),
    "logcli": lambda pod, line: f'2026-03-04T10:00:09Z {{app="a", pod="{pod}", stream="stdout"}} {line}',
    "Datadog": lambda pod, line: json.dumps({"message": line, "tags": ["env:prod", f"pod_name:{pod}"]}),
    "CloudWatch": lambda pod, line: json.dumps({"logStreamName": pod, "message": line}),
    "a stream for each day": lambda pod, line: json.dumps(
        {"logStreamName": f"{pod}-2026-11-{len(line) % 30 + 1:02}", "message": line}
    ),
    "Elastic": lambda pod, line: json.dumps(
        {"_source": {"message": line, "kubernetes": {"pod": {"name": pod}, "namespace": "default"}}}
    ),
}


def interleaved(form: Fronts, lines: Callable[[int, str], list[str]], pods: tuple[str, str]) -> str:
    of_a, of_b = lines(1, "t-0"), lines(2, "t-1")
    both = [
        form(pod, line) for pair in zip(of_a, of_b, strict=True) for pod, line in zip(pods, pair, strict=True)
    ]
    return "\n".join(both) + "\n"


def owned(folder: Path) -> dict[str, list[str]]:
    return {row["member"]: list(row["partitions"]) for row in rows(folder, "partitions_assigned")}


@pytest.mark.parametrize("form", FORMS)
def test_java_clients_with_one_client_id(form: str, tmp_path: Path) -> None:
    import_texts(tmp_path, {"all.log": interleaved(FORMS[form], java_lines, ("app-a", "app-b"))})
    assert owned(tmp_path) == {"app-a consumer-g-1": ["t-0"], "app-b consumer-g-1": ["t-1"]}
    joined = {row["member"]: row["member_id"] for row in rows(tmp_path, "join_answered")}
    assert joined == {f"app-{pod} consumer-g-1": ID.format(number) for pod, number in (("a", 1), ("b", 2))}


@pytest.mark.parametrize("form", FORMS)
def test_aiokafka_clients(form: str, tmp_path: Path) -> None:
    import_texts(tmp_path, {"all.log": interleaved(FORMS[form], aiokafka_lines, ("app-a", "app-b"))})
    assert owned(tmp_path) == {"app-a": ["t-0"], "app-b": ["t-1"]}


def test_a_client_id_of_one_pod_is_its_name(tmp_path: Path) -> None:
    text = "".join(f"[pod/app-a/app] {line}\n" for line in java_lines(1, "t-0"))
    import_texts(tmp_path, {"all.log": text})
    assert owned(tmp_path) == {"consumer-g-1": ["t-0"]}


def test_messages_of_several_lines_that_all_have_the_prefix(tmp_path: Path) -> None:
    line = java_lines(1, "t-0")[0]
    beginning = line[: line.index("Successfully")]
    text = "".join(
        f"app-a-1  | {one}\n"
        for one in (line, beginning + "Updating assignment with", "\tAssigned partitions: [t-7]")
    )
    (tmp_path / "all.log").write_text(text)
    (log,) = find_logs([str(tmp_path / "all.log")])
    assert [one.fields.get("assigned_partitions") for one in LogParser(log, 0).observations()] == [
        None,
        ["t-7"],
    ]


@pytest.mark.parametrize("fronts", [("INFO | ", "WARN | "), ("[pool-1-thread-1] ", "[pool-1-thread-2] ")])
def test_levels_and_threads_are_no_pods(fronts: tuple[str, str], tmp_path: Path) -> None:
    lines = [fronts[at % 2] + line for at, line in enumerate(java_lines(1, "t-0"))]
    import_texts(tmp_path, {"all.log": "\n".join(lines) + "\n"})
    assert owned(tmp_path) == {"consumer-g-1": ["t-0"]}


def test_partitions_of_topics_with_numbers_for_names(tmp_path: Path) -> None:
    import_texts(tmp_path, {"all.log": "\n".join(java_lines(1, "1-0, 20240101-0, 2024-01-02-0"))})
    assert owned(tmp_path) == {"consumer-g-1": ["1-0", "20240101-0", "2024-01-02-0"]}
