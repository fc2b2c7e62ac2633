"""Batches of lines become rows, in memory and in the checkpoint, and pictures of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from groupstorm.problems import InputError
from groupstorm.watch.alerts import read_alert
from groupstorm.watch.checkpoint import open_checkpoint
from groupstorm.watch.feed import BATCHES, Line, Progress
from groupstorm.watch.sources import FolderSource
from groupstorm.watch.watching import Picture, RowsSoFar, Watch
from tests.watch.rolling_rows import GROUP, SECOND, SPAN_US, by_hand, generation_row

#: When the lines came.
CAME = 1_000.0


class Seen:
    def __init__(self) -> None:
        self.pictures: list[Picture] = []

    def reading(self, rows: int) -> None:
        raise AssertionError("these tests read no stream")

    def show(self, picture: Picture) -> None:
        self.pictures.append(picture)

    def alerts(self) -> list[str]:
        return [str(change) for picture in self.pictures for change in picture.changes]


def write(folder: Path, number: int, seqs: Sequence[int]) -> list[Line]:
    """A file of the trace, and its lines as a feed hands them over."""
    folder.mkdir(exist_ok=True)
    file = folder / f"trace-{number:06d}.jsonl"
    lines = [generation_row(seq).line for seq in seqs]
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return [Line(line, str(file), CAME) for line in lines]


@contextmanager
def rows_so_far(folder: Path, *alerts: str, once: bool = True, now: float = CAME) -> Iterator[RowsSoFar]:
    folder.mkdir(exist_ok=True)
    source = FolderSource(folder)
    order = Watch(source, folder.with_name("c"), SPAN_US, [read_alert(one) for one in alerts], 1, once)
    with open_checkpoint(order.checkpoint, source.name) as checkpoint:
        yield RowsSoFar(order, checkpoint, lambda: now)


def generations(rows: RowsSoFar) -> int:
    seen = Seen()
    rows.show_to(seen)
    return seen.pictures[-1].sums["g"].generations


def test_a_later_watch_goes_on_without_losing_or_doubling_rows(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    first, second = write(trace, 0, range(5)), write(trace, 1, range(5, 9))
    with rows_so_far(trace) as rows:
        rows.take(Progress(BATCHES, 0), first)
        assert generations(rows) == 5
    with rows_so_far(trace) as rows:
        rows.take(Progress(BATCHES, 0), first)  # Spark repeats a batch that it does not know to be done
        rows.take(Progress(BATCHES, 1), second)
        assert generations(rows) == 9


def test_an_alert_that_was_shown_is_not_shown_again_by_a_later_watch(tmp_path: Path) -> None:
    trace, alert, seen = tmp_path / "trace", "generations>3 per 60s", Seen()
    with rows_so_far(trace, alert) as rows:
        rows.take(Progress(BATCHES, 0), write(trace, 0, range(5)))
        rows.show_to(seen)
        rows.show_to(seen)
    with rows_so_far(trace, alert) as rows:
        rows.show_to(seen)
        rows.take(Progress(BATCHES, 1), write(trace, 1, [100]))
        rows.show_to(seen)
    assert seen.alerts() == [
        "ALERT g: generations>3 per 60s: generations is 5",
        "ALERT over g: generations>3 per 60s: generations is 1",
    ]
    assert [len(picture.active) for picture in seen.pictures] == [1, 1, 1, 0]


def test_an_alert_that_could_not_be_shown_is_shown_again(tmp_path: Path) -> None:
    class Fails(Seen):
        def show(self, picture: Picture) -> None:
            raise InputError(picture.changes[0].group)

    trace, alert, seen = tmp_path / "trace", "generations>3 per 60s", Seen()
    with rows_so_far(trace, alert) as rows:
        rows.take(Progress(BATCHES, 0), write(trace, 0, range(5)))
        with pytest.raises(InputError, match="g"):
            rows.show_to(Fails())
    with rows_so_far(trace, alert) as rows:
        rows.show_to(seen)
    assert len(seen.alerts()) == 1


def test_a_line_that_is_no_row_is_named_by_file_and_line(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    place = write(trace, 0, [0])[0].place
    file = trace / "trace-000000.jsonl"
    file.write_text(f"{generation_row(0).line}\n" + '{"seq":1}\n', "utf-8")
    with rows_so_far(trace) as rows, pytest.raises(InputError) as refused:
        rows.take(
            Progress(BATCHES, 0), [Line(line, place, CAME) for line in file.read_text("utf-8").splitlines()]
        )
    assert str(refused.value).startswith(f"{file}: line 2: not a row of a trace: row 1 (None): time_us")


def test_the_line_of_the_version_is_no_row(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    lines = write(trace, 0, [0, 1])
    version = json.dumps({"groupstorm.trace.schema": 2})
    with rows_so_far(trace) as rows:
        rows.take(Progress(BATCHES, 0), [lines[0]._replace(text=version), *lines])
        assert generations(rows) == 2
        with pytest.raises(InputError, match="version 3 of the trace schema"):
            rows.take(Progress(BATCHES, 1), [lines[0]._replace(text=version.replace("2", "3"))])


def test_a_new_trace_in_the_folder_of_an_old_one_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with rows_so_far(trace) as rows:
        rows.take(Progress(BATCHES, 0), write(trace, 0, [0, 1]))
    first = generation_row(0, time_us=17).line
    (trace / "trace-000000.jsonl").write_text(f"{first}\n", "utf-8")
    with pytest.raises(InputError, match="is the checkpoint of an earlier trace"), rows_so_far(trace):
        pass


def test_a_source_that_is_no_folder_of_json_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        FolderSource(tmp_path / "nowhere")
    (tmp_path / "trace.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="holds a trace as Parquet"):
        FolderSource(tmp_path)


def test_time_goes_on_from_the_last_row_as_long_as_none_comes(tmp_path: Path) -> None:
    trace, seen = tmp_path / "trace", Seen()
    with rows_so_far(trace, once=False, now=CAME + 7) as rows:
        rows.show_to(seen)
        rows.take(Progress(BATCHES, 0), write(trace, 0, range(3)))
        rows.show_to(seen)
        rows.take(
            Progress(BATCHES, 1), [line._replace(came=CAME + 7) for line in write(trace, 1, range(3, 5))]
        )
        rows.show_to(seen)
    with rows_so_far(trace, once=False, now=CAME + 27) as rows:
        rows.show_to(seen)
    assert [picture.end_us / SECOND for picture in seen.pictures] == [0, 9, 9, 24]
    assert [picture.quiet_seconds for picture in seen.pictures] == [0, 7, 0, 20]


def test_a_late_file_does_not_say_when_the_last_row_came(tmp_path: Path) -> None:
    trace, seen = tmp_path / "trace", Seen()
    with rows_so_far(trace, once=False, now=CAME + 7) as rows:
        rows.take(Progress(BATCHES, 0), write(trace, 1, [2, 3]))
        rows.take(Progress(BATCHES, 1), [line._replace(came=CAME + 6) for line in write(trace, 0, [0, 1])])
        rows.show_to(seen)
    (picture,) = seen.pictures
    assert (picture.end_us / SECOND, picture.quiet_seconds, picture.missing) == (10, 7, 0)


def test_sums_stop_where_the_next_rows_cannot_change_them(tmp_path: Path) -> None:
    trace, seen = tmp_path / "trace", Seen()
    for now in (CAME + 20, CAME + 100):
        with rows_so_far(trace, once=False, now=now) as rows:
            rows.take(Progress(BATCHES, 0), assigned(trace))
            rows.show_to(seen)
    sums = [picture.sums["g"].unowned_us for picture in seen.pictures]
    until = [picture.end_us / SECOND for picture in seen.pictures]
    assert until == [41, 121]
    # the partition of b is nobody's from 20 s on; the last row is of 21 s
    assert sums == [1 * SECOND, 71 * SECOND]


def assigned(folder: Path) -> list[Line]:
    return [Line(one.line, folder.as_uri(), CAME) for one in by_hand(*GROUP[:-1])]
