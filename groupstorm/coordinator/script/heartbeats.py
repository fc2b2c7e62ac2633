"""Makes ConsumerGroupHeartbeat requests of `chb` steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from groupstorm.coordinator.config import INT_MAX, Compatibility
from groupstorm.coordinator.group_configs import group_options as group_options_of
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat
from groupstorm.coordinator.modern.config import GROUP_OPTIONS, STREAMS_GROUP_TEXTS
from groupstorm.coordinator.script.clients import Assigned, Client, InvalidStep, Scene
from groupstorm.coordinator.script.fields import Fields, whole_number
from groupstorm.coordinator.script.names import topic_uuid

_WITHOUT_EFFECT = set(group_options_of(Compatibility.KAFKA_4_4_0)) - {*GROUP_OPTIONS, *STREAMS_GROUP_TEXTS}


def consumer_heartbeat(fields: Fields, label: str, scene: Scene) -> ConsumerGroupHeartbeat:
    """The request of a step, filled in from the client's memory."""
    epoch = scene.clients.number("epoch", label, fields.value("epoch", "$"), lambda client: client.epoch)
    return ConsumerGroupHeartbeat(
        group=fields.text("group", "g"),
        member_id=scene.clients.member_id(label, fields.value("member", "$")),
        member_epoch=whole_number("epoch", epoch, INT_MAX),
        group_instance_id=fields.optional_text("instance"),
        rack=fields.optional_text("rack"),
        rebalance_timeout_ms=fields.int32("rebalance", -1),
        topics=_topics(fields.value("topics")),
        regex=fields.optional_text("regex"),
        assignor=fields.optional_text("assignor"),
        owned=_owned(fields.value("owned"), scene.clients.get(label)),
        version=fields.version(1, 0, 1),
        client_id=fields.text("client_id", "client"),
    )


def _topics(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(topic, str) for topic in value):
        raise InvalidStep(f"topics: {value!r} is no list of topics")
    return tuple(value)


def _owned(value: Any, client: Client) -> tuple[tuple[UUID, tuple[int, ...]], ...] | None:
    """Partitions by topic, or those of the client's last assignments; nothing known is nothing owned."""
    if value is None:
        return None
    if value == "$":
        return _listed(client.owned)
    if value == "$prev":
        return _listed(client.owned_before)
    if value == "$common":
        common = {
            topic: tuple(number for number in numbers if number in client.owned_before.get(topic, ()))
            for topic, numbers in client.owned.items()
        }
        return _listed({topic: numbers for topic, numbers in common.items() if numbers})
    if not isinstance(value, dict):
        raise InvalidStep(f"owned: {value!r} does not give partitions by topic")
    return _listed({topic_uuid(topic): _numbers(numbers) for topic, numbers in value.items()})


def _numbers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise InvalidStep(f"owned: {value!r} is no list of partitions")
    return tuple(whole_number("owned", number, INT_MAX) for number in value)


def _listed(partitions: Assigned) -> tuple[tuple[UUID, tuple[int, ...]], ...]:
    return tuple(partitions.items())


def group_options(value: Any) -> Mapping[str, int | str]:
    """The options of a `group_config` step: numbers or texts of numbers, but for those that are texts.
    Options that Kafka knows and that have no effect on the coordinator are left out."""
    if not isinstance(value, dict):
        raise InvalidStep(f"set: {value!r} does not give options by name")
    options: dict[str, int | str] = {}
    for name, setting in value.items():
        if name in _WITHOUT_EFFECT:
            continue
        if name in STREAMS_GROUP_TEXTS and isinstance(setting, str):
            options[name] = setting
            continue
        try:
            options[name] = int(setting)
        except (TypeError, ValueError):
            raise InvalidStep(f"set: {name}: {setting!r} is no whole number") from None
    return options
