"""A process of a service, in a process group of its own: started, signalled, and always ended; and an
instance of the service, as the steps of a scenario see it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.problems import InputError
from groupstorm.storms.live.clock import Spawn
from groupstorm.storms.runs.scenario_host import Timetable

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


class InstanceHost(Protocol):
    """The parts of the run that an instance needs."""

    @property
    def clock(self) -> Timetable: ...

    @property
    def owned(self) -> Mapping[str, tuple[TopicPartition, ...]]:
        """Client id -> the partitions that the broker has given to it."""
        ...

    def new_service_process(self, instance: ServiceInstance) -> ServiceProcess: ...

    def spawn(self, work: Any) -> object: ...

    def cut_off(self, client_id: str, for_us: int) -> None: ...

    def instance_started(self, instance: ServiceInstance) -> None: ...

    def instance_gone(self, instance: ServiceInstance, code: int) -> None: ...


class ServiceInstance:
    """One process of the service under the name of its client.id: a `ConsumerProcess` of the steps."""

    def __init__(self, host: InstanceHost, index: int, name: str, instance_id: str) -> None:
        self.index = index
        self.name = name
        self.instance_id = instance_id
        self.alive = False
        self.started = False
        #: A step or the end of the run has ended it: its exit is no surprise.
        self.is_stopping = False
        self.on_exit: Callable[[], None] | None = None
        self.process = host.new_service_process(self)
        self._host = host

    @property
    def work(self) -> ServiceInstance:
        """The instance itself, which owns its partitions."""
        return self

    @property
    def pauses(self) -> ServiceInstance:
        """The instance itself, which stands still."""
        return self

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that the broker has given to it."""
        return self._host.owned.get(self.name, ())

    def start(self) -> None:
        self.alive = self.started = True
        self._host.instance_started(self)
        self._host.spawn(self.process.start())

    def stop(self) -> None:
        """SIGTERM."""
        self.is_stopping = True
        self.process.send(signal.SIGTERM)
        self.process.send(signal.SIGCONT)  # a process that stands still takes no other signal

    def crash(self) -> None:
        """SIGKILL."""
        self.is_stopping = True
        self.process.send(signal.SIGKILL)

    def disconnect(self, duration_us: int) -> None:
        self._host.cut_off(self.name, duration_us)

    def gone(self, code: int) -> None:
        """The process has ended."""
        self.alive = False
        self._host.instance_gone(self, code)
        if self.on_exit is not None:
            self.on_exit()

    def pause(self, duration_us: int) -> None:
        """SIGSTOP, and SIGCONT when the time is over."""
        self.process.send(signal.SIGSTOP)
        self._host.clock.after(duration_us, self.process.send, signal.SIGCONT)

    def busy(self, duration_us: int) -> None:
        """Raises InputError: nobody can make another one's program work longer."""
        raise InputError(f"busy for {duration_us // 1000} ms: a service of your own takes its own time")
