"""One recording: a broker of one release, the members of one library, the logs of all of them."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from groupstorm.clients.brokers.jvm import jvm
from groupstorm.clients.wire.admin import create_topics
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint
from tests.imports.recording.group import PARTITIONS, RecordedGroup
from tests.imports.recording.logging_files import broker_logging
from tests.imports.recording.members import RecordingFailed
from tests.imports.recording.programs import assignors, command, order
from tests.imports.recording.releases import Clients, broker_options, client_version
from tests.imports.recording.situation import (
    DYNAMIC,
    SEATS,
    STATIC,
    Situation,
    dynamic_members,
    static_members,
)
from tests.imports.recording.written import written

RECORDED = "recorded.json"
SERVER_LOG = "server.log"
#: A usual data folder of brokers, so that the logs name none of this machine's.
DATA = Path("/tmp/kafka-logs")

#: How long a broker that has started may take until it has a place for a topic.
_READY_S, _LOOK_S = 20.0, 0.2


async def record(release: str, clients: Clients, out: Path) -> None:
    """Record the situation into the folder ``out``.

    Raises BrokerUnavailable or InputError if something is not installed, RecordingFailed if the members do
    not do what they are asked for.
    """
    if DATA.exists():
        raise RecordingFailed(f"{DATA} exists: is another recording running?")
    with tempfile.TemporaryDirectory(prefix="groupstorm-recording-") as temporary:
        folder = Path(temporary)
        logs = folder / "logs"
        logs.mkdir()
        try:
            groups = await _run(release, clients, folder, logs)
            recorded = _recorded(release, clients, groups)
        finally:
            shutil.rmtree(DATA, ignore_errors=True)
        _keep(logs, recorded, out)


async def _run(release: str, clients: Clients, folder: Path, logs: Path) -> list[RecordedGroup]:
    start = command(clients, release, folder)
    logging = broker_logging(release, folder, logs / SERVER_LOG)
    options = {**broker_options(release), "log.dirs": str(DATA)}
    groups: list[RecordedGroup] = []
    async with jvm(options, release, logging) as broker:
        await _create_topic(broker.bootstrap)
        situations: tuple[tuple[str, Mapping[str, str], Situation], ...] = (
            (DYNAMIC, {}, dynamic_members),
            (STATIC, SEATS, static_members),
        )
        for (name, instances, situation), assignor in zip(situations, assignors(clients), strict=True):
            ordered = partial(order, clients, broker.address, name, assignor)
            group = RecordedGroup(name, instances, start, ordered, logs)
            groups.append(group)
            try:
                await situation(group)
            finally:
                await group.end()
    return groups


async def _create_topic(bootstrap: Sequence[Endpoint]) -> None:
    cluster = ClusterClient(bootstrap, "recording", 30_000)
    deadline_s = time.monotonic() + _READY_S
    try:
        while True:
            try:
                await create_topics(cluster, {"orders": len(PARTITIONS)})
                return
            except InputError:  # the broker has not registered with its controller
                if time.monotonic() > deadline_s:
                    raise
                await asyncio.sleep(_LOOK_S)
    finally:
        cluster.close()


def _recorded(release: str, clients: Clients, groups: list[RecordedGroup]) -> dict[str, Any]:
    records = written(DATA)
    return {
        "kafka": release,
        "clients": client_version(clients, release),
        "protocol": str(clients.protocol),
        "groups": {
            group.name: {
                "actions": group.actions,
                "reports": group.reports,
                "written": records.get(group.name, []),
            }
            for group in groups
        },
    }


def _keep(logs: Path, recorded: dict[str, Any], out: Path) -> None:
    """Write the logs, packed, and what was seen; an older recording goes."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for log in sorted(logs.iterdir()):
        (out / f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes(), mtime=0))
    lines = json.dumps(recorded, indent=1, sort_keys=True)
    (out / f"{RECORDED}.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
