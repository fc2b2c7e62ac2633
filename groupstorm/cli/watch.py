"""`groupstorm watch`: figures of the last minutes of a trace that is still being written."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from groupstorm.cli.printing import print_json, print_line, print_paragraph, print_progress
from groupstorm.cli.serve import LAST_PORT
from groupstorm.problems import CheckFailed, InputError
from groupstorm.trace.topic import TopicAddress, check_bootstrap, check_topic
from groupstorm.units import duration_us
from groupstorm.watch.alerts import read_alert
from groupstorm.watch.as_json import group_as_json
from groupstorm.watch.prometheus import Collector, metrics_page
from groupstorm.watch.sources import FolderSource, TopicSource, TraceSource
from groupstorm.watch.watching import MICROSECONDS, Picture, Watch
from groupstorm.watch.watching import watch as watch_trace
from groupstorm.watch.wording import group_line, heading

#: A command of --on-alert that runs longer is ended: no picture is made meanwhile.
_COMMAND_SECONDS = 30


def watch(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DIR|HOST:PORT",
            help="The folder of serve --trace, run --trace or a run; or a broker, with --topic.",
        ),
    ],
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", metavar="TOPIC", help="Read the rows that --trace-to produces to this topic."
        ),
    ] = None,
    window: Annotated[
        str,
        typer.Option("--window", metavar="TIME", help="The figures are of so long until now: 30s, 10m, 1h."),
    ] = "10m",
    every: Annotated[str, typer.Option("--every", metavar="TIME", help="How often to print them.")] = "5s",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FOLDER",
            help="What a later watch goes on from; without it DIR.watch beside DIR, or TOPIC.watch here.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Read the rows that are there, print, and end.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line: of each group, and of each alert.")
    ] = False,
    alert: Annotated[
        list[str] | None,
        typer.Option(
            "--alert",
            metavar="FIGURE>NUMBER per TIME",
            help="Print ALERT when a group's figure goes beyond a limit, and when it is back (repeatable).",
        ),
    ] = None,
    on_alert: Annotated[
        str | None,
        typer.Option(
            "--on-alert",
            metavar="COMMAND",
            help="Run this for each alert that begins or is over; standard input: the alert as JSON.",
        ),
    ] = None,
    exit_on_alert: Annotated[
        bool, typer.Option("--exit-on-alert", help="End with exit code 1 as soon as an alert is on.")
    ] = False,
    prometheus: Annotated[
        int | None,
        typer.Option(
            "--prometheus",
            metavar="PORT",
            min=0,
            max=LAST_PORT,
            help="Serve the figures for Prometheus over HTTP; 0: a free port.",
        ),
    ] = None,
    prometheus_host: Annotated[
        str, typer.Option("--prometheus-host", metavar="ADDRESS", help="Where to listen for that.")
    ] = "127.0.0.1",
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
