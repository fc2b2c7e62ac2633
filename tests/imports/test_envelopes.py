"""The envelopes that logs come in: each gives the same time and the same message."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from groupstorm.imports.envelopes import user_envelope
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.imports.times import instant, shown, to_utc_us, zone
from groupstorm.problems import InputError
from tests.imports.importing import import_texts, java_line, rows, states
from tests.imports.test_envelope_grid import said

MESSAGE = "[GroupCoordinator 1]: Stabilized group g generation 7 (__consumer_offsets-1) with 3 members"
LOGGER = "(kafka.coordinator.group.GroupCoordinator)"
SECOND = "2024-11-18T14:36:14"
UUID = "11111111-1111-1111-1111-111111111111"
LINES = {
    "log4j": f"[2024-11-18 14:36:14,337] INFO {MESSAGE} {LOGGER}",
    "strimzi": f"2024-11-18 14:36:14,337 INFO {MESSAGE} {LOGGER} [executor-Rebalance]",
    "docker": f"2024-11-18T14:36:14.998683114Z 2024-11-18 14:36:14,337 INFO {MESSAGE} {LOGGER} [t-0]",
    "operator": "[INFO] 2024-11-18 14:36:14,337 [t] class method - app=kafka, clusterId=x, server=0 - "
    + MESSAGE,
    "cloudwatch": f"[2024-11-18 14:36:14,337] INFO {MESSAGE} {LOGGER},2024-11-18 15:00:00.000",
    "hadoop": f"24/11/18 14:36:14 INFO group.GroupCoordinator: {MESSAGE}",
    "spring": f"2024-11-18 14:36:14.337  INFO 22292 --- [afka-group_id-2] k.c.g.Coordinator  : {MESSAGE}",
    "spring-3": f"2024-11-18T09:36:14.337-05:00  INFO 597 --- [app] [t] k.c.g.GroupCoordinator : {MESSAGE}",
    "papertrail": f"2024 Nov 18 14:50:00  | 2024-11-18 14:36:14,337 - kafka.coordinator - INFO - {MESSAGE}",
    "line-number": f"[2024-11-18 14:36:14,337] INFO {MESSAGE} (kafka.coordinator.group.GroupCoordinator:66)",
    "logback": f"2024-11-18 14:36:14.337 INFO  [thread] o.a.k.c.c.i.Coordinator - {MESSAGE}",
    "python-thread": f"2024-11-18 14:36:14,337 MainThread INFO {MESSAGE}",
    "librdkafka-net": f"2024-11-18T14:36:14.337477043Z Debug | {MESSAGE}",
    "librdkafka-ruby": f"D, [2024-11-18T14:36:14.337254 #1] DEBUG -- : rdkafka: {MESSAGE}",
    "librdkafka-cpp": f"2024-11-18 14:36:14.337: LOG-7-CGRPJOINSTATE: {MESSAGE}",
    "librdkafka-old": f"7|2024-11-18 14:36:14.337|rdkafka#consumer-1|SYNCGROUP| {MESSAGE}",
    "go-log": f"[INFO] 2024/11/18 14:36:14 {MESSAGE}",
    "java.util.logging": "Nov 18, 2024 2:36:14 PM kafka.coordinator.group.GroupCoordinator complete\n"
    f"INFO: {MESSAGE}",
    "unheard-of": f"<<2024-11-18 14:36:14.337>> INFO!! {MESSAGE}",
}
WHOLE_SECONDS = ("hadoop", "go-log", "java.util.logging")


@pytest.mark.parametrize("name", LINES)
def test_an_envelope(name: str, tmp_path: Path) -> None:
    done = import_texts(tmp_path, {"server.log": LINES[name] + "\n"})
    expected = datetime.fromisoformat(SECOND + ("" if name in WHOLE_SECONDS else ".337"))
    assert shown(done.began_us) == expected.isoformat(" ", "milliseconds")
    assert states(tmp_path) == [("PreparingRebalance", "CompletingRebalance", "all-joined", 7)]
    assert done.logs[0].not_understood == 0


STAMP = f"{SECOND}.400000000Z"


@pytest.mark.parametrize(
    "around",
    [
        lambda line: line,
        lambda line: f"[pod/app-1/app] {line}",
        lambda line: f"app-1  | {line}",
        lambda line: f"{STAMP} {line}",
        lambda line: f"[pod/app-1/app] {STAMP} {line}",
        lambda line: f"{STAMP} stdout F {line}",
        lambda line: json.dumps(
            {"log": f"{line}\n", "stream": "stdout", "time": STAMP}, separators=(",", ":")
        ),
        lambda line: json.dumps({"timestamp": STAMP, "textPayload": line, "resource": {"type": "pod"}}),
        lambda line: json.dumps({"textPayload": line, "timestamp": STAMP}, indent=1),
        lambda line: f"Nov 18 14:36:14 node-7 app[311]: {line}",
    ],
    ids=[
        *("plain", "kubectl", "compose", "docker -t", "kubectl --timestamps", "CRI", "docker's file"),
        *("a collector", "a collector, printed", "journald"),
    ],
)
def test_the_further_lines_of_a_message(around: Callable[[str], str], tmp_path: Path) -> None:
    """The client prints its settings in lines of their own."""
    prefix = "[Consumer clientId=app, groupId=g] "
    lines = [
        "[2024-11-18 14:36:14,337] INFO ConsumerConfig values: ",
        "\tclient.id = app",
        "\tgroup.id = g",
        "\theartbeat.interval.ms = 2000",
        "\tsession.timeout.ms = 10000",
        " (org.apache.kafka.clients.consumer.ConsumerConfig)",
        f"[2024-11-18 14:36:14,400] INFO {prefix}(Re-)joining group (o.a.k.c.c.i.ConsumerCoordinator)",
    ]
    import_texts(tmp_path, {"app.log": "".join(f"{around(line)}\n" for line in lines)})
    [configured] = rows(tmp_path, "member_configured")
    assert json.loads(configured["detail"]) == {
        "session.timeout.ms": "10000",
        "heartbeat.interval.ms": "2000",
    }


@pytest.mark.parametrize(
    "around",
    [
        lambda line: f"    {line}",
        lambda line: f"     12\t{line}",
        lambda line: "\n".join(line[at : at + 80] for at in range(0, len(line), 80)),
        lambda line: json.dumps({"log": line, "n": 1}) + ",",
    ],
    ids=["indented", "cat -n", "wrapped", "JSON, one value"],
)
def test_what_follows_on_a_message_of_several_lines(around: Callable[[str], str], tmp_path: Path) -> None:
    """A message that begins anew is not taken for a further line of the client's settings."""
    prefix = "[Consumer clientId=app, groupId=g] "
    settings = [f"\t{name} = 1" for name in ("a", "b", "c", "d", "e", "f", "g", "h")]
    lines = [
        "[2024-11-18 14:36:14,337] INFO ConsumerConfig values: ",
        *settings,
        f"[2024-11-18 14:36:14,400] INFO {prefix}(Re-)joining group (org.apache.kafka.ConsumerCoordinator)",
        f"[2024-11-18 14:36:14,500] INFO {prefix}Adding newly assigned partitions: orders-0, orders-1, "
        "orders-2, orders-3 (org.apache.kafka.ConsumerCoordinator)",
    ]
    text = "\n".join(map(around, lines))
    import_texts(tmp_path, {"app.log": f"[{text[:-1]}]" if text.startswith("{") else f"{text}\n"})
    (assigned,) = rows(tmp_path, "partitions_assigned")
    assert len(assigned["partitions"]) == 4


