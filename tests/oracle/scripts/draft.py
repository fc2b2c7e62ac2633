"""A script in the making: its clients, its steps, the virtual time that it takes so far."""

from __future__ import annotations

import base64
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.oracle.scripts.steps import TIME_MAX_MS, Steps
from tests.oracle.scripts.workloads import Workload

TOPICS = {"foo": 3, "bar": 2}

#: What a full or shrunken in-sync set, a moved leader, a full disk, an oversized batch or a slow replica
#: give; each is answered in its own way.
_APPEND_ERRORS = (
    *("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "NOT_LEADER_OR_FOLLOWER"),
    *("KAFKA_STORAGE_ERROR", "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "REQUEST_TIMED_OUT"),
    *("UNKNOWN_TOPIC_OR_PARTITION", "NETWORK_EXCEPTION", "INVALID_FETCH_SIZE", "UNKNOWN_SERVER_ERROR"),
)
#: Kafka 4.3.1 knows no later ones.
_ANY_ERROR = tuple(error.name for error in Error if error and error <= Error.SHARE_SESSION_LIMIT_REACHED)

#: Bytes that are no subscription: empty, cut off, a list that claims to be huge, an unknown version.
_GARBAGE = (
    b"",
    b"\0",
    b"\0\1\x7f\xff\xff\xff",
    b"\0\1\0\0\0\1\0\x09t",
    b"\0\1\0\0\0\0\0\0\0\x7f",
    b"\0\1\xff\xff\xff\xff",
    b"\0\1\0\0\0\1\xff\xff\xff\xff\xff\xff\0\0\0\0",
    b"\0\x63\0\0\0\1\0\3foo\xff\xff\xff\xff",
    b"\xff\xff\0\0\0\0",
)


@dataclass
class Client:
    """A label of the script, and the fixed fields of its requests."""

    label: str
    group: str
    client_id: str
    instance: str | None
    version: int
    session_ms: int
    rebalance_ms: int
    type: str
    protocols: list[list[Any]] = field(default_factory=list)


class Draft(Steps):
    def __init__(self, generator: random.Random, workload: Workload) -> None:
        super().__init__(generator)
        self.workload = workload
        self.config = self._config()
        self.groups = ["g", "h"] if generator.random() < workload.second_group_share else ["g"]
        self.type = "consumer" if self.chance(0.95) else "connect"
        count = generator.randint(*workload.clients)
        self.clients = [self._client(f"c{number}") for number in range(1, count + 1)]
        if self.chance(0.1):
            self.clients[0].label = ""  # the label of steps that name none

    def _config(self) -> dict[str, Any]:
        config: dict[str, Any] = {"topics": dict(TOPICS)}
        config["group.initial.rebalance.delay.ms"] = self.random.choice(self.workload.delays_ms)
        max_size = self.random.choice(self.workload.max_sizes)
        if max_size is not None:
            config["group.max.size"] = max_size
        if self.chance(0.1):
            config["group.min.session.timeout.ms"] = self.random.choice([1, 10, 9_000])
        if self.chance(0.05):
            config["group.max.session.timeout.ms"] = self.random.choice([10_000, 29_999])
        if self.chance(0.005):
            config["group.max.size"] = self.random.choice([0, -1, "many"])  # refused: the scenario fails
        return config

    def _client(self, label: str) -> Client:
        static = self.chance(self.workload.static_share)
        client = Client(
            label,
            self.random.choice(self.groups),
            self.random.choice(["client", "client", "client", f"app-{label}", f"приложение-{label}-😀"]),
            f"i{label[1:]}" if static else None,
            self.random.choice([9, 9, 8, 5] if static else [9, 9, 8, 5, 4, 3, 2, 1, 0]),
            self.random.choice(self.workload.sessions_ms),
            self.random.choice(self.workload.rebalances_ms),
            self.type,
        )
        client.protocols = self.protocols()
        return client

    # protocols

    def protocols(self) -> list[list[Any]]:
        """Pairs of name and metadata; most clients have the workload's first protocol, so as to agree."""
        names = self.workload.protocols
        chosen = self.random.sample(
            names, self.random.randint(1, min(self.workload.protocols_count, len(names)))
        )
        if names[0] not in chosen and self.chance(0.9):
            chosen.insert(self.random.randint(0, len(chosen)), names[0])
        if self.chance(0.01):
            chosen.append(chosen[0])
        return [[name, self.metadata()] for name in chosen]

    def metadata(self) -> Any:
        if self.chance(self.workload.garbage_share):
            return base64.b64encode(self.random.choice(_GARBAGE)).decode()
        subscription: dict[str, Any] = {
            "topics": self.random.choice([["foo"], ["foo"], ["foo", "bar"], ["bar"], []])
        }
        if self.chance(0.3):
            subscription["version"] = self.random.choice([0, 1, 2, 3])
        if self.chance(0.2):
            subscription["owned"] = self.random.choice(["$", {"foo": [0, 2]}, {"foo": [1], "bar": [0]}])
            subscription["generation"] = self.random.choice(["$", -1, 3])
        if self.chance(0.05):
            subscription["rack"] = "rack1"
        return subscription

    # steps

    def request(self, op: str, client: Client, **fields: Any) -> None:
        """A request of this client; now and then its records cannot be appended."""
        step: dict[str, Any] = {"op": op}
        if client.label:
            step["as"] = client.label
        if client.group != "g":
            step["group"] = client.group
        if client.client_id != "client":
            step["client_id"] = client.client_id
        step.update(fields)
        if self.chance(self.workload.append_error_share):
            step["append_error"] = self.append_error()
        self.steps.append(step)

    def append_error(self) -> str:
        """One of those that come up, or any that both releases know."""
        return self.random.choice(_APPEND_ERRORS if self.chance(0.4) else _ANY_ERROR)

    def join(self, client: Client, member: str, **fields: Any) -> None:
        timing = {"session": client.session_ms, "rebalance": client.rebalance_ms}
        known: dict[str, Any] = {"version": client.version, **timing, "protocols": client.protocols}
        if client.type != "consumer":
            known["type"] = client.type
        if self.chance(0.05):
            known["reason"] = "rebalance enforced by user"
        self.request("join", client, **{"member": member, **self.instance(client), **known, **fields})

    def instance(self, client: Client) -> dict[str, Any]:
        return {} if client.instance is None else {"instance": client.instance}

    def sync(self, client: Client, **fields: Any) -> None:
        plan = self.random.choice(["auto", "auto", "auto-consumer", "auto-consumer", None])
        version = self.random.choice([5, 5, 5, 3, 0])
        known: dict[str, Any] = {"version": version, "assignments": plan}
        self.request("sync", client, **{**self.instance(client), **known, **fields})

    def wait(self, ms: int) -> None:
        """Let time pass, as far as there is any left."""
        ms = min(ms, TIME_MAX_MS - self.elapsed_ms)
        self.elapsed_ms += ms
        self.steps.append({"op": "advance", "ms": ms})

    def some(self, clients: Sequence[Client] | None = None) -> list[Client]:
        """Some of the clients, at least one, in any order."""
        among = self.clients if clients is None else clients
        return self.random.sample(among, self.random.randint(1, len(among)))

    def one(self) -> Client:
        return self.random.choice(self.clients)

    def other_than(self, client: Client) -> Client:
        return self.random.choice([other for other in self.clients if other is not client] or [client])
