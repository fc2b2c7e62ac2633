"""The requests of a profile's emulated members in the situations of a recording, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from groupstorm.coordinator.messages import (
    ConsumerGroupHeartbeat,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    OffsetCommit,
    Request,
    Response,
    SyncGroup,
)
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.scenario.files import parse
from groupstorm.storms.scenario.setting_names import BACKGROUND, NEVER
from groupstorm.storms.scenario.settings import BY_NAME
from groupstorm.storms.world.broker import VirtualBroker
from groupstorm.storms.world.simulation import simulate
from tests.client_profiles.recording import PARTITIONS, Recording, Session
from tests.client_profiles.wiretap import Json, subscription, without_ids
from tests.storms.storms_in_memory import MemorySink

#: Latencies decide races: with these seeds as in the recordings. "" stands for all other recordings.
SEEDS: Mapping[str, int] = {"java.cooperative-sticky": 0, "": 5}
NAMES = {"first": "member-0", "second": "member-1"}


def emulate(session: Session, recording: Recording, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Json]]:
    """Rows as in a recording, without the actions on the processes.

    In cooperative rounds a SyncGroup races with another member's next JoinGroup, see `SEEDS`.
    """
    seed = SEEDS.get(session.name, SEEDS[""])
    rows: list[dict[str, Json]] = []
    who = {name: who for who, name in NAMES.items()}

    def note(broker: VirtualBroker, request: Request) -> None:
        fields_of = _FIELDS.get(type(request))
        if fields_of is not None:
            fields = {"api": type(request).__name__, "v": request.version, **fields_of(request)}
            sender = who[getattr(request, "client_id", "")]
            rows.append({"ms": broker.clock.now_us // 1000, "who": sender, **fields})

    handle = VirtualBroker.handle

    def handling(broker: VirtualBroker, request: Request, receive: Callable[[Response], None]) -> None:
        note(broker, request)
        handle(broker, request, receive)

    monkeypatch.setattr(VirtualBroker, "handle", handling)
    resolved = parse(yaml.safe_dump(_document(session, recording)), "yaml", "recording").resolve(
        None, seed, {}
    )
    simulate(resolved, chosen_assignors(resolved), MemorySink(), exact=True)
    return rows


def _document(session: Session, recording: Recording) -> dict[str, Any]:
    """The scenario with the actions of the recording, at the same times."""
    settings: dict[str, Any] = {
        "client_profile": session.profile,
        "members": len(NAMES),
        "partitions": PARTITIONS,
        "group.initial.rebalance.delay.ms": 0,
        "net_latency_ms": {"quantiles": {0: 0.2, 80: 1, 100: 40}},
        "poll_interval_ms": 0,
        "append_latency_ms": 0,
        "stop_grace_ms": 0,
        "record_rate": 0,
        "phases": "aligned",
        # some clients do not commit where nothing was read
        "commits": BACKGROUND if any(row.get("api") == "OffsetCommit" for row in recording.rows) else NEVER,
    }
    if session.protocol:
        settings["group.protocol"] = session.protocol
        options = {name: int(value) for name, value in session.broker.items()}
        settings |= {name: value for name, value in options.items() if name in BY_NAME}
    if session.assignor:
        settings["partition.assignment.strategy"] = session.assignor
    return {"name": session.name, "settings": settings, "steps": list(_steps(recording))}


def _steps(recording: Recording) -> list[dict[str, Any]]:
    """The steps: a process starts at its first JoinGroup and stops at its LeaveGroup."""
    steps = []
    for at, row in enumerate(recording.rows):
        if "do" not in row:
            continue
        later = [one for one in recording.rows[at:] if one["who"] == row["who"]]
        when = next((one for one in later if _marks(row["do"], one)), row)
        number = list(NAMES).index(row["who"])
        step = {"at_ms": when["ms"], "do": _STEPS[row["do"]], "members": [number]}
        if row["do"] == "pause":
            resumed_ms = next(one["ms"] for one in later if one.get("do") == "resume")
            step["for_ms"] = resumed_ms - row["ms"]
        if row["do"] != "resume":
            steps.append(step)
    return steps


_STEPS = {"start": "start", "stop": "stop", "kill": "crash", "pause": "pause", "resume": ""}


def _marks(action: str, row: dict[str, Json]) -> bool:
    """Whether the request is the one with which a process joins or leaves."""
    api, epoch = row.get("api"), row.get("epoch")
    if action == "start":
        return api == "JoinGroup" or epoch == 0
    return action == "stop" and (api == "LeaveGroup" or (epoch is not None and epoch < 0))


def _group_heartbeat(request: ConsumerGroupHeartbeat) -> dict[str, Json]:
    return {
        "epoch": request.member_epoch,
        "instance": request.group_instance_id,
        "rack": request.rack,
        "rebalance_timeout_ms": request.rebalance_timeout_ms,
        "topics": None if request.topics is None else list(request.topics),
        "regex": request.regex,
        "assignor": request.assignor,
        "owned": None if request.owned is None else sum(len(numbers) for _, numbers in request.owned),
    }


def _join(request: JoinGroup) -> dict[str, Json]:
    return {
        "session_timeout_ms": request.session_timeout_ms,
        "rebalance_timeout_ms": request.rebalance_timeout_ms,
        "has_member_id": bool(request.member_id),
        "instance": request.group_instance_id,
        "protocols": {name: subscription(metadata) for name, metadata in request.protocols},
        "reason": without_ids(request.reason) or None,
    }


def _sync(request: SyncGroup) -> dict[str, Json]:
    return {
        "generation": request.generation,
        "protocol": request.protocol,
        "assignments": len(request.assignments),
    }


_FIELDS: Mapping[type[Request], Callable[[Any], dict[str, Json]]] = {
    JoinGroup: _join,
    SyncGroup: _sync,
    ConsumerGroupHeartbeat: _group_heartbeat,
    Heartbeat: lambda request: {"generation": request.generation},
    OffsetCommit: lambda request: {"generation": request.generation},
    LeaveGroup: lambda request: {"reasons": [member.reason or None for member in request.members]},
}
