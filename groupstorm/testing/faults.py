"""What happens to a request that a test wants to go wrong: decided here, without doing anything.

A fault waits for requests of one API, perhaps only of one group or one client, and takes the next ones:
`Faults.decide` says what becomes of each. `interception` does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis import APIS
from groupstorm.problems import InputError

#: A request is held for an hour at most.
MAX_DELAY_MS = 3_600_000
MAX_COUNT = 1_000_000_000


class Seen(NamedTuple):
    """What a decision looks at. ``groups``: those that the request is about."""

    api: str
    client_id: str
    groups: tuple[str, ...] = ()


class Delay(NamedTuple):
    """Serve the request later; meanwhile the connection is not read, as ever."""

    delay_ms: int


class Fail(NamedTuple):
    """Do not carry it out; the answer says ``error``."""

    error: Error


class Disconnect(NamedTuple):
    """Do not carry it out; close the connection."""


Effect = Delay | Fail | Disconnect


class Fault:
    """An effect on the next ``count`` requests of an API, of all groups and clients where none is named."""

    def __init__(
        self, api: str, effect: Effect, count: int, group: str | None = None, client_id: str | None = None
    ) -> None:
        """Raises InputError naming the argument that means nothing."""
        _check_api(api)
        if not 1 <= count <= MAX_COUNT:
            raise InputError(f"count: {count}: expected a number from 1 to {MAX_COUNT}")
        if isinstance(effect, Delay) and not 0 <= effect.delay_ms <= MAX_DELAY_MS:
            raise InputError(f"delay_ms: {effect.delay_ms}: expected a number from 0 to {MAX_DELAY_MS}")
        if group is not None and api not in GROUPS_OF:
            raise InputError(
                f"group: {api} requests name no group; those that do are {', '.join(sorted(GROUPS_OF))}"
            )
        self.api = api
        self.effect = effect
        self.count = count
        self.group = group
        self.client_id = client_id
        #: How many requests it has taken.
        self.hits = 0

    @property
    def left(self) -> int:
        """How many requests it still waits for."""
        return self.count - self.hits

    def takes(self, request: Seen) -> bool:
        """Whether this request is one of those it waits for."""
        return (
            self.left > 0
            and request.api == self.api
            and (self.client_id is None or request.client_id == self.client_id)
            and (self.group is None or self.group in request.groups)
        )

    def __repr__(self) -> str:
        return f"<Fault {self.effect} on {self.api}, {self.hits} of {self.count} taken>"


class Faults:
    """The faults that wait. A request meets at most one: the one that was asked for first."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    @property
    def waiting(self) -> tuple[Fault, ...]:
        """Those that still wait for requests."""
        return tuple(self._waiting)

    def add(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        self._waiting.clear()

    def ask_for_groups(self, api: str) -> bool:
        """Whether a decision about this API depends on the request's groups."""
        return any(fault.group is not None and fault.api == api for fault in self._waiting)

    def decide(self, request: Seen) -> Effect | None:
        """What happens to this request; None: it is served."""
        for fault in self._waiting:
            if fault.takes(request):
                fault.hits += 1
                if fault.left == 0:
                    self._waiting.remove(fault)
                return fault.effect
        return None


def error_named(name: str) -> Error:
    """Kafka's error of that name. Raises InputError."""
    if name not in Error.__members__ or name == Error.NONE.name:
        known = [one for one in Error.__members__ if one != Error.NONE.name]
        raise InputError(f"error: {name!r}: expected one of Kafka's names{_near(name, known)}")
    return Error[name]


def _check_api(name: str) -> None:
    known = [api.name for api in APIS.values()]
    if name not in known:
        raise InputError(f"api: {name!r}: no API of that name is served{_near(name, known)}")


def _near(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else f", for example {known[0]}"


def _group_id(message: Any) -> tuple[str, ...]:
    return (message.group_id,)


def _fetched(message: Any) -> tuple[str, ...]:
    """OffsetFetch asks for several groups since version 8 (KIP-709)."""
    groups = getattr(message, "groups", None)
    return (message.group_id,) if groups is None else tuple(group.group_id for group in groups)


def _found(message: Any) -> tuple[str, ...]:
    """FindCoordinator asks for several since version 4 (KIP-699), and also for transactional ids."""
    if getattr(message, "key_type", 0) != 0:
        return ()
    keys = getattr(message, "coordinator_keys", None)
    return (message.key,) if keys is None else tuple(keys)


#: By API: the groups that a request (kio's dataclass) is about.
GROUPS_OF: Mapping[str, Callable[[Any], tuple[str, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"), _group_id),
        **dict.fromkeys(("OffsetCommit", "OffsetDelete", "TxnOffsetCommit", "AddOffsetsToTxn"), _group_id),
        "OffsetFetch": _fetched,
        "FindCoordinator": _found,
        "DescribeGroups": lambda message: tuple(message.groups),
        "DeleteGroups": lambda message: tuple(message.groups_names),
    }
)
