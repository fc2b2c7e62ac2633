"""Files that are cut, damaged or packed, pipes, devices: an import reads what it can, and names the rest."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import LINE_MAX, find_logs
from groupstorm.imports.output import Imported
from groupstorm.problems import InputError
from tests.command import COMMAND, environment_of_command, groupstorm, refused
from tests.imports.importing import rows, stabilized, states
from tests.imports.offsets_dumps import OFFSETS
from tests.imports.real_logs import REAL
from tests.processes import run_process

ROUNDS: Final = "".join(stabilized(f"10:00:{second:02d},000", second, 1) for second in range(60)).encode()
PACKED: Final = gzip.compress(ROUNDS, mtime=0)
DAMAGED: Final = "its gzip data is damaged at byte"
SOURCES: Final = {
    "log": gzip.decompress((REAL / "kafka-4.3.1-java" / "server.log.gz").read_bytes()),
    "console": next(OFFSETS.glob("console-group-metadata-*.txt")).read_bytes().replace(b"}}{", b"}}\n{"),
    "dump": next(OFFSETS.glob("dump-*.txt")).read_bytes(),
}


def import_bytes(folder: Path, name: str, content: bytes) -> Imported:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return import_logs(find_logs([str(folder / name)]), folder / "out", Options())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("part", [0.85, 0.97])
def test_a_cut_file_is_read_up_to_its_last_whole_line(tmp_path: Path, source: str, part: float) -> None:
    """A log that is still being rotated. The line that the cut goes through is left out."""
    packed = gzip.compress(SOURCES[source])
    cut = packed[: int(len(packed) * part)]
    there = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(cut)
    whole = there[: there.rindex(b"\n") + 1]
    assert there != whole
    expected = import_bytes(tmp_path / "whole", "a.log", whole)
    found = import_bytes(tmp_path / "cut", "a.log.gz", cut)
    (said,) = found.logs[0].damage
    assert said == (
        f"{tmp_path / 'cut' / 'a.log.gz'}: its gzip data breaks off at byte {len(cut)}: "
        f"read up to line {whole.count(10):,}"
    )
    counts = [
        (one.logs[0].lines, one.logs[0].understood, one.logs[0].not_understood) for one in (found, expected)
    ]
    assert counts[0] == counts[1]
    assert states(tmp_path / "cut") == states(tmp_path / "whole")


def test_the_other_files_are_imported(tmp_path: Path) -> None:
    """A rotation with a damaged byte, between two whole ones; nothing of the first file can be read."""
    for name, content in (
        ("server.log.1.gz", PACKED[:12]),
        ("server.log.2.gz", gzip.compress(stabilized("09:00:00,000", 0, 1).encode())),
        ("server.log", ROUNDS),
    ):
        (tmp_path / name).write_bytes(content)
    done = groupstorm("import", ".", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "61 lines, 61 about groups" in said
    assert "server.log.1.gz: its gzip data breaks off at byte 12: nothing of it read" in said


def changed(packed: bytes, at: int) -> bytes:
    return packed[:at] + bytes([packed[at] ^ 255]) + packed[at + 1 :]


@pytest.mark.parametrize(
    ("content", "lines", "said"),
    [
        (PACKED + PACKED, 120, []),
        (PACKED + b"\0" * 700, 60, []),
        (PACKED + gzip.compress(b"", mtime=0) + PACKED, 120, []),
        (PACKED + b"trash", 60, [f"its gzip data ends at byte {len(PACKED)} and something else follows"]),
        (PACKED + b"\x1f", 60, [f"its gzip data ends at byte {len(PACKED)} and something else follows"]),
        (PACKED[:-1], 60, [f"its gzip data breaks off at byte {len(PACKED) - 1}"]),
        (PACKED + PACKED[:5], 60, [f"its gzip data breaks off at byte {len(PACKED) + 5}"]),
        (changed(PACKED, -6), 60, [f"{DAMAGED} {len(PACKED) - 5} (incorrect data check)"]),
        (changed(PACKED, -2), 60, [f"{DAMAGED} {len(PACKED) - 1} (incorrect length check)"]),
        (ROUNDS, 60, []),
    ],
)  # fmt: skip
def test_members_of_a_gzip_file(tmp_path: Path, content: bytes, lines: int, said: Sequence[str]) -> None:
    done = import_bytes(tmp_path, "a.log.gz", content)
    assert done.logs[0].lines == lines
    assert done.logs[0].damage == [f"{tmp_path / 'a.log.gz'}: {one}: read up to line {lines}" for one in said]


def test_lines_before_a_damaged_byte_are_read(tmp_path: Path) -> None:
    """The first of two members is whole, and the blocks of the second are of an unknown type: 0b11."""
    member = bytearray(PACKED)
    member[10] |= 0b110
    done = import_bytes(tmp_path, "a.log.gz", PACKED + bytes(member))
    said = f"{DAMAGED} {len(PACKED) + 10} (invalid block type): read up to line 60"
    assert done.logs[0].damage == [f"{tmp_path / 'a.log.gz'}: {said}"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PACKED[:12], "a.log: its gzip data breaks off at byte 12: nothing of it read"),
        (bz2.compress(ROUNDS), "a.log: is bzip2, unpack it with bunzip2: nothing of it read"),
        (lzma.compress(ROUNDS), "a.log: is xz, unpack it with unxz: nothing of it read"),
        (ROUNDS.decode().encode("utf-16"), "a.log: is UTF-16, convert it with iconv -f UTF-16 -t UTF-8"),
        (b"", "a.log: none of 0 lines says what a group did"),
    ],
)
def test_nothing_that_can_be_read_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.log").write_bytes(content)
    assert said in refused(groupstorm("import", "a.log", "--out", "out", cwd=tmp_path))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("front", [b"\0" * (3 * LINE_MAX), b"x" * (3 * LINE_MAX) + b"\n", b"\xff\xfe\xfa\n"])
def test_a_long_line_is_one_line(tmp_path: Path, front: bytes) -> None:
    """A log that was truncated while its program went on begins with zeros; bytes may be no UTF-8."""
    done = import_bytes(tmp_path, "a.log", front + ROUNDS)
    first = 1 + front.count(10)
    assert done.logs[0].lines == 59 + first
    assert rows(tmp_path, "group_state_changed")[0]["evidence"] == [f"{tmp_path / 'a.log'}:{first}"]


@pytest.mark.parametrize("content", [ROUNDS, PACKED])
def test_a_pipe_is_read_once(tmp_path: Path, content: bytes) -> None:
    """`groupstorm import <(zcat server.log.gz)`: the look at its first bytes does not take them away."""
    end, other_end = os.pipe()
    with open(other_end, "wb") as pipe:
        pipe.write(content)
    done = import_logs(find_logs([f"/dev/fd/{end}"]), tmp_path / "out", Options())
    os.close(end)
    assert done.logs[0].lines == 60


@pytest.mark.slow
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_may_be_packed(tmp_path: Path, name: str) -> None:
    done = run_process(
        [*COMMAND, "import", name, "--out", "out"],
        input=PACKED,
        capture_output=True,
        cwd=tmp_path,
        env=environment_of_command(),
    )
    assert done.stdout.startswith(b"standard input: 60 lines"), done.stderr


def test_a_device_is_refused() -> None:
    """It may have no end."""
    with pytest.raises(
        InputError, match="/dev/zero: is a device or a socket: expected a file, a folder or a"
    ):
        find_logs(["/dev/zero"])
