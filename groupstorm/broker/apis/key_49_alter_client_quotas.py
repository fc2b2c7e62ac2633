"""AlterClientQuotas (key 49), versions 0-1: quotas are set and removed (KIP-546).

Needs ALTER_CONFIGS on the cluster. Quotas of bytes have an effect; the others are checked, kept and
described.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import SENTENCES, on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.quotas.entities import Entity, check_entity, check_value
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.javahash import hash_order
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    asked: dict[frozenset[tuple[str, str | None]], tuple[dict[str, str | None], Any]] = {}
    repeated = set()
    for entry in call.message.entries:
        parts = _parts(entry)
        entity = frozenset(parts.items())
        if entity in asked:
            repeated.add(entity)
        asked[entity] = parts, entry.ops
        yield 2
    entries = []
    for entity, (parts, ops) in asked.items():
        error, sentence = Error.NONE, None
        try:
            if entity in repeated or len({op.key for op in ops}) < len(ops):
                named = ", ".join(f"{kind}={name}" for kind, name in parts.items())
                sentence = f"Ignoring duplicate entity ClientQuotaEntity(entries={{{named}}})"
                raise Refused(Error.INVALID_REQUEST, sentence)
            _alter(state, call, check_entity(parts), ops)
        except Refused as problem:
            error, sentence = problem.error, str(problem)
        entries.append(_entry(call, parts, error, sentence))
        yield 5
    return Done(call.types.response(entries=tuple(entries)))


API = Api(
    49, "AlterClientQuotas", 0, 1, handle,
    needs=(on_cluster(Operation.ALTER_CONFIGS, SENTENCES[Error.CLUSTER_AUTHORIZATION_FAILED]),),
    errors={"entries": "entries"},
)  # fmt: skip


def _parts(entry: Any) -> dict[str, str | None]:
    """Name by type, in the order in which Kafka's ``HashMap`` of them answers."""
    parts = {part.entity_type: part.entity_name for part in entry.entity}
    return {kind: parts[kind] for kind in hash_order(parts, initial_capacity=len(entry.entity))}


def _alter(state: BrokerState, call: Call, entity: Entity, ops: Any) -> None:
    for op in ops:
        if not op.remove:
            check_value(entity, op.key, op.value)
    if ops and not call.message.validate_only:
        state.change_quotas(entity, {op.key: None if op.remove else op.value for op in ops})


def _entry(call: Call, parts: dict[str, str | None], error: Error, sentence: str | None) -> Any:
    make = call.types.make
    return make(
        "EntryData",
        error_code=error,
        error_message=sentence,
        entity=tuple(make("EntityData", entity_type=kind, entity_name=name) for kind, name in parts.items()),
    )
