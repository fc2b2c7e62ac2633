"""`./dev oracle streams`: `groupstorm assign --mode streams` against the task assignors of Kafka Streams."""

from __future__ import annotations

import argparse

from tests.oracle.assignors import running
from tests.oracle.streams.side import STREAMS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    running.add_arguments(parser, STREAMS)


def run(options: argparse.Namespace) -> int:
    """0: no difference; 1: one at least."""
    return running.run(options, STREAMS)
