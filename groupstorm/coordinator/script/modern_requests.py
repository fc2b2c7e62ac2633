"""Makes the requests of steps for groups of the newer protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from groupstorm.coordinator.config import INT_MAX, Compatibility
from groupstorm.coordinator.config_options import group_options as group_options_of
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat
from groupstorm.coordinator.modern.config import GROUP_OPTIONS, STREAMS_GROUP_TEXTS
from groupstorm.coordinator.script.clients import InvalidStep, Scene, topic_uuid
from groupstorm.coordinator.script.fields import LONG_MAX, Fields, partition_number, whole_number
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat
from groupstorm.coordinator.streams.messages import (
    DescriptionNode,
    StreamsGroupHeartbeat,
    TopologyDescription,
    UpdateTopologyDescription,
)
from groupstorm.coordinator.streams.topology import CopartitionGroup, Subtopology, TopicInfo, Topology

K = TypeVar("K")

_WITHOUT_EFFECT = set(group_options_of(Compatibility.KAFKA_4_4_0)) - {*GROUP_OPTIONS, *STREAMS_GROUP_TEXTS}


def _head(fields: Fields, label: str, scene: Scene) -> dict[str, Any]:
    """The fields that heartbeats of all kinds have, filled in from the client's memory."""
    epoch = scene.clients.number("epoch", label, fields.value("epoch", "$"), lambda client: client.epoch)
    return {
        "group": fields.text("group", "g"),
        "member_id": scene.clients.member_id(label, fields.value("member", "$")),
        "member_epoch": whole_number("epoch", epoch, INT_MAX),
        "rack": fields.optional_text("rack"),
        "client_id": fields.text("client_id", "client"),
    }


def consumer_heartbeat(fields: Fields, label: str, scene: Scene) -> ConsumerGroupHeartbeat:
    client = scene.clients.get(label)
    return ConsumerGroupHeartbeat(
        **_head(fields, label, scene),
        group_instance_id=fields.optional_text("instance"),
        rebalance_timeout_ms=fields.int32("rebalance", -1),
        topics=fields.optional_texts("topics"),
        regex=fields.optional_text("regex"),
        assignor=fields.optional_text("assignor"),
        owned=_held(fields, "owned", client.owned, client.owned_before, topic_uuid),
        version=fields.version(1, 0, 1),
    )


def _held(
    fields: Fields,
    name: str,
    now: Mapping[K, tuple[int, ...]],
    before: Mapping[K, tuple[int, ...]],
    key: Callable[[str], K],
) -> tuple[tuple[K, tuple[int, ...]], ...] | None:
    """Partitions by topic or tasks by subtopology, or those of the client's last answers, ``now`` and
    ``before``; nothing known is nothing owned."""
    match fields.value(name):
        case None:
            return None
        case "$":
            return tuple(now.items())
        case "$prev":
            return tuple(before.items())
        case "$common":
            common = [(one, tuple(n for n in held if n in before.get(one, ()))) for one, held in now.items()]
            return tuple((one, numbers) for one, numbers in common if numbers)
    return tuple((key(one), numbers) for one, numbers in fields.numbers_by_name(name).items())


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


def share_heartbeat(fields: Fields, label: str, scene: Scene) -> ShareGroupHeartbeat:
    return ShareGroupHeartbeat(
        **_head(fields, label, scene),
        topics=fields.optional_texts("topics"),
        version=fields.version(1, 1, 1),
    )


_SHORT_MAX = 2**15 - 1
_BYTE_MAX = 127
_PORT_MAX = 65_535
_KINDS = ("active", "standby", "warmup")


def streams_heartbeat(fields: Fields, label: str, scene: Scene) -> StreamsGroupHeartbeat:
    clients, client = scene.clients, scene.clients.get(label)
    endpoint_epoch = clients.number(
        "endpoint_epoch", label, fields.value("endpoint_epoch", "$"), lambda one: one.endpoint_epoch
    )
    active, standby, warmup = (
        _held(fields, kind, dict(now), dict(before), str)
        for kind, now, before in zip(_KINDS, client.tasks, client.tasks_before, strict=True)
    )
    return StreamsGroupHeartbeat(
        **_head(fields, label, scene),
        group_instance_id=fields.optional_text("instance"),
        rebalance_timeout_ms=fields.int32("rebalance", -1),
        process=fields.optional_text("process"),
        endpoint=_endpoint(fields.value("endpoint")),
        tags=_tags(fields.value("tags")),
        topology=_topology(fields.value("topology"), scene.topologies),
        active=active,
        standby=standby,
        warmup=warmup,
        task_offsets=_offsets("task_offsets", fields.value("task_offsets")),
        task_end_offsets=_offsets("task_end_offsets", fields.value("task_end_offsets")),
        shutdown=fields.flag("shutdown"),
        endpoint_epoch=whole_number("endpoint_epoch", endpoint_epoch, INT_MAX),
        version=fields.version(0, 0, 1),
    )


