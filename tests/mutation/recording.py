"""Which tests execute which lines of a room: each test file is traced once, and again only after a change.

A test owns the lines that run while it does, those of the wider fixtures that it uses, and those behind
functions with a cache (which is emptied before each test). What runs while modules are imported belongs to
no test: a mutation there needs a fresh import and all tests. Lines that run in another process are not seen.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import pytest

from tests.mutation.rooms import ROOT

CACHE: Final = ROOT / ".mutation-cache"
HERE: Final = Path(__file__).parent

#: The packages of the checkout.
_OURS: Final = frozenset({"groupstorm", "tests", "tools"})

_Lines = set[tuple[str, int]]


class Recorded(NamedTuple):
    """A test file: per test its seconds (traced) and lines per path, and the lines that run at import.

    ``modules`` is what was imported from outside of the checkout.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[int]]]
    at_import: dict[str, list[int]]
    modules: list[str]


class Recorder:
    """A pytest plugin that traces the given files."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = frozenset(map(str, files))
        self._at_import: _Lines = set()
        self._now = self._at_import
        self._importing: list[_Lines] = []
        self._of_fixtures: defaultdict[str, _Lines] = defaultdict(set)
        self._of_tests: dict[str, _Lines] = {}
        self._seconds: dict[str, float] = {}
        self._fixtures_of: dict[str, tuple[str, ...]] = {}
        self._caches: list[functools._lru_cache_wrapper[Any]] = []
        sys.settrace(self._call)
        threading.settrace(self._call)

    def recorded(self) -> Recorded:
        sys.settrace(None)
        threading.settrace(None)
        lines = {
            test: _by_path(own.union(*(self._of_fixtures[name] for name in self._fixtures_of[test])))
            for test, own in self._of_tests.items()
        }
        outside = [name for name in sys.modules if name.partition(".")[0] not in {*_OURS, "__main__"}]
        return Recorded(self._seconds, lines, _by_path(self._at_import), sorted(outside))

    # --- the tracer

    def _call(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        if code.co_name == "<module>":
            self._importing.append(self._now)
            self._now = self._at_import
            return self._module
        return self._line if code.co_filename in self._files else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            self._now.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    def _module(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "return":
            self._now = self._importing.pop()
        elif frame.f_code.co_filename in self._files:
            self._now.add((frame.f_code.co_filename, frame.f_lineno))
        return self._module

    # --- the hooks

    def pytest_collection_finish(self) -> None:
        self._caches = [
            each
            for each in gc.get_objects()
            if isinstance(each, functools._lru_cache_wrapper)
            and str(each.__module__).partition(".")[0] in _OURS
        ]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for each in self._caches:
            each.cache_clear()
        before, self._now = self._now, self._of_tests.setdefault(item.nodeid, set())
        self._fixtures_of[item.nodeid] = tuple(getattr(item, "fixturenames", ()))
        start = time.process_time()
        yield
        self._seconds[item.nodeid] = round(time.process_time() - start, 4)
        self._now = before

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        before = self._now
        if fixturedef.scope != "function":
            self._now = self._of_fixtures[fixturedef.argname]
        yield
        self._now = before


def cached(room: str, test_file: Path, key: str) -> Recorded | None:
    path = cache_path(room, test_file)
    if not path.exists():
        return None
    stored = json.loads(path.read_text("utf-8"))
    return Recorded(**stored["recorded"]) if stored["key"] == key else None


def store(room: str, test_file: Path, key: str, recorded: Recorded) -> None:
    path = cache_path(room, test_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"key": key, "recorded": recorded._asdict()}), "utf-8")


def cache_path(room: str, test_file: Path) -> Path:
    return CACHE / room / f"{'.'.join(test_file.relative_to(ROOT).with_suffix('').parts)}.json"


def shared_key(files: Iterable[Path]) -> str:
    """Of everything that a recording depends on, apart from the test file's own folder."""
    packages = [
        path
        for name in ("groupstorm", "tools")
        for path in (ROOT / name).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ]
    helpers = [
        path
        for path in (ROOT / "tests").rglob("*.py")
        if not path.name.startswith("test_") and (path.parent != HERE or path == Path(__file__))
    ]
    names = [str(path.relative_to(ROOT)) for path in files]
    return _hashed((*packages, *helpers, ROOT / "pyproject.toml"), " ".join((sys.version, *names)))


def key_of(shared: str, test_file: Path) -> str:
    """The test file and the data beside it (transcripts, recordings, scenarios)."""
    folder = test_file.parent
    data = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}]
    return _hashed((test_file, *data), shared)


def _hashed(paths: Iterable[Path], text: str) -> str:
    sha = hashlib.sha256(text.encode())
    for path in sorted(paths):
        sha.update(str(path).encode() + b"\0")
        sha.update(hashlib.sha256(path.read_bytes()).digest())
    return sha.hexdigest()


def _by_path(lines: _Lines) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for path, line in sorted(lines):
        found[path].append(line)
    return dict(found)
