"""`./dev print-log`: a trace as a log of Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from groupstorm.cli.printing import print_line
from groupstorm.trace.reader import read_rows
from tools.command import run_tool
from tools.log_printing.logs import LogKind, as_log


def print_log(
    path: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="A run's folder, or a trace.")],
    kind: Annotated[LogKind, typer.Option("--as", help="Whose log.")] = LogKind.BROKER,
) -> None:
    """Print a trace as the log that Kafka's broker, or its Java clients, would have written.

    Example: ./dev print-log runs/rolling-deploy-0 --as java-log
    """
    for line in as_log(read_rows(path), kind):
        print_line(line)


if __name__ == "__main__":
    run_tool("print-log", print_log)
