"""`groupstorm import` and `groupstorm capture`: a trace from logs and __consumer_offsets, or from a running
cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from groupstorm.cli.printing import print_command, print_line, print_paragraph, print_progress
from groupstorm.imports.envelopes import user_envelope
from groupstorm.imports.importing import Options, import_sources, sources_of
from groupstorm.imports.lines import find_logs
from groupstorm.imports.output import Imported, check_folder
from groupstorm.imports.source import LogSource, shapes_of
from groupstorm.imports.timeline.summary import GroupSummary
from groupstorm.imports.times import Instant, instant, shown, zone
from groupstorm.problems import InputError
from groupstorm.units import duration_us
from groupstorm.wording import counted, seconds

if TYPE_CHECKING:
    from groupstorm.imports.capture.shell import Progress

_T = TypeVar("_T")
_SHAPES_SHOWN = 40
_NUMBERS = {"y": "year", "m": "month", "d": "day"}


def import_(
    sources: list[str],
    out: Path,
    group: list[str] | None = None,
    time_zone: list[str] | None = None,
    pattern: str | None = None,
    at: list[str] | None = None,
    day: list[str] | None = None,
    trace_format: str = "jsonl",
    unknown: bool = False,
) -> None:
    """Make a trace from the logs of Kafka brokers and clients, and from __consumer_offsets.

    A broker's log has the rounds of every group, with causes and members. A client's log has what it was
    assigned; the log of a group's leader has that of all members. __consumer_offsets has every generation
    with all assignments, and every commit. Give all that you have: generations say how the clocks go
    together. What no source says stays unknown, and figures that need it are refused.

    Example: groupstorm import server.log app-logs/ --out imported && groupstorm trace imported
    """
    options = Options(
        _by_source(time_zone, lambda name: zone("--time-zone", name)),
        None if pattern is None else user_envelope(pattern),
        frozenset(group) if group else None,
        trace_format,
        _by_source(at, _time),
        _by_source(day, _date),
    )
    logs = sources_of(find_logs(sources), options)
    try:
        done = import_sources(logs, out, options)
    except InputError:
        if unknown:
            _print_unknown(logs)
        raise
    _print_imported(done, out)
    if unknown:
        _print_unknown(logs)
    elif any(log.not_understood for log in done.logs):
        count = sum(log.not_understood for log in done.logs)
        print_paragraph(f"{counted(count, 'line')} of Kafka's not understood: --unknown shows them.")


def _print_imported(done: Imported, out: Path) -> None:
    """Print a summary of the sources and of each group, and where the trace is."""
    for log in done.logs:
        print_paragraph(_log(log, done))
    print()
    for record in done.groups:
        print_paragraph(_group(record))
        for sentence in _missing(record):
            print_paragraph(f"  missing: {sentence}")
    print()
    from_to = [shown(us, done.lacks) for us in (done.began_us, done.ended_us)]
    when = "at an unknown time" if done.lacks == "time" else f"from {' to '.join(from_to)} UTC"
    print_paragraph(f"{counted(done.rows, 'row')} {when}; files in {out}")
    if done.lacks in ("date", "year"):
        print_paragraph(
            f"The {done.lacks} is not known, as the times print none: give the date of the first line with "
            "--date 2026-01-31, or of one log with --date NAME=2026-01-31."
        )
    print_command("The story of it:", "trace", str(out))


def _by_source(options: Sequence[str] | None, read: Callable[[str], _T]) -> dict[str, _T]:
    """Values of options written as SOURCE=VALUE, or as VALUE for all other sources."""
    split = [written.rpartition("=") for written in options or ()]
    return {source if equals else "": read(value) for source, equals, value in split}


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as problem:
        raise InputError(f"--date: {text!r} is no date: expected one as 2026-01-31") from problem


def _time(text: str) -> Instant:
    said = instant(text)
    if said is None or said.lacks:
        raise InputError(f"--at: {text!r} is no time: expected one as 2026-01-31T12:00:00Z")
    return said


def _log(log: LogSource, done: Imported) -> str:
    offset = done.offsets[log.number]
    parts = [f"{log.log.name}: {counted(log.lines, log.unit)}, {log.understood:,} about groups"]
    writers = sorted(map(str, log.writers))
    if writers:
        parts.append(f"of {' and '.join(writers)}")
    if not log.clock.zoned:
        parts.append("its times name no zone")
    if log.clock.assumed_order:
        order = "-".join(_NUMBERS[letter] for letter in log.clock.assumed_order)
        parts.append(f"its dates are taken as {order}, as nothing in it says their order")
    if offset.us:
        parts.append(f"its clock is {seconds(abs(offset.us) / 1e6)} {'ahead' if offset.us > 0 else 'behind'}")
    if offset.contradiction:
        hosts = "or it is the log of two hosts: give one log per host"
        parts.append(f"its clock was set meanwhile (if summer time ended: give --time-zone), {hosts}")
    if log.untimed:
        parts.append(f"{counted(log.untimed, 'line')} without a time left out")
    parts += log.damage
    return ", ".join(parts)


def _group(record: GroupSummary) -> str:
    rounds = record.rounds_known + record.rounds_unknown
    described = f"described {counted(record.descriptions, 'time')}"
    if not record.is_only_described:
        parts = [] if record.epochs and not record.longest_us else [counted(rounds, "round")]
        parts += [counted(record.epochs, "epoch")] if record.epochs else []
        parts += [described] if record.descriptions else []
    elif not record.has_members:
        parts = [described, "it had no members: does the cluster know a consumer group of this name?"]
    elif record.descriptions > 1:
        seen = counted(record.rebalances_seen, "rebalance")
        parts = [
            described,
            f"at least {seen} in between" if record.rebalances_seen else "no rebalance seen",
        ]
    else:
        parts = [described]
    if record.longest_us:
        parts.append(f"the longest took {seconds(record.longest_us / 1e6)} until the assignment was there")
    if record.rounds_known:
        part = " in a part of the time" if record.rounds_unknown else ""
        known = part if record.epochs else f" in {record.rounds_known}"
        parts.append(f"the owners are known{known}, by the rows of the {record.view}")
    return f"group {record.name}: {', '.join(parts)}"


def _missing(record: GroupSummary) -> list[str]:
    return [
        f"{sentence} (and {counted(count - 1, 'more time')})" if count > 1 else sentence
        for count, sentence in record.missing.values()
    ]


def _print_unknown(logs: Sequence[LogSource]) -> None:
    shapes = shapes_of(logs)
    if not shapes:
        understood, lines = sum(log.understood for log in logs), sum(log.lines for log in logs)
        text = f"Every line that looks like Kafka's is understood: {understood:,} of {lines:,} lines."
        print_paragraph(text if understood else "No line looks like Kafka's.")
    for count, first, place in shapes[:_SHAPES_SHOWN]:
        print_line(f"{count:8,}  {place}: {first}")
    if len(shapes) > _SHAPES_SHOWN:
        print_paragraph(f"... and {len(shapes) - _SHAPES_SHOWN:,} other kinds of lines")


_SECOND_US = 1_000_000


def capture(
    cluster: str,
    group: list[str],
    out: Path,
    duration: str = "10m",
    every: str = "5s",
    client_config: Path | None = None,
    trace_format: str = "jsonl",
) -> None:
    """Watch consumer groups of a running cluster, and write a trace as import does.

    Nothing is written to the cluster. If the user may read __consumer_offsets, every generation and commit
    comes from there; if not, the groups are described every few seconds, and rows say between which two times
    a change lies. Ctrl-C ends the capture, which keeps what it has.

    Example: groupstorm capture broker:9092 --group payments --for 10m --out captured
    """
    from groupstorm.clients.brokers.contract import read_addresses
    from groupstorm.clients.wire.security import PLAINTEXT, read_client_properties
    from groupstorm.imports.capture.shell import Progress, Watch
    from groupstorm.imports.capture.shell import capture as watch_cluster

    watch = Watch(
        read_addresses(cluster),
        group,
        duration_us("--for", duration, _SECOND_US) / _SECOND_US,
        _at_least_100_ms(duration_us("--every", every, _SECOND_US)) / _SECOND_US,
        PLAINTEXT if client_config is None else read_client_properties(client_config),
    )
    check_folder(out)
    progress = Progress(told=_tell)
    sources = watch_cluster(watch, progress)
    if progress.without_records:
        print_paragraph(f"{progress.without_records}: the groups were described every {every} instead.")
    done = import_sources(sources, out, Options(groups=frozenset(group), trace_format=trace_format))
    _print_imported(done, out)


def _at_least_100_ms(interval_us: int) -> int:
    if interval_us < 100_000:
        raise InputError("--every: expected 100ms or more")
    return interval_us


def _tell(progress: Progress) -> None:
    print_progress(f"  {counted(progress.polls, 'answer')}, {counted(progress.records, 'record')}")
