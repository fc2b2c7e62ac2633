"""A coordinator with one consumer group in virtual time, as a Python object, for tests; and everything
that the group knows, as plain values that two groups can be compared by."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.script.clients import Names
from groupstorm.coordinator.script.driver import Driver, Sent


class Group:
    """A coordinator with the group "g", the topics "t" (four partitions) and "u" (two); its members choose
    their own ids. Targets are computed at once, unless ``options`` say otherwise."""

    def __init__(self, **options: Any) -> None:
        config = CoordinatorConfig.from_mapping({"group.consumer.assignment.interval.ms": 0} | options)
        self.driver = Driver(config, names=Names("test"), topics={"t": 4, "u": 2}, keeps_records=True)
        self._sent = 0
        self.events: list[Any] = []

    def step(self, **step: Any) -> Any:
        self._sent += 1
        outcome = self.driver.send_step(step, self._sent)
        self.events += outcome.events
        return outcome.answers[0].response if outcome.answers else None

    def send(self, request: Any) -> Any:
        self._sent += 1
        outcome = self.driver.send(Sent(self._sent, "request", "", request))
        return outcome.answers[0].response if outcome.answers else None

    def join(self, member: str, **fields: Any) -> Any:
        joins = {"epoch": 0, "rebalance": 10_000, "topics": ["t"], "owned": {}, "member": member}
        return self.step(op="chb", **{"as": f"c-{member}"}, **(joins | fields))

    def beat(self, member: str, **fields: Any) -> Any:
        return self.step(op="chb", **{"as": f"c-{member}"}, **({"owned": "$"} | fields))

    def classic(self, client: str, *topics: str, **fields: Any) -> Any:
        """A member of the classic protocol joins under the id that it has, "" at first; ``rack``, ``owned``
        and ``version_of_subscription`` go into its subscription."""
        subscription = {"topics": list(topics), "version": fields.pop("version_of_subscription", 3)}
        for name in ("owned", "rack"):
            if name in fields:
                subscription[name] = fields.pop(name)
        protocols = [[fields.pop("protocol", "range"), subscription]]
        joins = {"version": 3, "member": "$", "session": 45_000, "rebalance": 10_000, "protocols": protocols}
        return self.step(op="join", **{"as": client}, **(joins | fields))

    def sync(self, client: str, **fields: Any) -> Any:
        return self.step(op="sync", **{"as": client}, **fields)

    def heartbeat(self, client: str, **fields: Any) -> Any:
        """The error of a heartbeat of the classic protocol."""
        return self.step(op="heartbeat", **{"as": client}, **fields).error

    def id_of(self, client: str) -> str:
        """The member id that the client has now."""
        return self.driver.clients.get(client).member

    def of(self, kind: type) -> list[Any]:
        """The events of that type so far."""
        return [event for event in self.events if isinstance(event, kind)]

    def settle(self) -> None:
        """Heartbeats until every member has its target."""
        for _ in range(4):
            for member_id in list(self.group.members):
                self.beat(member_id)

    def advance(self, duration_ms: int) -> list[Any]:
        """Time passes; the answers and events of it."""
        answers = []
        for outcome in self.driver.advance(duration_ms):
            answers += [answer.response for answer in outcome.answers]
            self.events += outcome.events
        return answers

    @property
    def group(self) -> ConsumerGroup:
        group = self.driver.coordinator.group("g")
        assert isinstance(group, ConsumerGroup)
        return group

    @property
    def classic_group(self) -> ClassicGroup | None:
        """The group, if it is a classic one."""
        group = self.driver.coordinator.group("g")
        return group if isinstance(group, ClassicGroup) else None

    def successor(self) -> Group:
        """Another coordinator, loaded from the records that this one has written."""
        other = Group()
        records = self.driver.coordinator.snapshot()
        other.driver.coordinator.load(records, self.driver.now_ms)
        other.driver.now_ms = self.driver.now_ms
        other.driver.clients = self.driver.clients
        return other


def group_state(group: ConsumerGroup) -> dict[str, Any]:
    """The group without the times at which it looks at its topics again, which are not written."""
    return {
        "epoch": group.epoch,
        "hash": group.metadata_hash,
        "assignment": (group.assignment_epoch, group.assignment_ms),
        "members": {one.member_id: dataclasses.astuple(one) for one in group.members.values()},
        "targets": {
            name: {topic: sorted(numbers) for topic, numbers in target.items()}
            for name, target in group.targets.items()
        },
        "static": dict(group.static_members),
        "held": held_partitions(group),
        "subscribed": dict(group.subscribed),
        "regexes": dict(group.regexes),
        "resolved": dict(group.resolved.items()),
        "classic": group.classic_members,
        "state": group.state,
    }


def held_partitions(group: ConsumerGroup) -> dict[tuple[UUID, int], int]:
    """The epoch at which each partition is held."""
    epochs = group.partition_epochs
    return {(topic, number): held for topic in epochs for number, held in epochs[topic].items()}
