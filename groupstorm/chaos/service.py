"""A service: its command, what that is told (where the brokers are, which group, which topics), and its
processes, each in a process group of its own: started, signalled, and always ended.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.live.clock import Spawn

#: The variables of the environment, each with the placeholder of its lower-case name in the command.
PREFIX: Final = "GROUPSTORM_"
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


class Surroundings(NamedTuple):
    """The facts that every instance is told. ``topics`` and ``output_topic``: their names on this broker."""

    bootstrap_servers: str
    group_id: str
    topics: tuple[str, ...]
    output_topic: str


def told(surroundings: Surroundings, place: int, client_id: str, instance_id: str) -> Mapping[str, str]:
    """The values by the names of their placeholders, for the instance in this place. ``instance_id``: its
    group.instance.id, "": a dynamic member."""
    return {
        "bootstrap_servers": surroundings.bootstrap_servers,
        "group_id": surroundings.group_id,
        "topics": ",".join(surroundings.topics),
        "output_topic": surroundings.output_topic,
        "instance": str(place),
        "client_id": client_id,
        "instance_id": instance_id,
    }


NAMES: Final = tuple(told(Surroundings("", "", (), ""), 0, "", ""))


class ServiceCommand:
    """A command as a shell would split it; no shell runs it."""

    def __init__(self, written: str) -> None:
        """Raises InputError for quotes that do not close, an unknown placeholder, and a program that this
        machine does not have."""
        try:
            self._words = shlex.split(written)
        except ValueError as problem:
            raise InputError(f"--service {written!r}: {str(problem).lower()}") from problem
        if not self._words:
            raise InputError("--service: expected a command, as 'python my_service.py'")
        for word in self._words:
            for name in _PLACEHOLDER.findall(word):
                if name not in NAMES:
                    known = ", ".join(f"{{{one}}}" for one in NAMES)
                    raise InputError(f"--service: {{{name}}}: no such placeholder: expected {known}")
        if "{" not in self._words[0] and shutil.which(self._words[0]) is None:
            raise InputError(f"--service: {self._words[0]}: there is no such program")

    def words(self, values: Mapping[str, str]) -> list[str]:
        """The command of one instance."""
        return [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in self._words]

    @staticmethod
    def environment(values: Mapping[str, str]) -> dict[str, str]:
        """The environment of one instance: ours, and what it is told."""
        return {**os.environ, **{PREFIX + name.upper(): value for name, value in values.items()}}


class Service(NamedTuple):
    """``reads_lines``: the service says on standard output what it has processed; ``logs``: the folder for
    what its instances write."""

    command: ServiceCommand
    surroundings: Surroundings
    reads_lines: bool
    logs: Path


#: So much of the end of a log is searched for its last line.
_TAIL_BYTES = 4096


class ServiceProcess:
    """One process. What it writes goes into ``log``. ``on_line`` gets the lines of its standard output, which
    then have a file of their own, NAME.stdout.log beside NAME.log."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        on_line: Callable[[bytes], None] | None,
        on_exit: Callable[[int], None],
        spawn: Spawn,
    ) -> None:
        self.log = log
        self._words = words
        self._environment = environment
        self._on_line = on_line
        self._on_exit = on_exit
        self._spawn = spawn
        self._process: asyncio.subprocess.Process | None = None
        self._pipe: LinePipe | None = None
        self._is_over = False
        self._must_end = False

    async def start(self) -> None:
        """Raises InputError if the system cannot run the program."""
        if self._must_end:
            return
        starting = asyncio.ensure_future(self._begin())
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:  # the run ends while the system starts the process: it must end, too
            self._process = await starting
            await self.ended()
            raise
        except OSError as problem:
            raise InputError(f"--service: {self._words[0]}: {problem.strerror or problem}") from problem
        self._take(process)

    def _take(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        if self._must_end:
            self.send(signal.SIGKILL)
        self._spawn(self._follow(process))

    async def _begin(self) -> asyncio.subprocess.Process:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        pipe = None if self._on_line is None else LinePipe(self.log.with_suffix(".stdout.log"), self._on_line)
        try:
            with self.log.open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    *self._words,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log if pipe is None else pipe.write_end,
                    stderr=log,
                    env=self._environment,
                    start_new_session=True,  # a group of its own: signals of the terminal do not reach it
                )
        except BaseException:
            if pipe is not None:
                pipe.close()
            raise
        if pipe is not None:
            pipe.follow()
            self._pipe = pipe
        return process

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process and to those that it has started."""
        if self._process is not None and not self._is_over:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def ended(self) -> None:
        """Kill what is left of it, and wait for its end. It does not start any more."""
        self._must_end = True
        self.send(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()

    def last_line(self) -> str:
        """The last line of its log; "" if there is none."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        with suppress(ProcessLookupError):  # what it has started and left behind
            os.killpg(process.pid, signal.SIGKILL)
        self._is_over = True
        if self._pipe is not None:
            await self._pipe.ended()
        self._on_exit(code)


#: The longest line that is read as one.
_LINE_BYTES = 2**20
#: What a process has written is there when it has ended; only a child that lives on keeps the pipe open.
_LAST_LINES_S = 5.0


class LinePipe:
    """Takes the standard output of a process, line by line, into a log and to a listener.

    Give ``write_end`` to the process, then call `follow`, which closes it here. The pipe is our own: a
    process counts as ended when it ends, even if a child of its holds the pipe open.
    """

    def __init__(self, log: Path, on_line: Callable[[bytes], None]) -> None:
        self._log = log
        self._on_line = on_line
        self._read_end, self.write_end = os.pipe()
        self._reading: asyncio.Task[None] | None = None

    def follow(self) -> None:
        """Read from now on."""
        os.close(self.write_end)
        self._reading = asyncio.get_running_loop().create_task(self._read())

    def close(self) -> None:
        """Nobody has got the write end."""
        os.close(self.write_end)
        os.close(self._read_end)

    async def ended(self) -> None:
        """The process has ended: wait for its last lines."""
        assert self._reading is not None
        await asyncio.wait([self._reading], timeout=_LAST_LINES_S)
        if not self._reading.done():
            self._reading.cancel()
            await asyncio.wait([self._reading])
        if not self._reading.cancelled():
            self._reading.result()

    async def _read(self) -> None:
        reader = asyncio.StreamReader(limit=_LINE_BYTES)
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(self._read_end, "rb", buffering=0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            with self._log.open("ab", buffering=0) as log:
                while True:
                    try:
                        line = await reader.readline()
                    except ValueError:  # longer than a line about a record is: the reader has dropped it
                        continue
                    if not line:
                        return
                    log.write(line)
                    self._on_line(line)
        finally:
            transport.close()
