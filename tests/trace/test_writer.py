from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupstorm.problems import InputError
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.reader import read_rows, trace_files
from groupstorm.trace.rows import ALL_COLUMN_NAMES, TracedEvent, event_name, layout
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import DirectorySink, open_writer

PENDING = coordinator_events.MemberPending("g", "c1", "c1-x")
#: Of one type from two sources, with the same values and with others, with none and with some.
TELLING: Sequence[Callable[[int], tuple[Source, TracedEvent]]] = (
    lambda _: (Source.COORDINATOR, PENDING),
    lambda _: (Source.WORLD, PENDING),
    lambda at: (Source.COORDINATOR, coordinator_events.MemberPending("g", f"c{at}", f"c{at}-x")),
    lambda at: (Source.COORDINATOR, coordinator_events.JoinAnswered("g", "c1", "c1-x", 1000 + at % 2, None)),
    lambda at: (Source.COORDINATOR, coordinator_events.JoinAnswered("g", "c1", "c1-x", -1, f"ERROR_{at}")),
    lambda at: (
        Source.MEMBER,
        member_events.PartitionsAssigned("g", "c1", "c1-x", 1, ("t-0",) * (at % 3), (at,) * (at % 3), at),
    ),
)
ASSIGNED = member_events.PartitionsAssigned("g", "c1", "c1-x", 1, ("t-0", "t-1"), (5, 0), 250)


def every_event_type() -> list[type]:
    modules = (coordinator_events, member_events, world_events)
    return [event for module in modules for event in module.Event.__args__]


@pytest.mark.parametrize("event_type", every_event_type())
def test_every_field_of_every_event_is_a_column(event_type: type) -> None:
    _, fields, columns, arrange = layout(event_type)
    assert arrange((*columns[:4], *fields)) == columns
    assert columns == (*ALL_COLUMN_NAMES[:4], *(name for name in ALL_COLUMN_NAMES[4:] if name in fields))


def test_event_names_are_unique() -> None:
    names = [event_name(event_type) for event_type in every_event_type()]
    assert len(set(names)) == len(names)
    assert "member_pending" in names


@pytest.mark.parametrize("trace_format", ["jsonl", "parquet"])
def test_what_is_written_is_read_back(tmp_path: Path, trace_format: str) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")
    writer = open_writer(tmp_path, "trace", trace_format)
    writer.add(3, Source.COORDINATOR, PENDING)
    writer.add(4, Source.MEMBER, ASSIGNED)
    assert not list(tmp_path.glob("trace*")), "nothing is visible before it is complete"
    writer.close()
    assert list(read_rows(tmp_path)) == [
        {"seq": 0, "time_us": 3, "source": "coordinator", "event": "member_pending", "group": "g",
         "member": "c1", "member_id": "c1-x"},
        {"seq": 1, "time_us": 4, "source": "member", "event": "partitions_assigned", "group": "g",
         "member": "c1", "member_id": "c1-x", "generation": 1, "partitions": ["t-0", "t-1"],
         "positions": [5, 0], "duration_us": 250},
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == [f"trace.{trace_format}"]


@settings(deadline=None)  # the first example imports pyarrow
@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 12), st.integers(1, 7))
def test_parquet_holds_the_rows_of_the_lines(kinds: list[int], rows_per_group: int, at_once: int) -> None:
    """In any order, some columns being the same in all rows of a group, and the groups of any size."""
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")
    told = [(time_us, *TELLING[kind](time_us)) for time_us, kind in enumerate(kinds)]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("groupstorm.trace.writer.ROWS_PER_GROUP", rows_per_group)
        for trace_format in ("jsonl", "parquet"):
            where = Path(folder, trace_format)
            where.mkdir()
            writer = open_writer(where, "trace", trace_format)
            for begin in range(0, len(told), at_once):
                writer.add_all(told[begin : begin + at_once])
            writer.close()
        assert list(read_rows(Path(folder, "parquet"))) == list(read_rows(Path(folder, "jsonl")))


@pytest.mark.parametrize("trace_format", ["jsonl", "parquet"])
def test_a_discarded_trace_leaves_nothing(tmp_path: Path, trace_format: str) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")
    writer = open_writer(tmp_path, "trace", trace_format)
    writer.add(3, Source.COORDINATOR, PENDING)
    writer.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_closed_files_is_one_trace(tmp_path: Path) -> None:
    sink = DirectorySink(tmp_path / "out", rows_per_file=2)
    for time_us in range(5):
        sink.add(time_us, Source.COORDINATOR, PENDING)
    assert len(trace_files(tmp_path / "out")) == 2
    sink.rotate()
    assert [row["seq"] for row in read_rows(tmp_path / "out")] == [0, 1, 2, 3, 4]
    sink.rotate()
    sink.close()
    assert len(trace_files(tmp_path / "out")) == 3
    with pytest.raises(InputError, match="holds a trace already"):
        DirectorySink(tmp_path / "out")


def test_where_there_is_no_trace_it_says_so(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere", Path(__file__)):
        with pytest.raises(InputError):
            trace_files(path)
