"""`./dev oracle group-member`: exit status and output, with recordings in the place of a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.oracle.build import Built
from tests.oracle.command import main
from tests.oracle.group_member import command, recordings
from tests.oracle.group_member.playing import play
from tests.oracle.group_member.recordings import Recording, changes, read_golden
from tests.oracle.group_member.situation import Situation
from tests.oracle.group_member.situations import SITUATIONS


def _equal(_built: Built, situations: Iterable[Situation]) -> Iterator[tuple[Situation, Recording]]:
    golden = read_golden()
    for situation in situations:
        yield situation, golden.get(str(situation)) or changes(play(situation))


def _other(built: Built, situations: Iterable[Situation]) -> Iterator[tuple[Situation, Recording]]:
    for situation, recording in _equal(built, situations):
        yield situation, [{**recording[0], "epoch": 9}, *recording[1:]]


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build", lambda: Built(Path("java"), ""))
    monkeypatch.setattr(command, "ask", _equal)


def test_a_difference_ends_with_1_and_both_sides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "ask", _other)
    assert main(["group-member", "--count", "2", "--first", "5"]) == 1
    out = capsys.readouterr().out
    assert "6: topic t" in out
    assert "    Kafka: {'state': 'UNSUBSCRIBED', 'epoch': 9" in out
    assert out.endswith(
        f"situations: {len(SITUATIONS)}; different: {len(SITUATIONS)}\nscripts: 2; different: 2\n"
    )


def test_recordings_are_written_as_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    was = recordings.GOLDEN.read_bytes()
    table = list(_equal(Built(Path("java"), ""), SITUATIONS))
    monkeypatch.setattr(recordings, "GOLDEN", tmp_path / "golden.jsonl")
    monkeypatch.setattr(command, "ask", lambda _built, asked: [one for one in table if one[0] in list(asked)])
    assert main(["group-member", "--count", "0", "--write-golden"]) == 0
    assert (tmp_path / "golden.jsonl").read_bytes() == was
