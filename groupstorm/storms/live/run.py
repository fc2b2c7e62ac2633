"""A run in real time, and its files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from groupstorm.clients.brokers import BrokerKind, open_broker
from groupstorm.clients.brokers.contract import BrokerUnavailable, refused
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.storms.live.play import play
from groupstorm.storms.live.real_clients.libraries import Library
from groupstorm.storms.runs.run import Run, chosen_assignors, record
from groupstorm.storms.runs.start_and_end import Progress
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.trace.rows import TraceSink


def run_on(
    scenario: ResolvedScenario,
    folder: Path,
    trace_format: str,
    kind: BrokerKind,
    progress: Progress | None = None,
    log: TraceSink | None = None,
    clients: Library | None = None,
) -> Run:
    """Run against a broker and write the same files as a run in virtual time into ``folder``.

    ``clients``: the library whose consumers are the members; None: our own wire members.
    Time is real: another run of the same seed takes the same steps, not at the same microseconds. Raises
    InputError for a folder that holds something else, a scenario that cannot run in real time and a broker
    that cannot be reached.
    """
    _ = chosen_assignors(scenario)  # before a broker is started
    if clients is not None:
        clients.check_settings(scenario.settings)
    try:
        opening = partial(open_broker, kind)
        return record(
            scenario,
            folder,
            trace_format,
            lambda sink: play(scenario, opening, sink, progress, clients),
            log,
            real_time={"on": kind.name} | ({} if clients is None else {"with": clients.name}),
        )
    except (BrokerUnavailable, ConnectionLost) as missing:
        raise refused(kind.name, missing) from missing
