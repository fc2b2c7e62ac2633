"""`groupstorm capture`: watch groups of a running cluster, and make a trace of what it says."""

from __future__ import annotations

from pathlib import Path

from groupstorm.cli.import_logs import print_imported
from groupstorm.cli.printing import print_paragraph, print_progress
from groupstorm.clients.brokers.contract import read_addresses
from groupstorm.clients.wire.security import PLAINTEXT, read_client_properties
from groupstorm.imports.capture.shell import Progress, Watch
from groupstorm.imports.capture.shell import capture as watch_cluster
from groupstorm.imports.importing import Options, import_sources
from groupstorm.imports.output import check_folder
from groupstorm.problems import InputError
from groupstorm.units import duration_us
from groupstorm.wording import counted

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
    print_imported(done, out)


def _at_least_100_ms(interval_us: int) -> int:
    if interval_us < 100_000:
        raise InputError("--every: expected 100ms or more")
    return interval_us


def _tell(progress: Progress) -> None:
    print_progress(f"  {counted(progress.polls, 'answer')}, {counted(progress.records, 'record')}")
