"""The lines of a trace's files, as the files appear and grow."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from groupstorm.problems import InputError
from groupstorm.watch.feed import Line, Progress, Take

#: A batch is held in memory.
_BYTES_PER_BATCH: Final = 8_000_000


class Tail:
    """Reads the files ``trace*.jsonl`` of a folder. ``read``: file -> how many bytes are known already."""

    def __init__(self, folder: Path, read: Mapping[str, int], take: Take) -> None:
        self._folder = folder
        self._read = dict(read)
        self._take = take
        self._finished: set[str] = set()

    def catch_up(self, most_seconds: float) -> bool:
        """See `Feed`. Raises InputError if a file cannot be read."""
        until = time.monotonic() + most_seconds
        try:
            for file in self._files():
                while self._read_on(file):
                    if time.monotonic() >= until:
                        return True
        except OSError as problem:
            raise InputError(f"{problem.filename}: {problem.strerror}") from problem
        return False

    def follow(self, seconds: float) -> None:
        """See `Feed`."""
        until = time.monotonic() + seconds
        self.catch_up(seconds)
        time.sleep(max(0.0, until - time.monotonic()))

    def _files(self) -> Iterator[os.DirEntry[str]]:
        """Those that may have something new. A file grows no more once there is another one behind it."""
        found = [one for one in os.scandir(self._folder) if _is_of_trace(one.name)]
        found.sort(key=lambda one: one.name)
        for file in found:
            if file.name not in self._finished:
                yield file
                if file is not found[-1]:
                    self._finished.add(file.name)

    def _read_on(self, file: os.DirEntry[str]) -> bool:
        """Take the next lines of a file; returns whether there were some."""
        at = self._read.get(file.name, 0)
        with open(file.path, "rb") as opened:
            came = os.fstat(opened.fileno()).st_mtime
            opened.seek(at)
            data = opened.read(_BYTES_PER_BATCH)
            data += opened.readline()
        begun = data.rfind(b"\n") + 1
        if not _is_json(data[begun:]):
            data = data[:begun]  # somebody is writing this line
        if not data:
            return False
        self._read[file.name] = at + len(data)
        texts = data.decode("utf-8", "replace").split("\n")
        lines = [Line(text, file.path, came) for text in texts if text]
        self._take(Progress(file.name, at + len(data)), lines)
        return True


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_of_trace(name: str) -> bool:
    return name.startswith("trace") and name.endswith(".jsonl")
