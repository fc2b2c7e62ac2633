"""`groupstorm assign`: answers in order, wrong lines named, earlier answers kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from groupstorm.assignors.cases import answers
from groupstorm.assignors.userdata import decode_assignment
from groupstorm.assignors.userdata.sticky import decode_epoch
from groupstorm.problems import InputError
from tests.assignors.groups import assign_case
from tests.processes import run_process

CASE: dict[str, Any] = {
    "id": 1,
    "assignor": "range",
    "topics": {"t": {"partitions": 2}},
    "members": [{"id": "b", "topics": ["t"]}, {"id": "a", "topics": ["t"]}],
}
MEMBER = {"id": "a", "topics": ["t"]}
JOINING = {"assignor": "stream-join-sticky"}


def run(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_process(
        [sys.executable, "-m", "groupstorm", "assign", *arguments],
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_answers_come_before_the_line_that_is_no_case() -> None:
    good = json.dumps(CASE)
    done = run(f"{good}\n{good}\nnot json\n{good}\n")
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr.startswith("groupstorm: line 3: expected a case")
    assert len(done.stderr.splitlines()) == 1


def test_members_in_the_order_of_the_case(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(CASE) + "\n\n", encoding="utf-8")
    done = run("", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{"id": 1, "assignment": {"b": [["t", 1]], "a": [["t", 0]]}}\n'


@pytest.mark.slow
def test_other_modes_and_missing_files_are_refused() -> None:
    for arguments, told in (
        (["--mode", "streams", "--plug-in", "a:b"], "--plug-in a:b: expected --mode consumer"),
        (["--mode", "server", "--plug-in", "a:b"], "--plug-in a:b: expected --mode consumer"),
        (["no-such-file.jsonl"], "no-such-file.jsonl: expected a file of cases"),
    ):
        done = run("", *arguments)
        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr


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
        ({"members": [MEMBER | {"owned": [["t"]]}]}, 'field members.0.owned.0: ["t"]: expected [topic, part'),
        ({"members": [MEMBER | {"userdata_hex": "xyz"}]}, "bytes in hexadecimal"),
        ({"members": [MEMBER | {"generation": 2**31}]}, "an integer from -2147483648 to 2147483647"),
        (
            {"assignor": "optimal-sticky", "protocol": "lazy"},
            'protocol: "lazy": expected one of eager, cooperative',
        ),
        ({"assignor": "two-phase-sticky/pseudo"}, "'two-phase-sticky/pseudo': did you mean two-phase-sticky"),
        (
            JOINING | {"members": [MEMBER | {"userdata_partitions": 3}]},
            "userdata_partitions: 3: expected a list",
        ),
        (
            JOINING | {"members": [MEMBER | {"userdata_partitions": ["x"]}]},
            'partitions.0: "x": expected an integer',
        ),
        (
            JOINING | {"members": [MEMBER | {"userdata_epoch": "3"}]},
            'userdata_epoch: "3": expected an integer',
        ),
        ({"order": "random"}, "one of java-hash, sorted"),
        ({"bug_compat": "yes"}, 'field bug_compat: "yes": expected true or false'),
        ({"version": -1}, "field version: -1: expected an integer from 0"),
        ({"id": ...}, "field id: expected one"),
    ],
)
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


def test_bytes_are_the_assignment() -> None:
    (text,) = answers([json.dumps(CASE | {"emit_bytes": True}).encode()])
    answer = json.loads(text)
    for member, partitions in answer["assignment"].items():
        data = bytes.fromhex(answer["bytes"][member])
        assert [list(tp) for tp in decode_assignment(data).partitions] == partitions
        assert data[:2] == b"\x00\x03"


def test_a_version_drops_what_it_lacks() -> None:
    """On version 0 bytes there are no owned partitions: nothing is sticky without user data."""
    member = MEMBER | {"owned": [["t", 1]], "generation": 3}
    case = CASE | {"assignor": "cooperative-sticky", "members": [MEMBER | {"id": "b"}, member]}
    with_version = [{**case, "version": 0}, {**case, "version": 3}]
    dropped, kept = (json.loads(text) for text in answers(json.dumps(one).encode() for one in with_version))
    assert (dropped["max_generation"], dropped["assignment"]["a"]) == (-1, [["t", 0]])
    assert (kept["max_generation"], kept["assignment"]["a"]) == (3, [["t", 1]])


def test_sorted_order_visits_members_by_id() -> None:
    """Three of four keep their second partition: the first three by id, or the first three by hash."""
    owners = ["a", "b", "c", "p"]
    order: dict[str, list[str]] = {}
    for chosen in ("java-hash", "sorted"):
        members = [
            {"id": name, "topics": ["t"], "owned": [["t", 2 * n], ["t", 2 * n + 1]], "generation": 1}
            for n, name in enumerate(owners)
        ]
        case = {
            "id": 1,
            "assignor": "cooperative-sticky",
            "topics": {"t": {"partitions": 8}},
            "members": [*members[::-1], {"id": "é", "topics": ["t"], "generation": -1}],
            "order": chosen,
        }
        (text,) = answers([json.dumps(case).encode()])
        assignment = json.loads(text)["assignment"]
        order[chosen] = [name for name in owners if len(assignment[name]) == 2]
    assert order["sorted"] == ["a", "b", "c"]
    assert order["java-hash"] == ["a", "b", "p"]  # "p" is in the first bucket


def test_plug_ins_are_named_on_the_command_line() -> None:
    name = "tests.assignors.test_registry:EverythingToTheFirst"
    (text,) = answers([json.dumps(CASE | {"assignor": name}).encode()], [name])
    assert json.loads(text) == {"id": 1, "assignment": {"b": [], "a": [["t", 0], ["t", 1]]}}


# --- the documents' assignors -----------------------------------------------------------------------

OWNER = {"id": "a", "topics": ["t"], "owned": [["t", 0], ["t", 1]], "generation": 3}
NEWCOMER = {"id": "b", "topics": ["t"]}
OWNED: dict[str, Any] = {"id": 7, "topics": {"t": {"partitions": 2}}, "members": [OWNER, NEWCOMER]}


@pytest.mark.parametrize(
    ("assignor", "protocol", "handed_to_b"),
    [
        ("constrained-cooperative-sticky", None, []),
        ("constrained-cooperative-sticky", "cooperative", []),
        ("constrained-cooperative-sticky", "eager", [["t", 1]]),
        ("two-phase-sticky", None, [["t", 1]]),
        ("optimal-sticky", None, [["t", 1]]),
        ("optimal-sticky", "cooperative", []),
        ("optimal-sticky/cooperative", None, []),
    ],
)
def test_the_protocol_decides_whether_what_moves_is_withheld(
    assignor: str, protocol: str | None, handed_to_b: list
) -> None:
    found = assign_case(OWNED | {"assignor": assignor, "protocol": protocol})
    assert found == {"id": 7, "assignment": {"a": [["t", 0]], "b": handed_to_b}}


@pytest.mark.parametrize("version", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("assignor", ["two-phase-sticky", "optimal-sticky"])
def test_an_eager_members_user_data_survives_every_version(assignor: str, version: int | None) -> None:
    """It owns nothing by the time it joins, and below version 1 there is no owned list at all."""
    told = {"id": "b", "topics": ["t"], "userdata_owned": [["t", 0]], "userdata_generation": 3}
    case = OWNED | {"assignor": assignor, "members": [{"id": "a", "topics": ["t"]}, told], "version": version}
    assert assign_case(case)["assignment"] == {"a": [["t", 1]], "b": [["t", 0]]}


@pytest.mark.parametrize("version", [None, 0, 3])
def test_stream_join_user_data_and_epoch(version: int | None) -> None:
    members = [
        {"id": "a", "topics": ["t", "u"]},
        {"id": "b", "topics": ["t", "u"], "userdata_partitions": [0], "userdata_epoch": 3},
    ]
    topics = {"t": {"partitions": 2}, "u": {"partitions": 2}}
    case = {"assignor": "stream-join-sticky", "topics": topics, "members": members, "version": version}
    found = assign_case(case | {"emit_bytes": True})
    assert found["assignment"] == {"a": [["t", 1], ["u", 1]], "b": [["t", 0], ["u", 0]]}
    assert found["epoch"] == 4
    for member, partitions in found["assignment"].items():
        sent = decode_assignment(bytes.fromhex(found["bytes"][member]))
        assert [list(tp) for tp in sent.partitions] == partitions
        assert decode_epoch(sent.user_data) == 4


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


def test_fields_of_others_are_passed_over() -> None:
    member = OWNER | {"userdata_partitions": "no list", "userdata_epoch": None}
    case = OWNED | {"assignor": "range", "members": [member], "protocol": "neither"}
    assert assign_case(case)["assignment"] == {"a": [["t", 0], ["t", 1]]}


@pytest.mark.parametrize(
    "assignor",
    [
        "optimal-sticky",
        "constrained-cooperative-sticky",
        "two-phase-sticky",
        "two-phase-sticky/pseudo-code",
        "two-phase-sticky/java-sketch",
        "stream-join-sticky",
    ],
)
@pytest.mark.parametrize(
    "member",
    [
        {"userdata_hex": "ff" * 40},
        {"userdata_hex": "7fffffff"},
        {"userdata_hex": ""},
        {"topics": []},
        {"topics": ["t", "t"]},
        {"topics": ["empty"]},
        {"owned": [["t", 0], ["t", 0], ["t", -1], ["t", 99], ["gone", 0]], "generation": -7},
        {"generation": 2**31 - 1, "owned": [["t", 0]]},
    ],
)
def test_odd_members_cost_nobody_a_partition(assignor: str, member: dict[str, Any]) -> None:
    """All of t beside a plain member, each partition once; only the sketches may forget some."""
    members = [{"id": "odd", "topics": ["t"]} | member, {"id": "plain", "topics": ["t"]}]
    topics = {"t": {"partitions": 3}, "empty": {"partitions": 0}}
    found = assign_case({"assignor": assignor, "topics": topics, "members": members, "protocol": "eager"})
    given = sorted(p for mine in found["assignment"].values() for _, p in mine)
    assert given == [0, 1, 2] or ("/" in assignor and len(set(given)) == len(given))
    assert all(t in dict.fromkeys(members[0]["topics"]) for t, _ in found["assignment"]["odd"])
