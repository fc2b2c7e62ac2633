"""An assignor under test: within a limit of CPU time, and in other processes.

Python's strings have other hashes there. An assignor that walks a set of strings has another answer: on one
machine the leader gives a partition to one member, on the next machine to another.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from groupstorm.assignors import registry
from groupstorm.assignors.check.checking import Elsewhere, transcript
from groupstorm.assignors.check.history import History
from groupstorm.assignors.check.rendering import history_from_json, history_to_json
from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    Assignor,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.userdata import Subscription, TopicPartition
from groupstorm.held_signals import stop_signals_held
from groupstorm.problems import CheckFailed

#: The error in the place of an answer that does not come.
NO_ANSWER = "NoAnswer"

#: A plug-in may catch what it is broken off with: it is broken off again and again.
_AGAIN_S = 0.05


class _BrokenOff(BaseException):
    """Out of the assignor: no `Exception`, so that it passes through handlers of errors."""


class Limited:
    """``assignor``, refusing with `NO_ANSWER` after ``limit_ms`` of CPU time in one call.

    Works in the main thread of a process (signals go nowhere else), and while Python code runs.
    """

    def __init__(self, assignor: Assignor, limit_ms: int) -> None:
        self._assignor = assignor
        self._limit_ms = limit_ms

    def __getattr__(self, name: str) -> Any:
        return getattr(self._assignor, name)

    @property
    def name(self) -> str:
        return self._assignor.name

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]:
        return self._assignor.protocols

    @property
    def needs_equal_subscriptions(self) -> bool:
        return self._assignor.needs_equal_subscriptions

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """The assignor's own user data."""
        return self._assignor.user_data(owned, generation)

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """The assignor's answer, or `AssignmentRefused`."""
        try:
            with _cpu_time(self._limit_ms / 1000):
                return self._assignor.assign(topics, subscriptions)
        except _BrokenOff:
            raise AssignmentRefused(NO_ANSWER, f"none within {self._limit_ms:,} ms of CPU time") from None


@contextmanager
def _cpu_time(limit_s: float) -> Iterator[None]:
    """`_BrokenOff` in the block after so many seconds of CPU time."""

    def break_off(_signal: int, _frame: FrameType | None) -> None:
        raise _BrokenOff

    before: Callable[[int, FrameType | None], Any] | int | None = signal.signal(signal.SIGPROF, break_off)
    try:
        signal.setitimer(signal.ITIMER_PROF, limit_s, _AGAIN_S)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


HASH_SEEDS = (1, 2)


@contextmanager
def other_processes(name: str, order: MapOrder, bug_compat: bool, limit_ms: int) -> Iterator[list[Elsewhere]]:
    """One process for each hash seed, to be asked for transcripts; gone behind the block."""
    command = [sys.executable, "-P", "-m", __name__, name, order, str(int(bug_compat)), str(limit_ms)]
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    running: list[subprocess.Popen[bytes]] = []
    try:
        for seed in HASH_SEEDS:
            environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": path}
            with stop_signals_held():
                running.append(
                    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
                )
        yield [_asking(process) for process in running]
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _asking(process: subprocess.Popen[bytes]) -> Elsewhere:
    def ask(history: History) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(history_to_json(history)).encode() + b"\n")
            process.stdin.flush()
        answer = process.stdout.readline().decode().rstrip("\n")
        if not answer:
            raise CheckFailed("the assignor ended its process: with another hash seed there is no answer")
        return answer

    return ask


def main(name: str, order: str, bug_compat: str, limit_ms: str) -> None:
    """Transcripts out for histories in, a line each. What a plug-in prints goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    assignor = Limited(
        registry.get(name, order=MapOrder(order), bug_compat=bool(int(bug_compat))), int(limit_ms)
    )
    for line in sys.stdin:
        answers.write(transcript(assignor, history_from_json(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