@pytest.mark.parametrize("runtime", ["containerd", "docker"])
def test_a_text_that_the_container_runtime_has_cut(runtime: str, tmp_path: Path) -> None:
    """It cuts texts at 16 KB, as the plan of a large group."""
    many = ", ".join(f"t-{number}" for number in range(5_000))
    plan = f"c-1-{UUID}=Assignment(partitions=[{many}]), c-2-{UUID}=Assignment(partitions=[u-2])"
    text = java_line("14:36:14,337", f"Finished assignment for group at generation 7: {{{plan}}}")[:-1]
    parts = [text[:16_384], text[16_384:32_768], text[32_768:]]
    if runtime == "containerd":
        lines = [f"{STAMP} stdout {tag} {part}" for tag, part in zip("PPF", parts, strict=True)]
    else:
        texts = [*parts[:2], parts[2] + "\n"]
        lines = [json.dumps({"log": part, "stream": "stdout", "time": STAMP}) for part in texts]
    (one, again, whole) = said(tmp_path, "\n".join([*lines, *lines, text]))
    assert one.fields == again.fields == whole.fields
    assert "u-2" in str(one.fields)


def test_a_collector_that_takes_the_ends_of_lines_away(tmp_path: Path) -> None:
    lines = [json.dumps({"log": LINES["log4j"], "stream": "stdout", "time": STAMP})] * 2
    assert len(said(tmp_path, "\n".join(lines))) == 2


