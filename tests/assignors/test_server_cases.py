"""`groupstorm assign --mode server`: Kafka's answers, and one line for a line that is no case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groupstorm.assignors.server.cases import answers
from groupstorm.problems import InputError
from tests.command import groupstorm

_GOLDEN = Path(__file__).parent / "golden"
_ID = "aYmZtlZlGqShek9T80XsSg"
_OTHER_ID = "XHjxZ2HO7OO7lf7WxTwAow"
CASE: dict[str, Any] = {
    "id": 1,
    "assignor": "uniform",
    "topics": {"t": {"partitions": 3, "id": _ID}},
    "members": [{"id": "b", "topics": ["t"], "target": {"t": [2, 1]}}, {"id": "a", "topics": ["t"]}],
}
MEMBER = {"id": "a", "topics": ["t"]}


def _answer(**change: Any) -> Any:
    (text,) = answers([json.dumps(CASE | change).encode()])
    return json.loads(text)


def test_the_command_answers_as_kafka_did() -> None:
    """Forty cases of both assignors, answered by Kafka 4.3.1."""
    done = groupstorm("assign", "--mode", "server", str(_GOLDEN / "assign-server.cases.jsonl"))
    assert (done.returncode, done.stderr) == (0, "")
    kafkas = (_GOLDEN / "assign-server.kafka-4.3.1.jsonl").read_bytes().splitlines()
    assert [json.loads(line) for line in done.stdout.splitlines()] == [json.loads(line) for line in kafkas]


def test_records_tell_what_the_broker_writes() -> None:
    """Nothing for the member whose target stays."""
    assert _answer(emit_records=True)["records"] == {"a": [["t", [0]]]}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"assignor": "sticky"}, "field assignor: assignor 'sticky': expected one of uniform, range"),
        ({"assignor": ...}, "field assignor: null: expected a value"),
        ({"topics": {"t": {"partitions": 2}}}, "field topics.t.id: null: expected a value"),
        ({"topics": {"t": {"partitions": 2, "id": "t"}}}, 'field topics.t.id: "t": expected a Uuid'),
        ({"topics": {"t": {"partitions": 2, "id": f"{_ID}="}}}, "expected a Uuid"),
        ({"topics": {"t": {"partitions": 2, "id": _ID.replace("a", "+")}}}, "expected a Uuid"),
        ({"topics": {"t": {"partitions": 2**31 - 1, "id": _ID}}}, "at most 5000000 partitions in all"),
        (
            {"topics": {name: {"partitions": 1, "id": _ID} for name in "tu"}},
            "field topics.u.id: " + f'"{_ID}": expected an id of its own',
        ),
        ({"members": [{"id": "a"}]}, "field members.0.topics: null: expected a value"),
        ({"members": [MEMBER | {"rack": 3}]}, "field members.0.rack: 3: expected a string"),
        ({"members": [MEMBER | {"instance": 3}]}, "field members.0.instance: 3: expected a string"),
        ({"members": [MEMBER | {"target": [["t", 0]]}]}, "field members.0.target: "),
        ({"members": [MEMBER | {"target": {"t": 0}}]}, "field members.0.target.t: 0: expected a list"),
        ({"members": [MEMBER | {"target": {"gone": ["0"]}}]}, 'target.gone.0: "0": expected an integer'),
        ({"emit_records": 1}, "field emit_records: 1: expected true or false"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(change: dict[str, Any], told: str) -> None:
    case = {name: value for name, value in (CASE | change).items() if value is not ...}
    with pytest.raises(InputError) as raised:
        list(answers([b"", json.dumps(case).encode()]))
    assert str(raised.value).startswith("line 2: ")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_padded_ids_are_the_same_ids() -> None:
    topics = {"t": {"partitions": 3, "id": f"{_ID}=="}, "u": {"partitions": 1, "id": _OTHER_ID}}
    assert _answer(topics=topics) == _answer()
