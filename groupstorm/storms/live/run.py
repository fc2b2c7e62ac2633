"""A run in real time, and its files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from groupstorm.clients.brokers import BrokerKind, open_broker
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.problems import InputError
from groupstorm.storms.ending import Progress
from groupstorm.storms.live.play import play
from groupstorm.storms.run import Run, chosen_assignors, record
from groupstorm.storms.scenario import ResolvedScenario
from groupstorm.trace.rows import TraceSink


def run_on(
    scenario: ResolvedScenario,
    folder: Path,
    trace_format: str,
    kind: BrokerKind,
    progress: Progress | None = None,
    log: TraceSink | None = None,
) -> Run:
    """Run against a broker and write the same files as a run in virtual time into ``folder``.

    Time is real: another run of the same seed does the same, not at the same microseconds. Raises
    InputError for a folder that holds something else, a scenario that cannot be played in real time
    and a broker that cannot be had.
    """
    _ = chosen_assignors(scenario)  # before a broker is started
    try:
        opening = partial(open_broker, kind)
        return record(
            scenario, folder, trace_format, lambda sink: play(scenario, opening, sink, progress), log
        )
    except (BrokerUnavailable, ConnectionLost) as missing:
        raise InputError(f"--on {kind.name}: {missing}") from missing
