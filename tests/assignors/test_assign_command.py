"""`groupstorm assign`: answers in order, wrong lines named, earlier answers kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groupstorm.assignors.cases import answers
from groupstorm.problems import InputError
from tests.assignors.groups import assign_case
from tests.command import groupstorm, refused

CASE: dict[str, Any] = {
    "id": 1,
    "assignor": "range",
    "topics": {"t": {"partitions": 2}},
    "members": [{"id": "b", "topics": ["t"]}, {"id": "a", "topics": ["t"]}],
}
MEMBER = {"id": "a", "topics": ["t"]}
JOINING = {"assignor": "stream-join-sticky"}


def test_answers_come_before_the_line_that_is_no_case() -> None:
    good = json.dumps(CASE)
    done = groupstorm("assign", given=f"{good}\n{good}\nnot json\n{good}\n")
    assert refused(done).startswith("groupstorm: line 3: expected a case")
    assert len(done.stdout.splitlines()) == 2


def test_members_in_the_order_of_the_case(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(CASE) + "\n\n", encoding="utf-8")
    done = groupstorm("assign", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{"id": 1, "assignment": {"b": [["t", 1]], "a": [["t", 0]]}}\n'


@pytest.mark.slow
def test_other_modes_and_missing_files_are_refused() -> None:
    for arguments, told in (
        (["--mode", "streams", "--plug-in", "a:b"], "--plug-in a:b: expected --mode consumer"),
        (["--mode", "server", "--plug-in", "a:b"], "--plug-in a:b: expected --mode consumer"),
        (["no-such-file.jsonl"], "no-such-file.jsonl: expected a file of cases"),
    ):
        assert told in refused(groupstorm("assign", *arguments))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"assignor": "rang"}, "field assignor: assignor 'rang': did you mean range"),
        ({"assignor": "os:getcwd"}, "a file cannot name code"),
        ({"assignor": 7}, "field assignor: 7: expected a string"),
        ({"topics": []}, "field topics: []: expected a JSON object"),
        ({"topics": {"t": {"partitions": -1}}}, "field topics.t.partitions: -1: expected an integer from 0"),
        ({"topics": {"t": {"partitions": True}}}, "field topics.t.partitions: true: expected an integer"),
        ({"topics": {"t": {"partitions": 2, "racks": [["r1"]]}}}, "one list for each of the 2 partitions"),
        ({"topics": {"t": {"partitions": 2**31 - 1}}}, "at most 5000000 partitions in all"),
        ({"members": {}}, "field members: {}: expected a list"),
        ({"members": [{"topics": []}]}, "field members.0.id: null: expected a value"),
        ({"members": [MEMBER, MEMBER]}, "expected an id of its own for each"),
        ({"members": [MEMBER | {"owned": [["t"]]}]}, 'field members.0.owned.0: ["t"]: expected [topic, part'),
        ({"members": [MEMBER | {"userdata_hex": "xyz"}]}, "bytes in hexadecimal"),
        ({"members": [MEMBER | {"generation": 2**31}]}, "an integer from -2147483648 to 2147483647"),
        ({"assignor": "optimal-sticky", "protocol": "lazy"},
         'protocol: "lazy": expected one of eager, cooperative'),
        ({"assignor": "two-phase-sticky/pseudo"}, "'two-phase-sticky/pseudo': did you mean two-phase-sticky"),
        (JOINING | {"members": [MEMBER | {"userdata_partitions": 3}]},
         "userdata_partitions: 3: expected a list"),
        (JOINING | {"members": [MEMBER | {"userdata_partitions": ["x"]}]},
         'partitions.0: "x": expected an integer'),
        (JOINING | {"members": [MEMBER | {"userdata_epoch": "3"}]},
         'userdata_epoch: "3": expected an integer'),
        ({"order": "random"}, "one of java-hash, sorted"),
        ({"bug_compat": "yes"}, 'field bug_compat: "yes": expected true or false'),
        ({"version": -1}, "field version: -1: expected an integer from 0"),
        ({"id": ...}, "field id: expected one"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_value(change: dict[str, Any], told: str) -> None:
    case = {name: value for name, value in (CASE | change).items() if value is not ...}
    with pytest.raises(InputError) as raised:
        list(answers([json.dumps(case).encode()]))
    assert str(raised.value).startswith("line 1: ")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("line", [b"[]", b"3", b"\xff\xfe", b"[" * 100_000, b'{"id": 1', b"null"])
def test_a_line_that_is_no_object(line: bytes) -> None:
    with pytest.raises(InputError, match=r"^line 1: "):
        list(answers([line]))


def test_a_version_drops_what_it_lacks() -> None:
    """On version 0 bytes there are no owned partitions: nothing is sticky without user data."""
    member = MEMBER | {"owned": [["t", 1]], "generation": 3}
    case = CASE | {"assignor": "cooperative-sticky", "members": [MEMBER | {"id": "b"}, member]}
    with_version = [{**case, "version": 0}, {**case, "version": 3}]
    dropped, kept = (json.loads(text) for text in answers(json.dumps(one).encode() for one in with_version))
    assert (dropped["max_generation"], dropped["assignment"]["a"]) == (-1, [["t", 0]])
    assert (kept["max_generation"], kept["assignment"]["a"]) == (3, [["t", 1]])


def test_plug_ins_are_named_on_the_command_line() -> None:
    name = "tests.assignors.test_registry:EverythingToTheFirst"
    (text,) = answers([json.dumps(CASE | {"assignor": name}).encode()], [name])
    assert json.loads(text) == {"id": 1, "assignment": {"b": [], "a": [["t", 0], ["t", 1]]}}


def test_a_plug_in_that_is_not_there_is_refused_also_if_no_case_names_it() -> None:
    with pytest.raises(InputError, match=r"'nowhere:mine': expected a plug-in to import: ModuleNotFound"):
        answers([json.dumps(CASE).encode()], ["nowhere:mine"])


def test_stream_join_defaults() -> None:
    """An epoch not told is the generation; owned partitions tell their numbers; nothing told is nothing."""
    members: list[dict[str, Any]] = [
        {"id": "a", "topics": ["t"], "userdata_partitions": [1], "generation": 5},
        {"id": "b", "topics": ["t"], "userdata_owned": [["t", 0], ["t", 1]], "userdata_generation": 4},
        {"id": "c", "topics": ["t"], "userdata_partitions": [2]},
        {"id": "d", "topics": ["t"], "userdata_hex": "00"},
    ]
    case = {"assignor": "stream-join-sticky", "topics": {"t": {"partitions": 4}}, "members": members}
    found = assign_case(case)
    assert found["assignment"] == {"a": [["t", 1]], "b": [["t", 0]], "c": [["t", 2]], "d": [["t", 3]]}
    assert found["epoch"] == 6
