"""DescribeClientQuotas and AlterClientQuotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.broker.apis.api import Api, Call, Done
from groupstorm.broker.apis.resources import SENTENCES, on_cluster
from groupstorm.broker.authorization import Operation
from groupstorm.broker.changes import QuotasChanged
from groupstorm.broker.quotas import Component, Entity, check_entity, check_filter, check_value, is_found
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.javahash import hash_order
from groupstorm.turns import Turns


def describe_client_quotas(state: BrokerState, call: Call) -> Turns[Done]:
    """DescribeClientQuotas (key 48), versions 0-1: the quotas that a filter finds (KIP-546).

    Needs DESCRIBE_CONFIGS on the cluster.
    """
    message = call.message
    components = [Component(one.entity_type, one.match_type, one.match) for one in message.components]
    try:
        check_filter(components)
    except Refused as problem:
        return Done(call.types.response(error_code=problem.error, error_message=str(problem), entries=None))
    entries = []
    for entity, values in [*state.quotas]:
        if values and is_found(entity, components, message.strict):
            entries.append(_described_entry(call, entity, values))
        yield 3
    return Done(call.types.response(error_code=Error.NONE, error_message=None, entries=tuple(entries)))


def _described_entry(call: Call, entity: Entity, values: Mapping[str, float]) -> Any:
    make = call.types.make
    return make(
        "EntryData",
        entity=tuple(make("EntityData", entity_type=kind, entity_name=name) for kind, name in entity),
        values=tuple(make("ValueData", key=key, value=value) for key, value in values.items()),
    )


def alter_client_quotas(state: BrokerState, call: Call) -> Turns[Done]:
    """AlterClientQuotas (key 49), versions 0-1: quotas are set and removed (KIP-546).

    Needs ALTER_CONFIGS on the cluster. Quotas of bytes have an effect; the others are checked, kept and
    described.
    """
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
        entries.append(_altered_entry(call, parts, error, sentence))
        yield 5
    return Done(call.types.response(entries=tuple(entries)))


def _parts(entry: Any) -> dict[str, str | None]:
    """Name by type, in the order in which Kafka's ``HashMap`` of them answers."""
    parts = {part.entity_type: part.entity_name for part in entry.entity}
    return {kind: parts[kind] for kind in hash_order(parts, initial_capacity=len(entry.entity))}


def _alter(state: BrokerState, call: Call, entity: Entity, ops: Any) -> None:
    for op in ops:
        if not op.remove:
            check_value(entity, op.key, op.value)
    if ops and not call.message.validate_only:
        values = {op.key: None if op.remove else op.value for op in ops}
        state.carry_out(QuotasChanged(entity, values))


def _altered_entry(call: Call, parts: dict[str, str | None], error: Error, sentence: str | None) -> Any:
    make = call.types.make
    return make(
        "EntryData",
        error_code=error,
        error_message=sentence,
        entity=tuple(make("EntityData", entity_type=kind, entity_name=name) for kind, name in parts.items()),
    )


APIS = (
    Api(
        48, "DescribeClientQuotas", 0, 1, describe_client_quotas,
        needs=(on_cluster(Operation.DESCRIBE_CONFIGS, None),),
    ),
    Api(
        49, "AlterClientQuotas", 0, 1, alter_client_quotas,
        needs=(on_cluster(Operation.ALTER_CONFIGS, SENTENCES[Error.CLUSTER_AUTHORIZATION_FAILED]),),
        errors={"entries": "entries"},
    ),
)  # fmt: skip
