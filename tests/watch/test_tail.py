"""The lines of files that appear and grow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Timer

import pytest

from groupstorm.problems import InputError
from groupstorm.watch.feed import Line, Progress
from groupstorm.watch.sources import Tail


class Reader:
    """Keeps what it takes, as a checkpoint does."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.read: dict[str, int] = {}

    def take(self, progress: Progress, lines: Sequence[Line]) -> None:
        self.read[progress.part] = progress.position
        self.texts += [line.text for line in lines]


def append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8", newline="") as opened:
        opened.write(text)


def test_what_came_while_it_waited_is_read(tmp_path: Path) -> None:
    """The picture that is made then is of this time."""
    reader = Reader()
    tail = Tail(tmp_path, {}, reader.take)
    timer = Timer(0.05, append, (tmp_path / "trace-0.jsonl", '"now"\n'))
    timer.start()
    tail.follow(0.5)
    assert reader.texts == ['"now"']


def test_files_are_read_in_the_order_of_their_names_and_late_ones_too(tmp_path: Path) -> None:
    reader = Reader()
    tail = Tail(tmp_path, {}, reader.take)
    for name in ("trace-2.jsonl", "trace-0.jsonl", "figures.jsonl", "trace-0.jsonl.part"):
        append(tmp_path / name, f'"{name}"\n')
    assert not tail.catch_up(10)
    append(tmp_path / "trace-1.jsonl", '"late"\n')
    append(tmp_path / "trace-3.jsonl", '"next"\n')
    assert not tail.catch_up(10)
    assert reader.texts == ['"trace-0.jsonl"', '"trace-2.jsonl"', '"late"', '"next"']


def test_a_line_counts_when_it_is_whole_and_a_last_one_without_its_end_does(tmp_path: Path) -> None:
    file, reader = tmp_path / "trace.jsonl", Reader()
    tail = Tail(tmp_path, {}, reader.take)
    seen = []
    for more in ('{"seq":0}\n{"se', 'q":1', "}", "\n", '{"seq":2}\n'):
        append(file, more)
        assert not tail.catch_up(10)
        seen.append(len(reader.texts))
    assert seen == [1, 1, 2, 2, 3]
    assert reader.texts == ['{"seq":0}', '{"seq":1}', '{"seq":2}']


@pytest.mark.slow
def test_a_large_file_is_read_in_batches_and_a_later_tail_goes_on_behind_the_last_one(tmp_path: Path) -> None:
    lines = [f'"{number:0100d}"' for number in range(200_000)]
    append(tmp_path / "trace.jsonl", "".join(f"{line}\n" for line in lines))
    reader = Reader()
    assert Tail(tmp_path, {}, reader.take).catch_up(0)
    assert 0 < len(reader.texts) < len(lines)
    assert not Tail(tmp_path, reader.read, reader.take).catch_up(1_000)
    assert reader.texts == lines


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "trace-0.jsonl").mkdir()
    with pytest.raises(InputError, match=r"trace-0\.jsonl: Is a directory"):
        Tail(tmp_path, {}, Reader().take).catch_up(1)


def test_a_file_that_got_its_last_line_as_the_next_one_appeared_is_read_to_its_end(tmp_path: Path) -> None:
    reader = Reader()
    tail = Tail(tmp_path, {}, reader.take)
    append(tmp_path / "trace-0.jsonl", "0\n")
    assert not tail.catch_up(10)
    append(tmp_path / "trace-0.jsonl", "1\n")
    append(tmp_path / "trace-1.jsonl", "2\n")
    assert not tail.catch_up(10)
    assert reader.texts == ["0", "1", "2"]
