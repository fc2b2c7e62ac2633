"""The requests of a profile's emulated members in the situations of a recording, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from groupstorm.clients import requests
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    OffsetCommit,
    Request,
    Response,
    SyncGroup,
)
from groupstorm.storms.run import chosen_assignors
from groupstorm.storms.scenario.files import parse
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

    handle, heartbeat = VirtualBroker.handle, VirtualBroker.heartbeat

    def handling(broker: VirtualBroker, request: Request, receive: Callable[[Response], None]) -> None:
        note(broker, request)
        handle(broker, request, receive)

    def beating(broker: VirtualBroker, config: ConsumerConfig, generation: Generation) -> Error | None:
        error = heartbeat(broker, config, generation)
        if error is not None:  # otherwise it is sent as a request
            note(broker, requests.heartbeat(config, generation))
        return error

    monkeypatch.setattr(VirtualBroker, "handle", handling)
    monkeypatch.setattr(VirtualBroker, "heartbeat", beating)
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
        # some clients do not commit where nothing was read
        "enable.auto.commit": any(row.get("api") == "OffsetCommit" for row in recording.rows),
    }
    if session.assignor:
        settings["partition.assignment.strategy"] = session.assignor
    return {"name": session.name, "settings": settings, "steps": list(_steps(recording))}


def _steps(recording: Recording) -> list[dict[str, Any]]:
    """The steps: a process starts at its first JoinGroup and stops at its LeaveGroup."""
    steps = []
    for at, row in enumerate(recording.rows):
        if "do" not in row:
            continue
        marks = {"start": "JoinGroup", "stop": "LeaveGroup"}
        later = (one for one in recording.rows[at:] if one["who"] == row["who"])
        when = next((one for one in later if one.get("api") == marks.get(row["do"], "")), row)
        step = {"start": "start", "stop": "stop", "kill": "crash"}[row["do"]]
        number = list(NAMES).index(row["who"])
        steps.append({"at_ms": when["ms"], "do": step, "members": [number]})
    return steps


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
    Heartbeat: lambda request: {"generation": request.generation},
    OffsetCommit: lambda request: {"generation": request.generation},
    LeaveGroup: lambda request: {"reasons": [member.reason or None for member in request.members]},
}
