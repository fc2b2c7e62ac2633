"""Instances of a Kafka Streams application, as processes: the word count of `programs/java/streams`."""

from __future__ import annotations

import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.conformance.programs.building import word_count

#: What an instance says of itself while it has tasks.
RUNNING = "RUNNING"


class Instance:
    """One process. Its thread writes down what it says, the test reads that."""

    def __init__(
        self, address: str, group: str, topics: tuple[str, str], folder: Path, options: Mapping[str, str]
    ) -> None:
        """``topics``: the lines and the counts. Raises ProgramUnavailable."""
        settings = {
            "application.id": group,
            "bootstrap.servers": address,
            "group.protocol": "streams",
            "state.dir": str(folder),
            "commit.interval.ms": "100",
            **options,
        }
        words = [f"{name}={value}" for name, value in settings.items()]
        self.state = ""
        self._said = deque[str](maxlen=20)
        self._process = subprocess.Popen(
            word_count().command("WordCount", *topics, *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._thread = threading.Thread(target=self._listen, name="instance", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Fail if it has ended by itself."""
        assert self._process.poll() is None, "".join(self._said)

    def kill(self) -> None:
        """End it as kill -9 does: it says nothing to anybody."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Close it, and wait for its end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            assert self._process.wait(60) in (0, -9), "".join(self._said)
        finally:
            self._process.kill()
            self._thread.join(10)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, _, about = line.rstrip("\n").partition("\t")
            if what == "state":
                self.state = about
            else:
                self._said.append(line)


@contextmanager
def stopping(instances: Sequence[Instance]) -> Iterator[None]:
    """Stop the instances of the list at the end, also if the test fails."""
    try:
        yield
    finally:
        for instance in instances:
            instance.stop()
