"""`groupstorm watch`: figures of the last minutes of a trace that is still being written."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from groupstorm.cli.printing import print_json, print_line, print_paragraph, print_progress
from groupstorm.problems import CheckFailed, InputError
from groupstorm.trace.topic import TopicAddress, check_bootstrap, check_topic
from groupstorm.units import duration_us
from groupstorm.watch.alerts import read_alert
from groupstorm.watch.prometheus import Collector, metrics_page
from groupstorm.watch.sources import FolderSource, TopicSource, TraceSource
from groupstorm.watch.watching import MICROSECONDS, Picture, Watch
from groupstorm.watch.watching import watch as watch_trace
from groupstorm.watch.wording import group_as_json, group_line, heading
from groupstorm.wording import some

#: A command of --on-alert that runs longer is ended: no picture is made meanwhile.
_COMMAND_SECONDS = 30


def watch(
    source: str,
    topic: str | None = None,
    window: str = "10m",
    every: str = "5s",
    checkpoint: Path | None = None,
    once: bool = False,
    as_json: bool = False,
    alert: list[str] | None = None,
    on_alert: str | None = None,
    exit_on_alert: bool = False,
    prometheus: int | None = None,
    prometheus_host: str = "127.0.0.1",
) -> None:
    """Watch a trace that is being written: figures of the last minutes, group by group.

    After a kill the next watch goes on from its checkpoint. A folder needs no Spark, a topic does.

    Example: groupstorm watch traces --window 1h --alert "generations>3 per 1h"
    """
    trace = _source(source, topic)
    alerts = [read_alert(text) for text in alert or ()]
    if not alerts and (on_alert is not None or exit_on_alert):
        raise InputError(f"{'--exit-on-alert' if exit_on_alert else '--on-alert'}: expected an --alert too")
    order = Watch(
        trace,
        trace.default_checkpoint if checkpoint is None else checkpoint.absolute(),
        _positive_us("--window", window),
        alerts,
        _positive_us("--every", every) / MICROSECONDS,
        once,
    )
    collector = Collector()
    with ExitStack() as stack:
        if prometheus is not None:
            page = stack.enter_context(metrics_page(collector, prometheus_host, prometheus))
            print_progress(f"metrics on {page}")
        watch_trace(order, _Watcher(order.window_us, as_json, _command(on_alert), exit_on_alert, collector))
    spans = {} if collector.picture is None else collector.picture.spans
    for one in alerts if once else ():  # exit code 0 says only that no alert is known to be on
        unknown = [each for each in spans[one.span_us] if getattr(each.figures, one.beyond.figure) is None]
        groups = [each.group for each in unknown]
        if groups:
            print_progress(f"--alert {one.text!r}: {one.beyond.figure} is not known of {some(groups)}")


def _source(written: str, topic: str | None) -> TraceSource:
    if topic is None:
        return FolderSource(Path(written))
    check_bootstrap("HOST:PORT:", written)
    check_topic("--topic", topic)
    return TopicSource(TopicAddress(written, topic))


class _Watcher:
    """Prints pictures and hands them on."""

    def __init__(
        self,
        window_us: int,
        as_json: bool,
        command: Sequence[str],
        exit_on_alert: bool,
        collector: Collector,
    ) -> None:
        self._window_us = window_us
        self._as_json = as_json
        self._command = command
        self._exit_on_alert = exit_on_alert
        self._collector = collector

    def reading(self, rows: int) -> None:
        print_progress(f"reading the rows that are there: {rows:,} so far")

    def show(self, picture: Picture) -> None:
        self._collector.picture = picture
        groups = picture.spans[self._window_us]
        if self._as_json:
            for one in groups:
                print_json(group_as_json(one, picture, self._window_us))
        else:
            print_paragraph(heading(picture, self._window_us), emphasized=True)
            for one in groups:
                print_paragraph(group_line(one))
        for change in picture.changes:
            if self._as_json:
                print_json(change.to_json())
            else:
                print_line(str(change))
        if not self._as_json:
            print()
        sys.stdout.flush()
        for change in picture.changes:
            if self._command:
                _run(self._command, json.dumps(change.to_json(), ensure_ascii=False))
        if self._exit_on_alert and picture.active:
            raise CheckFailed("; ".join(f"{group}: {alert}" for alert, group in sorted(picture.active)))


def _command(written: str | None) -> list[str]:
    """The words of a command. Raises InputError."""
    if written is None:
        return []
    try:
        words = shlex.split(written)
    except ValueError as problem:
        raise InputError(f"--on-alert {written!r}: {problem}") from problem
    if not words:
        raise InputError("--on-alert: expected a command")
    return words


def _run(command: Sequence[str], text: str) -> None:
    """Run a command, without a shell. What goes wrong is one line on standard error: the watch goes on."""
    try:
        # its output must not come between our lines
        done = subprocess.run(
            command, input=f"{text}\n", text=True, stdout=2, timeout=_COMMAND_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        print_progress(f"--on-alert: {command[0]} was ended after {_COMMAND_SECONDS} s")
    except OSError as problem:
        print_progress(f"--on-alert: {command[0]} cannot be run: {problem.strerror or problem}")
    else:
        if done.returncode:
            print_progress(f"--on-alert: {command[0]} ended with exit code {done.returncode}")


def _positive_us(option: str, written: str) -> int:
    found = duration_us(option, written, MICROSECONDS)
    if not found:
        raise InputError(f"{option} {written}: expected more than 0")
    return found