def _endpoint(value: Any) -> tuple[str, int] | None:
    match value:
        case None:
            return None
        case [str(host), int(port)] if 0 <= port <= _PORT_MAX:
            return host, port
    raise InvalidStep(f"endpoint: {value!r} is no pair of host and port")


def _tags(value: Any) -> tuple[tuple[str, str], ...] | None:
    if value is None:
        return None
    return _texts_by_name("tags", value)


def _texts_by_name(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise InvalidStep(f"{name}: {value!r} does not give texts by name")
    return tuple(value.items())


def _offsets(name: str, value: Any) -> tuple[tuple[str, int, int], ...] | None:
    """Offsets by subtopology and task, or a list of all three, which may name a task twice."""
    if value is None:
        return None
    rows = value if isinstance(value, list) else [value]
    if isinstance(value, dict):
        rows = [
            [subtopology, partition_number(name, number), offset]
            for subtopology in value
            for number, offset in Fields(value).table(subtopology).items()
        ]
    offsets = []
    for row in rows:
        match row:
            case [str(subtopology), number, offset]:
                task = whole_number(name, number, INT_MAX)
                offsets.append((subtopology, task, whole_number(name, offset, LONG_MAX)))
            case _:
                raise InvalidStep(f"{name}: {row!r} is no subtopology, task and offset")
    return tuple(offsets)


def _topology(value: Any, known: Mapping[str, Any]) -> Topology | None:
    """A topology, or the name of one of the scenario's, with another epoch if "@3" follows."""
    if value is None:
        return None
    if isinstance(value, str):
        name, _, epoch = value.partition("@")
        if name not in known or (epoch and not epoch.lstrip("-").isdecimal()):
            raise InvalidStep(f"topology: {value!r} is none of {', '.join(known) or 'no topologies'}")
        topology = read_topology(known[name])
        return topology._replace(epoch=whole_number("topology", int(epoch), INT_MAX)) if epoch else topology
    return read_topology(value)


def read_topology(value: Any) -> Topology:
    """A topology as scripts write it; `InvalidStep` names what is wrong."""
    if not isinstance(value, dict):
        raise InvalidStep(f"topology: {value!r} is no topology")
    fields = Fields(value)
    return Topology(fields.int32("epoch", 0), tuple(map(_subtopology, fields.objects("subtopologies"))))


def _subtopology(fields: Fields) -> Subtopology:
    return Subtopology(
        fields.text("id", ""),
        fields.texts("sources"),
        fields.texts("regex"),
        fields.texts("sinks"),
        tuple(map(_topic, fields.listed("repartition"))),
        tuple(map(_topic, fields.listed("changelogs"))),
        tuple(
            CopartitionGroup(*(one.numbers(name, _SHORT_MAX) for name in ("sources", "regex", "repartition")))
            for one in fields.objects("copartition")
        ),
    )


def _topic(value: Any) -> TopicInfo:
    if isinstance(value, str):
        return TopicInfo(value)
    if not isinstance(value, dict):
        raise InvalidStep(f"topology: {value!r} is no topic")
    fields = Fields(value)
    return TopicInfo(
        fields.text("name", ""),
        fields.int32("partitions", 0),
        whole_number("replication", fields.value("replication", 0), _SHORT_MAX),
        _texts_by_name("configs", fields.table("configs")),
    )


def topology_update(fields: Fields, label: str, scene: Scene) -> UpdateTopologyDescription:
    """The request of a step; its member is the client's."""
    return UpdateTopologyDescription(
        group=fields.text("group", "g"),
        member_id=scene.clients.member_id(label, fields.value("member", "$")),
        topology_epoch=fields.int32("topology_epoch", 0),
        description=_description(fields.value("description")),
        client_id=fields.text("client_id", "client"),
    )


def _description(value: Any) -> TopologyDescription | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidStep(f"description: {value!r} is no description of a topology")
    fields = Fields(value)
    return TopologyDescription(
        tuple(
            (one.text("id", ""), tuple(map(_node, one.objects("nodes"))))
            for one in fields.objects("subtopologies")
        ),
        tuple(
            (_node(Fields(one.table("source"))), _node(Fields(one.table("processor"))))
            for one in fields.objects("globals")
        ),
    )


def _node(fields: Fields) -> DescriptionNode:
    return DescriptionNode(
        fields.text("name", ""),
        whole_number("type", fields.value("type", 0), _BYTE_MAX),
        fields.texts("topics"),
        fields.optional_text("sink"),
        fields.texts("stores"),
        fields.texts("next"),
    )
