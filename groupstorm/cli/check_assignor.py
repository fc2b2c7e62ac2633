"""`groupstorm check-assignor`: the properties that an assignor promises, on random histories.

The assignor answers within a limit of CPU time, and in other processes, too. Python's strings have other
hashes there. An assignor that walks a set of strings has another answer: on one machine the leader gives a
partition to one member, on the next machine to another.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from groupstorm.assignors import registry
from groupstorm.assignors.check.checking import Elsewhere, Report, Speed, check, drawn, measure, transcript
from groupstorm.assignors.check.history import History
from groupstorm.assignors.check.properties import Verdict
from groupstorm.assignors.check.rendering import history_from_json, history_to_json, report_to_json
from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    Assignor,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.userdata import Subscription, TopicPartition
from groupstorm.cli.printing import print_json
from groupstorm.held_signals import stop_signals_held
from groupstorm.problems import CheckFailed
from groupstorm.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

#: Answers to large groups may take longer than those to the small ones of histories.
SPEED_LIMIT_MS = 20_000


def check_assignor(
    name: str,
    seed: int = 0,
    count: int = 200,
    limit_ms: int = 1_000,
    order: MapOrder = MapOrder.JAVA_HASH,
    bug_compat: bool = False,
    speed: bool = True,
    every: bool = False,
    as_json: bool = False,
) -> None:
    """Play random histories of a group with an assignor and hold it to its promises.

    Members join, leave, return, miss an assignment and change their subscriptions; topics grow, disappear and
    return smaller. The command prints every property, and for a broken one the smallest failing history that
    it finds. It exits with 1 if a promise is broken.
    """
    from rich.console import Console  # the other processes of the check need none of it
    from rich.markup import escape as markup_escape

    assignor = registry.get(name, order=order, bug_compat=bug_compat)
    limited = Limited(assignor, limit_ms)
    console = Console(stderr=as_json)
    shown = markup_escape(visible(assignor.name))
    with (
        redirect_stdout(sys.stderr),  # what a plug-in prints is no part of the report
        console.status(f"{shown}: {count} histories") as status,
        other_processes(name, order, bug_compat, limit_ms) as elsewhere,
    ):
        report = check(
            limited,
            drawn(limited, seed, count),
            elsewhere,
            lambda done: status.update(f"{shown}: {done} of {count} histories"),
        )
        status.update(f"{shown}: how fast is it?")
        speeds = list(measure(Limited(assignor, SPEED_LIMIT_MS), time.process_time_ns)) if speed else []
    if as_json:
        print_json(report_to_json(report) | {"seed": seed, "speed": _to_json(speeds)})
    else:
        _print(console, limited, report, speeds, every)
    broken = [finding.name for finding in report.findings if finding.verdict is Verdict.BROKEN]
    if broken:
        raise CheckFailed(f"{assignor.name} breaks its promises: {', '.join(broken)}")


def _to_json(speeds: Sequence[Speed]) -> list[dict[str, Any]]:
    return [row.size._asdict() | {k: v for k, v in row._asdict().items() if k != "size"} for row in speeds]


def _print(
    console: Console, assignor: Assignor, report: Report, speeds: Sequence[Speed], every: bool
) -> None:
    from groupstorm.report.assignor_check import failures, findings_table, speed_table, summary

    console.print(findings_table(report))
    console.print(summary(report), highlight=False)
    if speeds:
        console.print(speed_table(speeds))
    for line in failures(assignor, report, every):
        console.print(visible(line), highlight=False, markup=False, soft_wrap=True)


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