def test_two_records_on_one_line(tmp_path: Path) -> None:
    both = f"{LINES['log4j']} {LINES['log4j'].replace('generation 7', 'generation 8')}\n"
    import_texts(tmp_path, {"server.log": both})
    assert [row[3] for row in states(tmp_path) if row[1] == "CompletingRebalance"] == [7, 8]


def test_a_pattern_of_the_user(tmp_path: Path) -> None:
    line = f"at=20241118 when=14:36:14,337 -- {MESSAGE}\n"
    options = Options(envelope=user_envelope(r"when=(?P<time>\S+) -- "))
    done = import_texts(tmp_path, {"server.log": line}, options)
    assert done.logs[0].clock.lacks == "date"
    assert done.began_us == ((14 * 60 + 36) * 60 + 14) * 1_000_000 + 337_000
    with pytest.raises(InputError, match=r"--pattern .*: not a regular expression"):
        user_envelope("(")
    with pytest.raises(InputError, match=r"--pattern 'x': expected .* with the group"):
        user_envelope("x")


def test_zones() -> None:
    local = instant("2024-07-01 12:00:00,000")
    assert local is not None
    assert local.us - to_utc_us(local.us, zone("z", "Europe/Berlin")) == 2 * 3600 * 1_000_000
    assert local.us - to_utc_us(local.us, zone("z", "+05:30")) == 5.5 * 3600 * 1_000_000
    with pytest.raises(InputError, match="--time-zone: 'Mars' is no time zone: expected a name"):
        zone("--time-zone", "Mars")


def test_options_of_one_log_go_by_its_path_or_by_the_name_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = {"logs/server.log": LINES["log4j"] + "\n"}
    berlin = zone("--time-zone", "Europe/Berlin")
    for name in ("server.log", str(tmp_path / "logs/server.log")):
        assert shown(import_texts(tmp_path, log, Options({name: berlin})).began_us).endswith("13:36:14.337")
    with pytest.raises(
        InputError, match=r"^--time-zone sever.log=: no such log: expected one of /.*/server.log$"
    ):
        import_texts(tmp_path, log, Options({"sever.log": berlin}))


def test_a_folder_with_rotations_and_gzip(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "server.log.2024-11-18-13.gz").write_bytes(gzip.compress((LINES["log4j"] + "\n").encode()))
    (folder / "server.log").write_text(LINES["log4j"].replace("generation 7", "generation 8") + "\n")
    logs = find_logs([str(folder)])
    assert len(logs) == 1
    import_logs(logs, tmp_path / "out", Options())
    assert [row[3] for row in states(tmp_path)] == [8, 7]
    places = [row["evidence"] for row in rows(tmp_path, "group_state_changed")]
    assert places == [[f"{folder / 'server.log'}:1"], [f"{folder / 'server.log.2024-11-18-13.gz'}:1"]]


@pytest.mark.parametrize(
    ("files", "logs"),
    [
        (["orders-0.log", "orders-1.log.gz", "orders-2.log"], 3),
        (["orders-0.log", "orders-0.log.1", "orders-1.log"], 2),
        (["orders.log", "orders-1.log", "orders-2.log.gz"], 1),
        (["orders-2026-11-29.log", "orders-2026-11-30.log"], 1),
        (["orders.1.log", "orders.2.log"], 1),
    ],
)
def test_numbered_logs_are_those_of_pods_if_there_is_none_that_is_being_written(
    tmp_path: Path, files: list[str], logs: int
) -> None:
    """The pods of a StatefulSet beside each other; a rotation leaves the name without a number in place."""
    for name in files:
        (tmp_path / name).touch()
    assert len(find_logs([str(tmp_path)])) == logs
