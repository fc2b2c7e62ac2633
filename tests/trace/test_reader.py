"""One rule for all readers of a trace: what is ignored, what is refused, and the place that is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from groupstorm.cli.commands import app
from groupstorm.problems import InputError
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load
from groupstorm.trace.events.scenario import PartitionsDeleted
from groupstorm.trace.parquet import arrow_schema
from groupstorm.trace.reader import check_version, read_entries, read_rows, read_typed
from groupstorm.trace.rows import typed_row
from groupstorm.trace.schema import VERSION_KEY, Source
from groupstorm.trace.writer import open_writer
from tests.figures.synthetic import trace as synthetic_trace

ROW: dict[str, Any] = {"seq": 0, "time_us": 0, "source": "world", "event": "scenario_ended", "group": "g"}
NEXT = ROW | {"seq": 1, "time_us": 3}


def lines(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"nonsense\n", "line 1: not JSON: Expecting value at column 1"),
        (b'{"seq": "\x01"}\n', "line 1: not JSON: Invalid control character at column 10"),
        (lines(ROW, []), "line 2: not a row of a trace: expected a JSON object"),
        (lines(ROW) + b"\x00\xff\xfe\n", "line 2: not a line of text: invalid start byte"),
        (b"PAR1\x15\x04\x15\x80\x80" * 99, "line 1: not a line of text"),
        (lines(ROW) + b"[" * 100_000, "line 2: not JSON: maximum recursion depth"),
        (lines(ROW) + lines(NEXT)[:30], "line 2: the file ends inside this line: the run that wrote it"),
        (lines(ROW) + lines(NEXT)[:30], "is still writing: head -n 1 "),
        (lines(ROW, {"seq": 1, "time_us": 1}), "line 2: not a row of a trace: row 1 (None): source: None"),
        (
            lines(ROW, NEXT | {"time_us": "soon"}),
            "line 2: not a row of a trace: row 1 (scenario_ended): time_us",
        ),
        (lines(NEXT, NEXT | {"seq": 2, "time_us": 2}), "line 2: not a row of a trace: row 2"),
        (lines(ROW, ROW), "line 2: not a row of a trace: row 0 (scenario_ended): seq: 0: expected"),
        (lines(ROW, NEXT | {"event": "step_taken"}), "row 1 (step_taken): cause: None: expected a text"),
        (
            lines({VERSION_KEY: 3}, ROW),
            "version 3 of the trace schema; this groupstorm reads versions 1 and 2: use the groupstorm that",
        ),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(tmp_path: Path, content: bytes, expected: str) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(read_rows(file))
    assert str(caught.value).startswith(f"{file}: ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_lost_in_the_middle_is_missed(tmp_path: Path) -> None:
    for number, row in ((4, ROW), (5, NEXT), (7, NEXT | {"seq": 9})):
        (tmp_path / f"trace-{number:06}.jsonl").write_bytes(lines(row))
    expected = "the rows between trace-000005.jsonl and trace-000007.jsonl are missing"
    with pytest.raises(InputError, match=expected):
        list(read_rows(tmp_path))
    (tmp_path / "trace-000006.jsonl").write_bytes(lines(NEXT | {"seq": 8}))
    assert len(list(read_rows(tmp_path))) == 4


def test_unknown_columns_and_events_are_ignored_in_lines(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    unknown = NEXT | {"event": "lunch"}
    file.write_bytes(lines(ROW | {"colour": "red", "member": None}, unknown))
    assert list(read_rows(file)) == [ROW, unknown]
    assert [entry is None for _, entry in read_entries(file)] == [False, True]


def test_unknown_columns_are_ignored_in_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")
    from pyarrow import parquet

    file = tmp_path / "trace.parquet"
    schema = arrow_schema().append(pyarrow.field("colour", pyarrow.string()))
    unknown = NEXT | {"event": "lunch", "cause": "noon"}
    for version, accepted in (("1", True), ("2", True), ("3", False)):
        schema = schema.with_metadata({VERSION_KEY: version})
        rows = [ROW | {"colour": "red"}, unknown | {"colour": "blue"}]
        parquet.write_table(pyarrow.Table.from_pylist(rows, schema), file)
        if accepted:
            assert list(read_rows(file)) == [ROW, unknown]
            assert [entry is None for _, entry in read_entries(file)] == [False, True]
            continue
        with pytest.raises(
            InputError, match=f"{file}: version 3 of the trace schema; .* reads versions 1 and 2"
        ):
            list(read_rows(file))
    parquet.write_table(pyarrow.table({"seq": ["one"]}), file)
    with pytest.raises(InputError, match=f"{file}: column seq: string: expected int64"):
        check_version(file)
    file.write_bytes(lines(ROW))
    with pytest.raises(InputError, match=f"{file}: not a Parquet file"):
        list(read_rows(file))


def test_a_list_that_a_row_leaves_out_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_bytes(lines(ROW | {"event": "partitions_deleted"}))
    assert [entry for _, entry in read_entries(file)] == [(0, Source.WORLD, PartitionsDeleted("g", (), ()))]


def test_lines_state_every_version_but_the_first(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"

    def write(version: int) -> str:
        writer = open_writer(tmp_path, "trace", "jsonl", version)
        for row in synthetic_trace(0, actions=1)[:2]:
            writer.add(*row)
        writer.close()
        return file.read_text("utf-8")

    first = write(1)
    assert VERSION_KEY not in first
    file.write_bytes(lines({VERSION_KEY: 1}) + first.encode())
    assert len(list(read_rows(file))) == 2
    assert check_version(file) == 1
    assert write(2) == f'{{"{VERSION_KEY}":2}}\n{first}'
    assert check_version(file) == 2
    assert len(list(read_rows(file))) == 2
    assert write(3) == f'{{"{VERSION_KEY}":3}}\n{first}'
    with pytest.raises(InputError, match="version 3"):
        check_version(file)


def _with_binary(text: bytes) -> bytes:
    return text + b"\x80\x81\n"


def _cut_off(text: bytes) -> bytes:
    return text[:-7]


def _another_version(text: bytes) -> bytes:
    return lines({VERSION_KEY: 7}) + text


def _with_a_column(text: bytes) -> bytes:
    return text.replace(b'{"seq":3,', b'{"seq":3,"colour":"red",')


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    run(load("rolling-deploy").resolve("static", 0, {"members": 2, "partitions": 2}), folder)
    return folder


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_with_binary, r"trace.jsonl: line \d+: not a line of text"),
        (_cut_off, r"trace.jsonl: line \d+: the file ends inside this line"),
        (
            _another_version,
            r"trace.jsonl: version 7 of the trace schema; this groupstorm reads versions 1 and 2",
        ),
        (_with_a_column, None),
    ],
)
@pytest.mark.parametrize("command", [["trace"], ["analyze", "--engine", "local", "--json"], ["replay"]])
def test_every_command_reads_by_the_same_rule(
    tmp_path: Path,
    finished: Path,
    command: list[str],
    change: Callable[[bytes], bytes],
    expected: str | None,
) -> None:
    """`analyze` on Spark: tests/pipeline/test_read.py."""
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    file = folder / "trace.jsonl"
    file.write_bytes(change(file.read_bytes()))
    result = CliRunner().invoke(app, [command[0], str(folder), *command[1:]])
    if expected is None:
        assert result.exit_code == 0, result.output
        return
    assert isinstance(result.exception, InputError)
    with pytest.raises(InputError, match=expected):
        raise result.exception


def test_rows_keep_their_sources(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, "trace", "jsonl")
    rows = synthetic_trace(1)
    for row in rows:
        writer.add(*row)
    writer.close()
    assert [entry for _, entry in read_entries(tmp_path)] == rows
    assert {source for _, source, _ in rows} == set(Source)


@pytest.mark.parametrize("version", [1, 2])
def test_columns_make_the_same_events_as_rows(tmp_path: Path, version: int) -> None:
    """With an optional list that is null and an event that is not known, and in an import with gaps."""
    pyarrow = pytest.importorskip("pyarrow", reason="needs groupstorm[parquet]")
    from pyarrow import parquet

    writer = open_writer(tmp_path, "trace", "jsonl")
    for row in synthetic_trace(1):
        writer.add(*row)
    writer.close()
    rows = [dict(row) for row in read_rows(tmp_path)]
    sync = rows[-1] | {"event": "sync_answered", "member": "m", "member_id": "m-1"}
    added: list[dict[str, Any]] = [{}, {"generation": 1, "partitions": ["t-0"]}, {"event": "new"}]
    if version > 1:
        added.append({"provenance": "observed", "event": "partitions_revoked", "cause": "close"})
    for more in added:
        rows.append(sync | {"seq": rows[-1]["seq"] + 1} | more)
    file = tmp_path / "trace.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows, arrow_schema(version)), file)
    expected = [typed_row(row, entry) for row, entry in read_entries(file)]
    found = [*read_typed(file)]
    assert [row[:4] for row in found] == [row[:4] for row in expected]
    assert [type(row[4]) for row in found] == [type(row[4]) for row in expected]
    assert found[-1][4] == expected[-1][4]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ({"time_us": 2}, "row 2 .*time_us: 2: expected a whole number of at least 3"),
        ({"seq": 1}, "row 1 .*seq: 1: expected"),
        ({"source": "nobody"}, "source: 'nobody'"),
        ({"cause": None}, "cause: None: expected a text"),
        ({"event": "new", "group": None}, "group: None: expected a text"),
        ({"event": "partitions_resumed", "member": "m", "member_id": "i", "partitions": [], "positions": [1]},
         "positions: .1.: expected one for each"),
    ],
)  # fmt: skip
def test_a_row_of_columns_that_does_not_fit_is_named(
    tmp_path: Path, bad: dict[str, Any], expected: str
) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs groupstorm[parquet]")
    from pyarrow import parquet

    step = NEXT | {"event": "step_taken", "cause": "start", "detail": ""}
    file = tmp_path / "trace.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([ROW, step, step | {"seq": 2} | bad], arrow_schema()), file)
    with pytest.raises(InputError, match=f"row 3: not a row of a trace: .*{expected}"):
        list(read_typed(file))
