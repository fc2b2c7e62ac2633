"""Client quotas (KIP-13, KIP-124, KIP-219, KIP-546): who may send and fetch how many bytes a second.

An entity has a user, a client id or both, or an address. A name of None stands for all that have no quota of
their own.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from groupstorm.coordinator.errors import Error, Refused

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


class Windows(NamedTuple):
    """``quota.window.num`` windows of ``quota.window.size.seconds``."""

    number: int = 11
    size_ms: int = 1000


@dataclass(slots=True)
class _Sample:
    begins_ms: int
    last_ms: int
    value: float = 0.0


class Rate:
    """The rate over the last windows, the present one included.

    Source: org.apache.kafka.common.metrics.stats.Rate and SampledStat, QuotaUtils.throttleTime.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        sample = self._sample(now_ms)
        if now_ms - sample.begins_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _sample(self, now_ms: int) -> _Sample:
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        return self._samples[self._current]

    def _advance(self, now_ms: int) -> _Sample:
        """The next sample, or the oldest one anew. There is one more than there are windows: the present
        window overlaps the oldest."""
        self._current = (self._current + 1) % (self._windows.number + 1)
        fresh = _Sample(now_ms, now_ms)
        if self._current >= len(self._samples):
            self._samples.append(fresh)
        else:
            self._samples[self._current] = fresh
        return fresh

    def per_second(self, now_ms: int) -> float:
        total = sum(sample.value for sample in self._live(now_ms))
        return total / (self.window_ms(now_ms) / 1000)

    def window_ms(self, now_ms: int) -> int:
        """The time that the rate is about: never less than all windows but the present one."""
        oldest_ms = min((sample.begins_ms for sample in self._live(now_ms)), default=now_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = self._windows.number - 1 - elapsed_ms // self._windows.size_ms
        return max(1, elapsed_ms + max(0, missing) * self._windows.size_ms)

    def _live(self, now_ms: int) -> list[_Sample]:
        """The samples that have not run out; the others begin anew now."""
        lasts_ms = self._windows.number * self._windows.size_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= lasts_ms:
                sample.begins_ms, sample.last_ms, sample.value = now_ms, now_ms, 0.0
        self._sample(now_ms)
        return self._samples

    def throttle_ms(self, most_per_second: float, now_ms: int) -> int:
        """The time for which nothing may be added until the rate is allowed again; 0: it is allowed."""
        rate = self.per_second(now_ms)
        if not rate > most_per_second:
            return 0
        return _rounded((rate - most_per_second) / most_per_second * self.window_ms(now_ms))


def _rounded(value: float) -> int:
    """Java's Math.round, within the milliseconds that a response can name."""
    return min(int(value + 0.5), 2**31 - 1)


#: The first one that has the quota counts. True: of this name; False: of all others; None: without this type.
_PRECEDENCE: tuple[tuple[bool | None, bool | None], ...] = (
    (True, True),
    (True, False),
    (True, None),
    (False, True),
    (False, False),
    (False, None),
    (None, True),
    (None, False),
)


class Client(NamedTuple):
    """Who has sent a request to which broker: ``user`` without its type."""

    user: str
    client_id: str
    node: int


_Key: TypeAlias = tuple[str, str | None, str | None, int]


class _Limit(NamedTuple):
    """``key``: what shares the measured rate."""

    most_per_second: float
    key: _Key


class ClientQuotas:
    """The quotas by entity, and the rates of those who have one.

    Of several quotas the one of the most exact entity counts: user and client id, then user, then client id,
    and in each the name before all others. Clients for which one user's or one client id's quota counts share
    it. Each broker measures for itself.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._quotas: dict[Entity, dict[str, float]] = {}
        self._rates: dict[_Key, Rate] = {}

    def __iter__(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        return iter(self._quotas.items())

    def change(self, entity: Entity, values: Mapping[str, float | None]) -> None:
        """Set quotas of an entity, or remove those without a value; they have been checked."""
        quotas = self._quotas.setdefault(entity, {})
        for key, value in values.items():
            if value is None:
                quotas.pop(key, None)
            else:
                quotas[key] = value
        if not quotas:
            del self._quotas[entity]

    def record(self, quota: str, client: Client, size_bytes: int, now_ms: int) -> int:
        """Count these bytes; return for how many milliseconds the client has to wait."""
        limit = self._limit(quota, client)
        if limit is None:
            return 0
        rate = self._rates.get(limit.key)
        if rate is None:
            rate = self._rates[limit.key] = Rate(self._windows)
        rate.record(size_bytes, now_ms)
        return rate.throttle_ms(limit.most_per_second, now_ms)

    def take_back(self, quota: str, client: Client, size_bytes: int, now_ms: int) -> None:
        """The bytes were not sent after all (unrecordQuotaSensor)."""
        limit = self._limit(quota, client)
        if limit is not None and limit.key in self._rates:
            self._rates[limit.key].record(-size_bytes, now_ms)

    def most_at_once(self, quota: str, client: Client) -> float | None:
        """Return the bytes that the quota allows in all windows but one; None if there is no quota
        (maxValueInQuotaWindow)."""
        limit = self._limit(quota, client)
        if limit is None:
            return None
        return limit.most_per_second * (self._windows.number - 1) * self._windows.size_ms / 1000

    def _limit(self, quota: str, client: Client) -> _Limit | None:
        if not self._quotas:
            return None
        for by_user, by_client in _PRECEDENCE:
            entity = _entity(client, by_user, by_client)
            most = self._quotas.get(entity, {}).get(quota)
            if most is not None:
                user = None if by_user is None else client.user
                client_id = None if by_client is None else client.client_id
                return _Limit(most, (quota, user, client_id, client.node))
        return None


def _entity(client: Client, by_user: bool | None, by_client: bool | None) -> Entity:
    parts: list[tuple[str, str | None]] = []
    if by_client is not None:
        parts.append((CLIENT_ID, client.client_id if by_client else None))
    if by_user is not None:
        parts.append((USER, client.user if by_user else None))
    return tuple(parts)
