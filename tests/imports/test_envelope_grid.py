"""Lines of a broker, of Java's client and of librdkafka say the same in every form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from groupstorm.imports.lines import find_logs
from groupstorm.imports.parser import LogParser
from groupstorm.imports.source import Observation
from tests.imports.envelope_forms import FORMS, Line
from tests.imports.importing import generation

BEGAN = datetime(2026, 3, 4, 10, 0, 34, 371_000)
MEMBER = "c-1-11111111-1111-1111-1111-111111111111"
GENERATION = generation(4, MEMBER)
ROUND = (
    "[GroupCoordinator 0]: Preparing to rebalance group pay in state PreparingRebalance with old generation "
    f"3 (__consumer_offsets-46) (reason: removing member {MEMBER} on heartbeat expiration)",
    "[GroupCoordinator 0]: Stabilized group pay generation 4 (__consumer_offsets-46) with 2 members",
    f"[GroupCoordinator 0]: Assignment received from leader {MEMBER} for group pay for generation 4. "
    "The group has 2 members, 0 of which are static.",
)
JAVA = tuple(
    "[Consumer clientId=c-1, groupId=pay] " + said
    for said in (
        "(Re-)joining group",
        f"Successfully joined group with generation {GENERATION}",
        f"Successfully synced group in generation {GENERATION}",
        "Adding newly assigned partitions: t-0, t-1",
    )
)
RDKAFKA = tuple(
    "rdkafka#consumer-1| [thrd:main]: " + said
    for said in (
        'Group "pay": join with 1 subscribed topic(s)',
        'Group "pay": updating member id "(not-set)" -> "rdkafka-11111111-1111-1111-1111-111111111111"',
        'Group "pay" changed join state wait-join -> wait-metadata (state up)',
        'Group "pay": add t [0]',
    )
)


def lines_of(messages: Iterable[str], front: str, behind: str = "") -> list[Line]:
    times = (BEGAN + timedelta(milliseconds=1_117 * n) for n in range(10))
    return [
        Line(
            at,
            front.format(iso=at.isoformat(" ", "milliseconds").replace(".", ","), epoch=_epoch(at))
            + said
            + behind,
            said,
        )
        for at, said in zip(times, messages, strict=False)
    ]


def _epoch(at: datetime) -> str:
    return f"{(at - datetime(1970, 1, 1)).total_seconds():.3f}"


#: What stands behind the group of these lines would be read as part of its name.
AIOKAFKA = (
    "Heartbeat failed for group pay because it is rebalancing",
    "Revoking previously assigned partitions {TopicPartition(topic='t', partition=0)} for group pay",
    "(Re-)joining group pay",
    "Joined group 'pay' (generation 3) with member_id aiokafka-1",
)
#: Of workers, of KIP-848, of refusals: none of them is among the lines above.
OTHERS = (
    f"[GroupCoordinator id=0 topic=__consumer_offsets partition=8] [GroupId pay] Member {MEMBER} joins the "
    "consumer group using the consumer protocol.",
    f"[Consumer clientId=c-1, groupId=pay] Member {MEMBER} with epoch 4 transitioned from RECONCILING to "
    "ACKNOWLEDGING.",
    "[Worker clientId=w-1, groupId=connect] Joined group at generation 4 with protocol version 2 and got "
    "assignment: Assignment{error=0, leader='w-1', leaderUrl='http://w-1:8083/', offset=7, connectorIds=[a], "
    "taskIds=[a-0, a-1], revokedConnectorIds=[], revokedTaskIds=[], delay=0} with rebalance delay: 0",
    "[Consumer clientId=c-1, groupId=pay] Offset commit failed on partition t-0 at offset 7: The coordinator "
    "is not aware of this member.",
    "stream-client [pay-11111111-1111-1111-1111-111111111111] State transition from PENDING_SHUTDOWN to "
    "NOT_RUNNING",
)
SOURCES = {
    "broker": lines_of(ROUND, "[{iso}] INFO ", " (kafka.coordinator.group.GroupCoordinator)"),
    "java": lines_of(
        JAVA, "[{iso}] INFO ", " (org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"
    ),
    "librdkafka": lines_of(RDKAFKA, "%7|{epoch}|CGRPJOIN|"),
    "others": lines_of(OTHERS, "[{iso}] INFO ", " (org.apache.kafka.Any)"),
    "aiokafka": lines_of(AIOKAFKA, "{iso} INFO aiokafka.consumer.group_coordinator: "),
}


def said(folder: Path, text: str) -> list[Observation]:
    (folder / "app.log").write_text(text + "\n", "utf-8")
    (log,) = find_logs([str(folder / "app.log")])
    parser = LogParser(log, 0)
    named_after_pods = ("pod", "client", "process")
    found = [
        one._replace(
            line=0, fields={name: one.fields[name] for name in one.fields if name not in named_after_pods}
        )
        for one in parser.observations()
    ]
    assert parser.not_understood == 0
    assert parser.clock.lacks == ""
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_form(source: str, form: str, tmp_path: Path) -> None:
    lines = SOURCES[source]
    plain = said(tmp_path, "\n".join(line.text for line in lines))
    assert len(plain) >= 3
    assert said(tmp_path, "\n".join(FORMS[form](line) for line in lines)) == plain


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("form", [name for name in FORMS if "\n" not in FORMS[name](SOURCES["java"][1])])
def test_a_form_newest_first(source: str, form: str, tmp_path: Path) -> None:
    lines = SOURCES[source]
    plain = said(tmp_path, "\n".join(line.text for line in lines))
    turned = said(tmp_path, "\n".join(FORMS[form](line) for line in reversed(lines)))
    assert sorted(turned) == sorted(plain)


@pytest.mark.parametrize("source", SOURCES)
def test_all_records_of_one_json_value(source: str, tmp_path: Path) -> None:
    lines = SOURCES[source]
    plain = said(tmp_path, "\n".join(line.text for line in lines))
    hits = [{"_source": {"message": line.text, "event": {"original": line.text}}} for line in lines]
    assert said(tmp_path, json.dumps({"hits": {"hits": hits}})) == plain
    assert said(tmp_path, json.dumps([line.text for line in lines])) == plain


@pytest.mark.parametrize("source", ["broker", "java"])
def test_newest_first_within_one_second(source: str, tmp_path: Path) -> None:
    lines = [f"2026-03-04 10:00:34 INFO {line.message}" for line in SOURCES[source]]
    for text, is_newest_first in (("\n".join(lines), False), ("\n".join(reversed(lines)), True)):
        (tmp_path / "app.log").write_text(text)
        (log,) = find_logs([str(tmp_path / "app.log")])
        parser = LogParser(log, 0)
        assert len([*parser.observations()]) == len(lines)
        assert parser.newest_first is is_newest_first
