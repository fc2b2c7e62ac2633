"""One long-lived JVM that answers JSON lines."""

from __future__ import annotations

import subprocess
import tempfile
from types import TracebackType
from typing import IO

from tests.oracle.build import Built, OracleBroke
from tests.processes import killed_after

#: How long a JVM may take to end after its last line.
_END_SECONDS = 30


class Jvm:
    """The main class and `command`: a line in, a line out, until it is closed."""

    def __init__(self, built: Built, command: str, *, heap: str = "1g") -> None:
        # closed with the process: it is what a broken one has said
        self._errors: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        # one collector thread: the machine is shared with the Python side
        options = [f"-Xmx{heap}", "-XX:+UseSerialGC", "-cp", built.classpath]
        # compiled code would leave out the messages of exceptions that are thrown often
        options.append("-XX:-OmitStackTraceInFastThrow")
        self._process = subprocess.Popen(
            [built.java, *options, built.main, command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )

    def ask(self, line: str) -> str:
        """Its answer to one line; `OracleBroke` where there is none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise OracleBroke(self._last_words()) from None
        with killed_after(self._process):
            answer = self._process.stdout.readline()
        if not answer.endswith("\n"):
            raise OracleBroke(self._last_words())
        return answer.rstrip("\n")

    def _last_words(self) -> str:
        self._process.wait(_END_SECONDS)
        self._errors.seek(0)
        lines = self._errors.read().splitlines()
        return "\n".join(["the Java side ended", *lines[:12]])

    def close(self) -> None:
        """End it: it ends by itself when its input does."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def __enter__(self) -> Jvm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
