"""Against Kafka's own classes, where there are Java and Maven to run them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.streams import (
    AssignmentInfo,
    HostInfo,
    SubscriptionInfo,
    TaskId,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
    encode_subscription_info,
)
from tests.oracle.assignors.differential import compare
from tests.oracle.assignors.report import transcript
from tests.oracle.build import Built
from tests.oracle.jvm import Jvm
from tests.oracle.running import as_line
from tests.oracle.streams import golden
from tests.oracle.streams.comparison import answer, difference
from tests.oracle.streams.side import STREAMS
from tests.soaking import sizes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kafka(built: Built) -> Iterator[Jvm]:
    with Jvm(built, "streams") as jvm:
        yield jvm


@pytest.fixture(scope="module")
def user_data(built: Built) -> Iterator[Jvm]:
    with Jvm(built, "streams-user-data") as jvm:
        yield jvm


@pytest.mark.parametrize("count", sizes(150, 10_000, within_minutes=60))
def test_random_cases_are_answered_as_kafka_answers_them(kafka: Jvm, count: int) -> None:
    outcome = compare(STREAMS, kafka.ask, STREAMS.random_cases(3, count), shown_max=1)
    assert outcome.different == [], "\n\n".join(transcript(*found) for found in outcome.found)
    assert outcome.count == count


@pytest.mark.soak
def test_the_golden_answers_are_kafkas(kafka: Jvm) -> None:
    for case, kafkas in golden.read():
        assert json.loads(kafka.ask(as_line(case))) == kafkas, case["id"]


def test_a_wrong_answer_is_found(kafka: Jvm) -> None:
    case = next(STREAMS.random_cases(3, 1))
    kafkas, ours = json.loads(kafka.ask(as_line(case))), answer(case)
    assert difference(case, kafkas, ours) == ""
    ours["probing"] = not ours["probing"]
    assert difference(case, kafkas, ours) == "probing: not Kafka's"


def _task(generator: random.Random, named: bool) -> TaskId:
    name = generator.choice(("top", "élan")) if named else ""
    return TaskId(name, generator.randrange(5), generator.randrange(300))


def _tasks(generator: random.Random, version: int) -> list[TaskId]:
    named = version >= 10 and generator.random() < 0.3
    return list(dict.fromkeys(_task(generator, named) for _ in range(generator.randrange(6))))


@pytest.mark.parametrize("version", range(1, 12))
def test_kafka_reads_our_subscriptions_and_we_read_kafkas(user_data: Jvm, version: int) -> None:
    generator = random.Random(version)
    for _ in range(40):
        sums = {task: generator.choice((-2, -3, 0, 1 << 40)) for task in _tasks(generator, version)}
        tags = {f"k{number}é": "v漢" for number in range(generator.randrange(3))}
        process = UUID(int=generator.getrandbits(128))
        endpoint = generator.choice((None, "host:80"))
        latest = 11 if version >= 3 else -1
        info = SubscriptionInfo(version, latest, process, endpoint, sums, 3, generator.randrange(5), tags)
        data = encode_subscription_info(info)
        read = json.loads(user_data.ask(as_line({"subscription": data.hex()})))
        ours = decode_subscription_info(data)
        assert read["version"] == version
        assert (read["latest"], read["process"]) == (ours.latest_supported_version, str(process))
        assert (read["endpoint"], read["error_code"]) == (ours.endpoint, ours.error_code)
        assert read["offset_sums"] == {str(task): offset for task, offset in ours.offset_sums.items()}
        assert read["tags"] == ours.client_tags
        back = decode_subscription_info(bytes.fromhex(read["bytes"]))
        assert back == ours


def _partitions(generator: random.Random) -> list[TopicPartition]:
    drawn = [
        (generator.choice(("in", "töpic")), generator.randrange(9)) for _ in range(generator.randrange(4))
    ]
    return sorted(TopicPartition(*each) for each in set(drawn))


def _told(parts: Any) -> list[str]:
    return sorted(str(part) for part in parts)


def _hosts(hosts: Any) -> dict[str, list[str]]:
    return {f"{host.host}:{host.port}": _told(parts) for host, parts in hosts.items()}


@pytest.mark.parametrize("version", range(1, 12))
def test_kafka_reads_our_assignments_and_we_read_kafkas(user_data: Jvm, version: int) -> None:
    generator = random.Random(version)
    for _ in range(40):
        standby = {task: _partitions(generator) for task in _tasks(generator, version)}
        hosts = {HostInfo("hö", number): _partitions(generator) for number in range(generator.randrange(3))}
        info = AssignmentInfo(
            version,
            11,
            _tasks(generator, version),
            standby,
            hosts,
            {host: _partitions(generator) for host in hosts},
            generator.randrange(5),
            generator.getrandbits(40),
        )
        data = encode_assignment_info(info)
        read = json.loads(user_data.ask(as_line({"assignment": data.hex()})))
        ours = decode_assignment_info(data)
        assert (read["version"], read["common"]) == (version, ours.commonly_supported_version)
        assert (read["error_code"], read["next_rebalance_ms"]) == (ours.error_code, ours.next_rebalance_ms)
        assert read["active"] == [str(task) for task in ours.active]
        assert read["standby"] == {str(task): _told(parts) for task, parts in ours.standby.items()}
        assert (read["hosts"], read["standby_hosts"]) == (_hosts(ours.hosts), _hosts(ours.standby_hosts))
        back = decode_assignment_info(bytes.fromhex(read["bytes"]))
        assert (back.active, set(back.standby)) == (ours.active, set(ours.standby))
        assert _hosts(back.hosts) == _hosts(ours.hosts)
