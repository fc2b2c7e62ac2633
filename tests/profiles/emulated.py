"""The emulated members of a profile, in the situations of a recording: what they send in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
import yaml

from groupstorm.clients import requests
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.generation import Generation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    OffsetCommit,
    Request,
    SyncGroup,
)
from groupstorm.storms.connection import Exchange
from groupstorm.storms.run import chosen_assignors
from groupstorm.storms.scenario import parse
from groupstorm.storms.simulation import simulate
from groupstorm.storms.world import World
from tests.profiles.recording import PARTITIONS, Recording, Session
from tests.profiles.wiretap import Json, subscription, without_ids
from tests.storms.storming import Memory

#: Races fall as latencies do: with these as they did in the recordings. "" stands for all others.
SEEDS: Mapping[str, int] = {"java.cooperative-sticky": 0, "": 2}
NAMES = {"first": "member-0", "second": "member-1"}


def emulate(session: Session, recording: Recording, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Json]]:
    """Rows as a recording has them, without those of what was done to the processes.

    In cooperative rounds a SyncGroup races with another member's next JoinGroup, see `SEEDS`.
    """
    seed = SEEDS.get(session.name, SEEDS[""])
    rows: list[dict[str, Json]] = []
    who = {name: who for who, name in NAMES.items()}

    def note(world: World, request: Request) -> None:
        told = _TOLD.get(type(request))
        if told is not None:
            fields = {"api": type(request).__name__, "v": request.version, **told(request)}
            sender = who[getattr(request, "client_id", "")]
            rows.append({"ms": world.clock.now_us // 1000, "who": sender, **fields})

    handle, ask, heartbeat = World.handle, World.ask, World.heartbeat

    def handling(world: World, request: Request, exchange: Exchange) -> None:
        note(world, request)
        handle(world, request, exchange)

    def asking(world: World, request: Request, on_answer: partial[None]) -> None:
        note(world, request)
        ask(world, request, on_answer)

    def beating(world: World, config: ConsumerConfig, generation: Generation) -> Error | None:
        error = heartbeat(world, config, generation)
        if error is not None:  # or it is asked as a request
            note(world, requests.heartbeat(config, generation))
        return error

    monkeypatch.setattr(World, "handle", handling)
    monkeypatch.setattr(World, "ask", asking)
    monkeypatch.setattr(World, "heartbeat", beating)
    resolved = parse(yaml.safe_dump(_document(session, recording)), "yaml", "recording").resolve(
        None, seed, {}
    )
    simulate(resolved, chosen_assignors(resolved), Memory(), exact=True)
    return rows


def _document(session: Session, recording: Recording) -> dict[str, Any]:
    """The scenario that does to its members what was done to the real ones, at the same times."""
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
    """A process starts when its first JoinGroup comes, and stops when it leaves."""
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


_TOLD: Mapping[type[Request], Callable[[Any], dict[str, Json]]] = {
    JoinGroup: _join,
    SyncGroup: _sync,
    Heartbeat: lambda request: {"generation": request.generation},
    OffsetCommit: lambda request: {"generation": request.generation},
    LeaveGroup: lambda request: {"reasons": [member.reason or None for member in request.members]},
}
