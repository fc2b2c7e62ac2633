"""Excerpts of real logs, quoted from public pages: each imports, or says in one line what is missing.

`excerpts.txt` has the story of each with how every row is known. GROUPSTORM_REWRITE=1 writes it anew: read
the difference, and commit it only if you understand it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.problems import InputError
from groupstorm.report.story import Selection, story
from groupstorm.trace.reader import read_rows
from tests.imports.importing import LOGS

EXPECTED = Path(__file__).parent / "excerpts.txt"
NAMES = sorted(path.stem for path in LOGS.glob("*.log"))


def told(name: str, folder: Path) -> str:
    """Return what an excerpt tells: its story, each line with the provenance of its row; or the error's
    line."""
    try:
        done = import_logs(find_logs([str(LOGS / f"{name}.log")]), folder / name, Options())
    except InputError as error:
        return str(error).replace(str(LOGS), "logs")
    rows = [*read_rows(folder / name)]
    lines = [
        f"{row['provenance']:8} {line}"
        for row in rows
        for line in story([row], Selection(everything=True))
        if row["event"] != "group_imported"
    ]
    counts = [
        f"{one.lines} lines, {one.understood} understood, {one.not_understood} not" for one in done.logs
    ]
    return "\n".join([*counts, *lines])


def sections() -> dict[str, str]:
    """Excerpt -> what is expected."""
    text = EXPECTED.read_text("utf-8") if EXPECTED.exists() else ""
    parts = [part.partition("\n") for part in text.split("## ")[1:]]
    return {name.strip(): body.rstrip("\n") for name, _, body in parts}


@pytest.mark.skipif(
    "GROUPSTORM_REWRITE" not in os.environ, reason="set GROUPSTORM_REWRITE=1 to write the file anew"
)
def test_write_the_expectations_anew(tmp_path: Path) -> None:
    EXPECTED.write_text("\n\n".join(f"## {name}\n{told(name, tmp_path)}" for name in NAMES) + "\n", "utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_an_excerpt(name: str, tmp_path: Path) -> None:
    assert told(name, tmp_path) == sections()[name]


def test_every_expectation_has_its_excerpt() -> None:
    assert sorted(sections()) == NAMES
