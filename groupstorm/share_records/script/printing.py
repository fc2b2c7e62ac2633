"""Answers and states of a script of records, as JSON values."""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.broker import ShareBroker
from groupstorm.share_records.coordinator import ShareCoordinator, ShareState
from groupstorm.share_records.in_flight import InFlightBatch
from groupstorm.share_records.messages import FetchedPartition, Response, ShareFetchResponse
from groupstorm.share_records.partition import SharePartition
from groupstorm.share_records.ports import SharePartitionKey
from groupstorm.share_records.script.clients import name_of
from groupstorm.share_records.script.log import ScriptCluster
from groupstorm.share_records.script.persister import print_batch
from groupstorm.share_records.states import InFlightState


def print_answer(response: Response) -> dict[str, Any]:
    """The fields of an answer; one with an error has no more."""
    if response.error is not Error.NONE:
        return {"error": response.error.name}
    if isinstance(response, ShareFetchResponse):
        parts: list[Any] = [_print_part(name_of(one), data) for one, data in response.partitions.items()]
        parts.sort(key=lambda part: part["p"])
        return {"error": response.error.name, "lock_ms": response.lock_ms, "parts": parts}
    errors = sorted([name_of(one), failed.error.name] for one, failed in response.partitions.items())
    return {"error": response.error.name, "parts": errors}


def _print_part(name: str, data: FetchedPartition) -> dict[str, Any]:
    return {
        "p": name,
        "error": data.error.name,
        "ack": data.acknowledge_error.name,
        "acquired": [list(one) for one in data.acquired],
        "batches": [[batch.base_offset, batch.last_offset] for batch in data.batches],
    }


def print_state(
    broker: ShareBroker, coordinator: ShareCoordinator, cluster: ScriptCluster
) -> dict[str, dict[str, Any]]:
    """All that a state event may show, by part and key."""
    return {
        "shares": {_name(key): _print_share(one) for key, one in broker.share_partitions.items()},
        "sessions": {
            f"{one.key.group}/{one.key.member_id}": [one.epoch, [name_of(part) for part in one.partitions]]
            for one in broker.sessions
        },
        "coordinator": {
            _name(key): _print_stored(state)
            for key, state in coordinator.states.items()
            if cluster.has_partition(key.topic_partition)
        },
        "logs": {name_of(one): list(log.offsets) for one, log in cluster.logs.items()},
    }


def _name(key: SharePartitionKey) -> str:
    return f"{key.group}/{name_of(key.topic_partition)}"


def _print_stored(state: ShareState) -> dict[str, Any]:
    shown = {"batches": [print_batch(batch) for batch in state.batches]}
    names = {"snapshot_epoch": "snapshot"}
    return {names.get(name, name): value for name, value in {**state._asdict(), **shown}.items()}


def _print_share(one: SharePartition) -> dict[str, Any]:
    gap = one.gap
    return {
        "state": one.state.value,
        "leader_epoch": one.leader_epoch,
        "state_epoch": one.state_epoch,
        "start": one.start_offset,
        "end": one.end_offset,
        "complete": one.complete_count,
        "gap": None if gap is None else [gap.start_offset, gap.end_offset],
        "batches": [_print_in_flight(batch) for batch in one.batches],
    }


def _print_in_flight(batch: InFlightBatch) -> list[Any]:
    """A batch, and how its state is kept; equal neighbours are joined."""
    first, last = batch.first_offset, batch.last_offset
    if batch.whole is not None:
        return [first, last, "batch", [[first, last, *_print_record(batch.whole)]]]
    joined: list[list[Any]] = []
    for offset, state in enumerate(batch.offsets, first):
        fields = _print_record(state)
        if joined and joined[-1][2:] == fields:
            joined[-1][1] = offset
        else:
            joined.append([offset, offset, *fields])
    return [first, last, "offsets", joined]


def _print_record(state: InFlightState) -> list[Any]:
    lock_ms = None if state.lock is None else state.lock.deadline_ms
    return [state.state.name, state.delivery_count, state.member_id, lock_ms, state.is_changing]
