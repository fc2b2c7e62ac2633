"""`tests/README.md` says of every folder what is proved there."""

from __future__ import annotations

import re
from pathlib import Path

_TESTS = Path(__file__).parent
_PAGE = (_TESTS / "README.md").read_text("utf-8")


def test_every_folder_of_tests_has_a_row() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", _PAGE, re.MULTILINE)
    folders = {file.relative_to(_TESTS).parts[0] for file in _TESTS.glob("*/**/test_*.py")}
    assert len(rows) == len(set(rows))
    assert set(rows) == folders


def test_every_path_is_there() -> None:
    root = _TESTS.parent
    links = re.findall(r"\]\(([^)#]+)", _PAGE)
    paths = re.findall(r"`((?:tests|groupstorm)/[\w/.]+)`", _PAGE)
    assert [path for path in links if not (_TESTS / path).exists()] == []
    assert [path for path in paths if not (root / path).exists()] == []
