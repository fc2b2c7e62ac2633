"""A process of `groupstorm serve --data` that writes checkpoints and compacts logs every few steps.

It is forked from this process, which has done the imports: they take longer than its life.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from groupstorm.broker import data_directory
from groupstorm.cli import serve  # noqa: F401  # imported before the fork
from groupstorm.cli.app import main
from tests.broker.test_serve import DEADLINE_S

#: A pass over compacted logs every 20 ms.
BACKOFF_MS = 20
_CONTEXT = multiprocessing.get_context("fork")


class ServedProcess:
    """A broker, from its first line until it is killed."""

    def __init__(self, data: Path, arguments: Sequence[str], port: int) -> None:
        """``data``: the broker's folder; the process's standard error is in the file beside it."""
        self._log = data.with_suffix(".log")
        reading, writing = os.pipe()
        arguments = ["serve", "--port", str(port), "--data", str(data), *arguments]
        self._process = _CONTEXT.Process(target=_serve, args=(arguments, writing, self._log), daemon=True)
        self._process.start()
        os.close(writing)
        with os.fdopen(reading) as output:
            told, _, _ = select.select([output], [], [], DEADLINE_S)
            assert told, f"no first line within {DEADLINE_S} s: {self.log()}"
            first = output.readline()
        assert first.startswith("listening on 127.0.0.1:"), (first, self.log())
        self.address = ("127.0.0.1", int(first.rpartition(":")[2]))

    def kill(self) -> None:
        self._process.kill()
        self._process.join(DEADLINE_S)
        assert self._process.exitcode == -signal.SIGKILL, self.log()

    def log(self) -> str:
        return self._log.read_text()


@contextmanager
def served(data: Path, *arguments: str, port: int = 0) -> Iterator[ServedProcess]:
    process = ServedProcess(data, arguments, port)
    try:
        yield process
    finally:
        process.kill()


def _serve(arguments: Sequence[str], output: int, log: Path) -> None:
    os.dup2(output, 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    sys.argv = ["groupstorm", *arguments]
    data_directory._CHECKPOINT_AFTER_BYTES = 20_000
    data_directory._COMPACT_AFTER_BYTES = 100_000
    main()
