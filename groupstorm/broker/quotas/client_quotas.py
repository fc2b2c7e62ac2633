"""The quota that counts for a client, and the time for which its connection is muted (ClientQuotaManager).

Of several quotas the one of the most exact entity counts: user and client id, then user, then client id, and
in each the name before all others. Clients for which one user's or one client id's quota counts share it.
Each broker measures for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from groupstorm.broker.quotas.entities import CLIENT_ID, USER, Entity
from groupstorm.broker.quotas.rates import Rate, Windows

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
    """The quotas by entity, and the rates of those who have one."""

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
