"""Clients that join again as another member, that may not read their group, and franz-go in KIP-848."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.explain.explaining import names
from tests.explain.test_first_answers import answer, printed
from tests.imports.importing import rows

ID = "mailer-{0}1111111-2222-3333-4444-555555555555"


def of_kafkajs(second: int, message: str, **more: object) -> str:
    said = {"timestamp": f"2026-03-04T10:00:{second:02}.000Z", "logger": "kafkajs", "message": message}
    return json.dumps({**said, "groupId": "g", **more}) + "\n"


def joined(second: int, number: int) -> str:
    more = {"memberId": ID.format(number), "memberAssignment": {"t": [0, 1]}}
    return of_kafkajs(second, "[ConsumerGroup] Consumer has joined the group", **more)


def test_a_member_of_kafkajs_is_one_under_all_its_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says that it is out, another that it crashed; it was without partitions from then on."""
    out = "[Runner] The coordinator is not aware of this member, re-joining the group"
    log = joined(0, 1) + of_kafkajs(20, out, memberId=ID.format(1)) + joined(23, 2)
    log += of_kafkajs(40, "[Consumer] Crash: KafkaJSNumberOfRetriesExceeded: Connection timeout") + joined(
        50, 3
    )
    text = printed(answer(tmp_path, log), capsys)
    assert {row["member"] for row in rows(tmp_path) if "member" in row} == {ID.format(1)}
    assert "for 0 s" not in text


def of_franz_go(second: int, message: str) -> str:
    return f"2026-11-20T10:00:{second:02}Z [INFO] {message}\n"


def test_franz_go_in_a_consumer_group(tmp_path: Path) -> None:
    """Its lines name its epochs, and that it left."""
    member = "group: g, member_id: x1m2aZkQRt2hJb8nFv0e3w=="
    first = "consumer group initial heartbeat received assignment"
    then = (
        "consumer group heartbeat detected an updated assignment; exited heartbeat loop to assign & reenter"
    )
    answer(
        tmp_path,
        of_franz_go(1, f"{first}; {member}, generation: 3, now_assigned: map[]")
        + of_franz_go(1, "new group session begun; group: g, added: t[0 1], lost: ")
        + of_franz_go(9, f"{then}ing; {member}, generation: 4, now_assigned: map[t:[0]]")
        + of_franz_go(9, "new group session begun; group: g, added: , lost: t[1]")
        + of_franz_go(30, f"leaving next-gen group; {member}, instance_id: <nil>"),
    )
    assert [row["generation"] for row in rows(tmp_path, "partitions_revoked")] == [4]
    assert rows(tmp_path, "partitions_assigned")[0]["generation"] == 3
    assert len(rows(tmp_path, "member_closed")) == 1


KAFKA_PYTHON = "".join(
    f"2026-03-04 10:00:{second},140 - kafka.coordinator - ERROR - Group Coordinator Request failed: "
    "[Error 30] GroupAuthorizationFailedError\n"
    for second in (10, 20)
)
JAVA = (
    "2026-03-04 10:00:00.101  INFO 1 --- [C-1] o.a.k.c.c.internals.ConsumerCoordinator : [Consumer "
    "clientId=c-1, groupId=g] FindCoordinator request hit fatal exception\n"
    "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access group: g\n"
)


@pytest.mark.parametrize("log", [KAFKA_PYTHON, JAVA], ids=["kafka-python", "java"])
def test_a_member_that_may_not_read_its_group(
    tmp_path: Path, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It never had a coordinator that it could lose, whose log would say nothing of it."""
    one = answer(tmp_path, log)
    assert names(one) == ["join-refused"]
    text = " ".join(printed(one, capsys).split())
    assert "was refused its coordinator" in text
    assert "GROUP_AUTHORIZATION_FAILED (The client may not read with this group id)." in text
    assert "add the log of the group's coordinator" not in text
