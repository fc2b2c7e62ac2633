"""A damaged folder of `serve --data`: nothing that clients were told of is lost without a word.

Frames: one makes the topic, each record and each commit has one; the checkpoint is behind five of each, and
three of each follow it.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from groupstorm.broker.journal import Link, encode, frame_end
from groupstorm.problems import InputError
from tests.broker.asking import list_offsets, offset_fetch
from tests.broker.test_checkpoint import OnDisk, fill, state
from tests.broker.test_data import commit_one, committed
from tests.broker.test_serve import DEADLINE_S, serving
from tests.broker.wire import RawClient
from tests.command import groupstorm, refused

#: Written by the last release whose frames had no numbers.
OLD = Path(__file__).parent / "folders" / "version-1"

LOST = "records or commits that clients were told of are lost"
WAY_ON = ": put the whole file back, or go on without what is lost by --accept-loss, which keeps the files"
WHOLE = (8, [(0, 10, 0)])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    driver = OnDisk(folder)
    fill(driver, 5)
    driver.journal.checkpoint()
    fill(driver, 3)
    driver.journal.close()
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "folder"))


def frames(data: bytes) -> list[bytes]:
    ends = [0]
    while (end := frame_end(data, ends[-1])) is not None:
        ends.append(end)
    return [data[start:end] for start, end in pairwise(ends)]


def has(driver: OnDisk) -> object:
    return list_offsets(driver, 7, -1).offset, offset_fetch(driver, 7)


def swapped(data: bytes, first: int, second: int) -> bytes:
    parts = frames(data)
    parts[first], parts[second] = parts[second], parts[first]
    return b"".join(parts)


def without(data: bytes, number: int) -> bytes:
    parts = frames(data)
    return b"".join(parts[:number] + parts[number + 1 :])


def flipped(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


Damage = Callable[[bytes], bytes | None]

REFUSED: dict[str, tuple[str, Damage, str]] = {
    "cut in half": ("journal", lambda data: data[: len(data) // 2], f"its checkpoint tells of .*{LOST}"),
    "emptied": ("journal", lambda data: b"", f"it has 0 bytes, and its checkpoint tells of .*{LOST}"),
    "deleted": ("journal", lambda data: None, f"it has 0 bytes, and its checkpoint tells of .*{LOST}"),
    "garbage": (
        "journal",
        lambda data: b"x" * len(data),
        "it is not the one that its checkpoint was written from",
    ),
    "notes": (
        "journal",
        lambda data: b"some notes",
        f"it has 10 bytes, and its checkpoint tells of .*{LOST}",
    ),
    "changed behind the checkpoint": (
        "journal",
        lambda data: b"".join([*frames(data)[:12], flipped(frames(data)[12]), *frames(data)[13:]]),
        "is damaged, and whole ones follow",
    ),
    "one missing behind the checkpoint": (
        "journal",
        lambda data: without(data, 13),
        "is number 14, expected 13: frames are missing, or not in their order",
    ),
    "two exchanged behind the checkpoint": (
        "journal",
        lambda data: swapped(data, 13, 15),
        "is number 15, expected 13",
    ),
    "one of another journal behind the checkpoint": (
        "journal",
        lambda data: b"".join([*frames(data)[:13], encode([], Link(13, 1)), *frames(data)[14:]]),
        "does not follow the one in front of it",
    ),
    "of another folder": (
        "journal",
        lambda data: (OLD / "journal").read_bytes() * 3,
        "is not the one that its checkpoint",
    ),
}


@pytest.mark.parametrize("how", REFUSED)
def test_a_journal_that_has_lost_something_is_refused(folder: Path, how: str) -> None:
    name, damage, said = REFUSED[how]
    write(folder / name, damage)
    before = content(folder)
    with pytest.raises(InputError, match=f"^--data {folder}: journal: .*{said}.*{re.escape(WAY_ON)}$"):
        OnDisk(folder)
    assert content(folder) == before, "the proof is gone"


def write(path: Path, damage: Damage) -> None:
    data = damage(path.read_bytes())
    path.unlink()
    if data is not None:
        path.write_bytes(data)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("how", ["emptied", "deleted"])
def test_a_journal_is_missed_without_a_checkpoint_too(folder: Path, how: str) -> None:
    (folder / "checkpoint").unlink()
    write(folder / "journal", REFUSED[how][1])
    with pytest.raises(InputError, match="journal: it is missing or empty, and there was one"):
        OnDisk(folder)


def test_frames_far_in_front_of_the_checkpoint_are_where_they_were_written(tmp_path: Path) -> None:
    """A restart has not read them: the check that runs while the broker serves ends it."""
    driver = OnDisk(tmp_path)
    fill(driver, 60)
    driver.journal.checkpoint()
    driver.journal.close()
    data = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(swapped(data, 3, 5))
    again = OnDisk(tmp_path)
    problem = again.journal.check_unread(lambda: False)
    assert "is number 5, expected 3: frames are missing, or not in their order" in str(problem)
    assert str(problem).endswith(WAY_ON)
    again.journal.close()


#: What is left of 8 records and commits if frames in front of the damage alone are used.
ACCEPTED: dict[str, tuple[Damage, object]] = {
    "cut in half": (lambda data: b"".join(frames(data)[:8]) + b"torn", (4, [(0, 10, 0)])),
    "emptied": (lambda data: b"", (0, [(0, -1, 0)])),
    "deleted": (lambda data: None, (0, [(0, -1, 0)])),
    "garbage": (lambda data: b"x" * len(data), (0, [(0, -1, 0)])),
    "changed": (
        lambda data: b"".join([*frames(data)[:6], flipped(frames(data)[6]), *frames(data)[7:]]),
        (3, [(0, 10, 0)]),
    ),
    "one missing": (lambda data: without(data, 2), (1, [(0, -1, 0)])),
}


@pytest.mark.parametrize("how", ACCEPTED)
def test_a_loss_that_is_accepted_keeps_the_files_and_goes_on(folder: Path, how: str) -> None:
    damage, left = ACCEPTED[how]
    write(folder / "journal", damage)
    before = content(folder)
    for number in (1, 2):
        again = OnDisk(folder, accept_loss=True)
        assert has(again) == left
        assert "--accept-loss goes on without it" in again.said[0]
        names = " and ".join(f"{name}.lost-{number}" for name in ("journal", "checkpoint") if name in before)
        assert again.said[-1].startswith(f"--data {folder}: kept as {names}: "), again.said
        for name in before.keys() - {"lock"}:
            assert (folder / f"{name}.lost-{number}").read_bytes() == before[name]
        fill(again, 2)
        again.journal.checkpoint()
        again.journal.close()
        whole = OnDisk(folder)
        assert whole.said == []
        assert list_offsets(whole, 7, -1).offset == left[0] + 2  # type: ignore[index]
        whole.journal.close()
        for name, data in before.items():  # the same once more
            (folder / name).write_bytes(data)
        if "journal" not in before:
            (folder / "journal").unlink()


@pytest.mark.parametrize("checkpoint", ["there", "missing"])
def test_a_folder_of_the_format_before_opens_and_is_written_anew(tmp_path: Path, checkpoint: str) -> None:
    folder = Path(shutil.copytree(OLD, tmp_path / "old"))
    if checkpoint == "missing":
        (folder / "checkpoint").unlink()
    driver = OnDisk(folder)
    assert (has(driver), driver.said) == (WHOLE, [])
    before = state(driver)
    driver.journal.close()
    assert b"[2,0,0,[" in (folder / "journal").read_bytes()[:20]
    again = OnDisk(folder)
    assert state(again) == before
    again.journal.close()


@pytest.mark.parametrize("damage", [lambda data: data[:900], lambda data: b"", lambda data: None])
def test_a_folder_of_the_format_before_is_not_cut_without_a_word(tmp_path: Path, damage: Damage) -> None:
    folder = Path(shutil.copytree(OLD, tmp_path / "old"))
    write(folder / "journal", damage)
    with pytest.raises(InputError, match=f"tells of .*{LOST}"):
        OnDisk(folder)


def test_only_its_owner_reads_the_folder(folder: Path) -> None:
    """SCRAM verifiers are in it."""
    driver = OnDisk(folder.parent / "new")
    fill(driver, 1)
    driver.journal.checkpoint()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder.parent / "new").iterdir()}
    assert modes == {"checkpoint": 0o600, "journal": 0o600, "lock": 0o600}
    driver.journal.close()


@pytest.mark.slow
def test_the_process_refuses_and_goes_on_when_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving("--data", str(data), "--topic", "orders:2") as (process, address):
        with RawClient(address) as client:
            for offset in range(1, 40):
                commit_one(client, offset)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=DEADLINE_S)
    journal = data / "journal"
    journal.write_bytes(journal.read_bytes()[: journal.stat().st_size // 2])
    assert re.search(
        f"its checkpoint tells of .*{LOST}",
        refused(groupstorm("serve", "--port", "0", "--data", str(data), cwd=tmp_path)),
    )
    with serving("--data", str(data), "--accept-loss") as (_, address), RawClient(address) as client:
        assert 0 < committed(client, "g") < 39
