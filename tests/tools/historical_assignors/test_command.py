"""`./dev assignor-history` as a builder meets it: the list, a story, JSON, a file, bad input."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command import refused, tool

TRIO = """
assignor: two-phase-sticky/java-sketch
topics: {t: 4}
steps:
  - {do: join, member: a, topics: [t]}
  - {do: join, member: b, topics: [t]}
  - {do: join, member: c, topics: [t]}
"""


def test_ours_are_listed(tmp_path: Path) -> None:
    table = tool("historical_assignors", cwd=tmp_path)
    assert table.returncode == 0, table.stderr
    assert "kafka-12984" in table.stdout
    listed = json.loads(tool("historical_assignors", "--json", cwd=tmp_path).stdout)
    assert {"name": "kafka-15170", "before": "3.7.0", "after": "3.7.1"}.items() <= {
        name: value for story in listed if story["name"] == "kafka-15170" for name, value in story.items()
    }.items()


def test_a_bug_before_and_after(tmp_path: Path) -> None:
    told = tool("historical_assignors", "kafka-12984", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    before, _, after = told.stdout.partition("after: cooperative-sticky of Kafka 2.8.1")
    assert "before: cooperative-sticky of Kafka 2.8.0, from a recording" in before
    assert "  => t-0 is given to b and to a\n" in before
    assert "  => no partition twice: held\n" in after


def test_the_same_history_with_another_assignor_as_json(tmp_path: Path) -> None:
    result = tool(
        "historical_assignors",
        "kafka-14639",
        "--assignor",
        "optimal-sticky/cooperative",
        "--json",
        cwd=tmp_path,
    )
    (side,) = json.loads(result.stdout)["sides"]
    assert side["broken"] is None
    last = side["changes"][-1]
    assert last["step"] == {"do": "join", "member": "b", "topics": ["t"]}
    assert last["rounds"][-1]["assigned"] == {"a": [["t", 0]], "b": [["t", 1]]}


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "trio.yaml").write_text(TRIO, "utf-8")
    told = tool("historical_assignors", "trio.yaml", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "  => members with equal subscriptions have 2/2/0: more than 1 apart\n" in told.stdout


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(TRIO.replace("t: 4", "t: many"), "utf-8")
    (tmp_path / "copy.yaml").write_text(TRIO.replace("two-phase-sticky/java-sketch", "sticky\nbefore: 2.2.2"))
    for arguments, complaint in (
        (("kafka-1",), "neither a history of ours"),
        (("bad.yaml",), 'bad.yaml: field topics.t: "many": expected an integer'),
        (("copy.yaml",), "copy.yaml: fields before and after: expected neither"),
        (("kafka-12984", "--assignor", "nobody"), "assignor 'nobody'"),
    ):
        assert complaint in refused(tool("historical_assignors", *arguments, cwd=tmp_path))
