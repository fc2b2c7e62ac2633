"""One recording: two brokers of one release, the members of one library, the logs of all of them."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.imports.recording.brokers import two_brokers
from tests.imports.recording.group import RecordedGroup
from tests.imports.recording.members import RecordingFailed
from tests.imports.recording.programs import assignors, command, order
from tests.imports.recording.releases import Clients, broker_options, client_version
from tests.imports.recording.situation import SCENES
from tests.imports.recording.written import written

RECORDED = "recorded.json"
SERVER_LOG = "server.log"
#: A usual data folder of brokers, so that the logs name none of this machine's.
DATA = Path("/tmp/kafka-logs")


async def record(release: str, clients: Clients, out: Path) -> None:
    """Record the situation into the folder ``out``.

    Raises BrokerUnavailable or InputError if something is not installed, RecordingFailed if the members do
    not do what they are asked for.
    """
    with folder_of_recording() as (folder, logs):
        groups = await _run(release, clients, folder, logs)
        keep(logs, _recorded(release, clients, groups), out)


@contextmanager
def folder_of_recording() -> Iterator[tuple[Path, Path]]:
    """A folder, and one for logs in it; it goes in the end, and so does the brokers' ``DATA``."""
    if DATA.exists():
        raise RecordingFailed(f"{DATA} exists: is another recording running?")
    with tempfile.TemporaryDirectory(prefix="groupstorm-recording-") as temporary:
        logs = Path(temporary) / "logs"
        logs.mkdir()
        try:
            yield logs.parent, logs
        finally:
            shutil.rmtree(DATA, ignore_errors=True)


async def _run(release: str, clients: Clients, folder: Path, logs: Path) -> list[RecordedGroup]:
    start = command(clients, release, folder)
    groups: list[RecordedGroup] = []
    async with two_brokers(broker_options(release), release, folder, logs, DATA) as brokers:
        for scene in SCENES:
            assignor = assignors(clients)[bool(scene.instances)]
            ordered = partial(order, clients, brokers.address, scene.group, assignor)
            group = RecordedGroup(scene.group, scene.instances, start, ordered, logs, brokers.fail_over)
            groups.append(group)
            try:
                await scene.situation(group)
            finally:
                await group.end()
    return groups


def _recorded(release: str, clients: Clients, groups: list[RecordedGroup]) -> dict[str, Any]:
    records = written(DATA / "1")
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


def keep(logs: Path, recorded: dict[str, Any], out: Path, changed: Callable[[bytes], bytes] = bytes) -> None:
    """Write the logs, ``changed`` and packed, and what was seen; an older recording goes."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for log in sorted(logs.iterdir()):
        (out / f"{log.name}.gz").write_bytes(gzip.compress(changed(log.read_bytes()), mtime=0))
    lines = json.dumps(recorded, indent=1, sort_keys=True)
    (out / f"{RECORDED}.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
