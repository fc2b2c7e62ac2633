"""Asks an assignor in other processes, where Python's strings have other hashes.

An assignor that walks a set of strings has another answer there: on one machine the leader gives a
partition to one member, on the next machine to another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from groupstorm.assignors import registry
from groupstorm.assignors.check.checking import Elsewhere, transcript
from groupstorm.assignors.check.history import History
from groupstorm.assignors.check.rendering import history_from_json, history_to_json
from groupstorm.assignors.contract import MapOrder
from groupstorm.cli.cpu_limit import Limited
from groupstorm.held_signals import stop_signals_held
from groupstorm.problems import CheckFailed

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
