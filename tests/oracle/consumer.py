"""`./dev oracle consumer`: `groupstorm assign` against the assignors of Kafka's consumer."""

from __future__ import annotations

import argparse

from tests.oracle.assignors import running
from tests.oracle.assignors.sides import CONSUMER


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    running.add_arguments(parser, CONSUMER)


def run(options: argparse.Namespace) -> int:
    """0: no difference; 1: one at least."""
    return running.run(options, CONSUMER)
