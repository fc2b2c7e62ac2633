"""Quotas by entity: the checks of changes, and filters (ClientQuotaControlManager, ClientQuotasImage).

An entity has a user, a client id or both, or an address. A name of None stands for all that have no quota of
their own.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE = "producer_byte_rate", "consumer_byte_rate"
#: Quota -> whether it is a whole number.
_OF_CLIENTS: Mapping[str, bool] = {
    PRODUCER_BYTE_RATE: True,
    CONSUMER_BYTE_RATE: True,
    "request_percentage": False,
    "controller_mutation_rate": False,
}
_OF_ADDRESSES: Mapping[str, bool] = {"connection_creation_rate": True}
#: The distance that a value may have from a whole number (ClientQuotaControlManager).
_CLOSE_TO_WHOLE = 1e-6
_LONG_MAX = float(2**63 - 1)

#: Type -> name, in the order of their types.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]


class MatchType(IntEnum):
    """DescribeClientQuotasRequest: by name, those for all others, all of the type."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class Component(NamedTuple):
    """One part of a filter."""

    entity_type: str
    match_type: int
    match: str | None


def check_entity(parts: Mapping[str, str | None]) -> Entity:
    """The entity of a change. Raises Refused."""
    if not parts:
        raise Refused(Error.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in parts.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise Refused(Error.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise Refused(Error.INVALID_REQUEST, f"Empty {kind} not supported")
    if IP in parts and len(parts) > 1:
        sentence = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        raise Refused(Error.INVALID_REQUEST, sentence)
    return tuple(sorted(parts.items()))


def check_value(entity: Entity, key: str, value: float) -> None:
    """Raises Refused for a quota that the entity cannot have."""
    kind, name = entity[0]
    if kind == IP and name is not None and not _is_address(name):
        raise Refused(Error.INVALID_REQUEST, f"{name} is not a valid IP or resolvable host.")
    is_whole = (_OF_ADDRESSES if kind == IP else _OF_CLIENTS).get(key)
    if is_whole is None:
        raise Refused(Error.INVALID_REQUEST, f"Invalid configuration key {key}")
    if value <= 0:
        raise Refused(Error.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    if math.isnan(value) or not is_whole:
        return
    if value > _LONG_MAX:
        raise Refused(Error.INVALID_REQUEST, f"Proposed value for {key} is too large for a LONG.")
    if abs(value - round(value)) > _CLOSE_TO_WHOLE:
        raise Refused(Error.INVALID_REQUEST, f"{key} cannot be a fractional value.")


def _is_address(text: str) -> bool:
    """Kafka also resolves names; the broker here asks no name server."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def check_filter(components: Iterable[Component]) -> None:
    """Raises Refused."""
    seen: set[str] = set()
    for kind, match_type, match in components:
        if not kind:
            raise Refused(Error.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in seen:
            sentence = f"Entity type {kind} cannot appear more than once in the filter."
            raise Refused(Error.INVALID_REQUEST, sentence)
        if kind not in (USER, CLIENT_ID, IP):
            raise Refused(Error.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(match_type, match)
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        sentence = (
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )
        raise Refused(Error.INVALID_REQUEST, sentence)


def _check_match(match_type: int, match: str | None) -> None:
    if match_type not in tuple(MatchType):
        raise Refused(Error.INVALID_REQUEST, f"Unknown match type {match_type}")
    said = f"Request specified MATCH_TYPE_{MatchType(match_type).name}"
    if match_type == MatchType.EXACT and match is None:
        raise Refused(Error.INVALID_REQUEST, f"{said}, but set match string to null.")
    if match_type != MatchType.EXACT and match is not None:
        raise Refused(Error.INVALID_REQUEST, f"{said}, but also specified a match string.")


def is_found(entity: Entity, components: Iterable[Component], strict: bool) -> bool:
    """Whether a filter that was checked finds the entity; ``strict``: without other types."""
    names = dict(entity)
    wanted = list(components)
    if strict and len(wanted) != len(names):
        return False
    return all(
        kind in names and (match_type == MatchType.SPECIFIED or names[kind] == match)
        for kind, match_type, match in wanted
    )
