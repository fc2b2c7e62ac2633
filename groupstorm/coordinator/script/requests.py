"""Makes requests of steps: fills in defaults, variables, subscriptions and assignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    UserDataError,
    decode_assignment,
    encode_assignment,
    encode_subscription,
    java_sorted,
)
from groupstorm.coordinator.config import INT_MAX
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    DeleteGroup,
    DescribeGroup,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Request,
    SyncGroup,
    TxnOffsetCommit,
)
from groupstorm.coordinator.script.clients import Client, InvalidStep, Scene
from groupstorm.coordinator.script.fields import (
    LONG_MAX,
    Fields,
    from_base64,
    partition_number,
    whole_number,
)
from groupstorm.coordinator.script.modern_requests import (
    consumer_heartbeat,
    share_heartbeat,
    streams_heartbeat,
    topology_update,
)
from groupstorm.coordinator.share.messages import DescribeShareGroup
from groupstorm.coordinator.streams.messages import DescribeStreamsGroup

_PROTOCOL_SINCE_SYNC = 5


def build_request(step: Mapping[str, Any], label: str, scene: Scene) -> Request:
    """The request of a step; `InvalidStep` if it cannot be made into one."""
    op = step.get("op")
    builder = _BUILDERS.get(op) if isinstance(op, str) else None
    if builder is None:
        raise InvalidStep(
            f"op: {op!r} is not offered; known: {', '.join(_BUILDERS)}, advance, topics, group_config, "
            "reload, end_txn, check_config"
        )
    return builder(Fields(step), label, scene)


def append_error(step: Mapping[str, Any]) -> Error | None:
    """The error that the append of the request's records ends in, if the step names one."""
    name = step.get("append_error")
    if name is None:
        return None
    if not isinstance(name, str) or name not in Error.__members__ or name == Error.NONE.name:
        raise InvalidStep(f"append_error: {name!r} is no error's name")
    return Error[name]


def _generation(client: Client) -> int:
    return client.generation


def _epoch(client: Client) -> int:
    return client.epoch


def _join(fields: Fields, label: str, scene: Scene) -> JoinGroup:
    version = fields.version(9, 0, 9)
    session_timeout_ms = fields.int32("session", 10_000)
    rebalance_timeout_ms = fields.int32("rebalance", 60_000)
    if version == 0:  # it carries no rebalance timeout (JoinGroupRequest.maybeOverrideRebalanceTimeout)
        rebalance_timeout_ms = session_timeout_ms
    return JoinGroup(
        **_sender(fields, label, scene, member=""),
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        protocol_type=fields.text("type", "consumer"),
        protocols=_protocols(fields.value("protocols", [["range", ""]]), label, scene),
        version=version,
        reason=fields.optional_text("reason"),
    )


def _sender(fields: Fields, label: str, scene: Scene, member: str = "$") -> dict[str, Any]:
    """The fields that say who sends a request to which group; by default the client's own member id."""
    return {
        "group": fields.optional_text("group", "g") or "",
        "member_id": scene.clients.member_id(label, fields.value("member", member)),
        "group_instance_id": fields.optional_text("instance"),
        "client_id": fields.text("client_id", "client"),
    }


def _protocols(value: Any, label: str, scene: Scene) -> tuple[tuple[str, bytes], ...]:
    if not isinstance(value, list):
        raise InvalidStep(f"protocols: {value!r} is no list of pairs")
    protocols = []
    for pair in value:
        match pair:
            case [str(name), dict(subscription)]:
                protocols.append((name, _subscription(Fields(subscription), label, scene)))
            case [str(name), metadata]:
                protocols.append((name, from_base64("protocols", metadata)))
            case _:
                raise InvalidStep(f"protocols: {pair!r} is no pair of name and metadata")
    return tuple(protocols)


def _subscription(fields: Fields, label: str, scene: Scene) -> bytes:
    """Subscription bytes as Kafka's client writes them."""
    generation = scene.clients.number("generation", label, fields.value("generation", -1), _generation)
    subscription = Subscription(
        fields.texts("topics"),
        owned=_owned(fields, scene.clients.get(label)),
        generation=whole_number("generation", generation, INT_MAX),
        rack=fields.optional_text("rack"),
    )
    try:
        return encode_subscription(subscription, fields.int32("version", 1))
    except UserDataError as problem:
        raise InvalidStep(f"protocols: {problem}") from problem


def _owned(fields: Fields, client: Client) -> tuple[TopicPartition, ...]:
    """Owned partitions by topic; "$": those of the last sync answer."""
    if fields.value("owned") == "$":
        try:
            return decode_assignment(client.assignment).partitions if client.assignment else ()
        except UserDataError:
            return ()
    owned = fields.numbers_by_name("owned").items()
    return tuple(TopicPartition(topic, number) for topic, numbers in owned for number in numbers)


def _sync(fields: Fields, label: str, scene: Scene) -> SyncGroup:
    version = fields.version(5, 0, 5)
    client = scene.clients.get(label)
    knows_protocol = version >= _PROTOCOL_SINCE_SYNC
    return SyncGroup(
        **_sender(fields, label, scene),
        generation=_group_generation(fields, label, scene),
        protocol_type=fields.optional_text("type", client.protocol_type if knows_protocol else None),
        protocol=fields.optional_text("protocol", client.protocol if knows_protocol else None),
        assignments=_assignments(fields.value("assignments"), label, scene),
        version=version,
    )


def _group_generation(fields: Fields, label: str, scene: Scene) -> int:
    number = scene.clients.number("generation", label, fields.value("generation", "$"), _generation)
    return whole_number("generation", number, INT_MAX)


def _assignments(value: Any, label: str, scene: Scene) -> tuple[tuple[str, bytes], ...]:
    if value is None:
        return ()
    if value in ("auto", "auto-consumer"):
        client = scene.clients.get(label)
        if not client.leads or client.skips:
            return ()
        members = sorted(client.members, key=lambda member: scene.names.key(scene.names.name(member)))
        return _texts(client, members, scene) if value == "auto" else _dealt(members, scene)
    if not isinstance(value, dict):
        raise InvalidStep(f"assignments: {value!r} is neither an object nor auto")
    return tuple(
        (scene.clients.member_id(label, member), from_base64("assignments", data))
        for member, data in value.items()
    )


def _texts(client: Client, members: list[str], scene: Scene) -> tuple[tuple[str, bytes], ...]:
    """For each member the bytes of `<generation>:<name>`."""
    return tuple((member, f"{client.generation}:{scene.names.name(member)}".encode()) for member in members)


def _dealt(members: list[str], scene: Scene) -> tuple[tuple[str, bytes], ...]:
    """All partitions, by topic and number, dealt to the members in turn."""
    partitions = [
        (topic, number) for topic in java_sorted(scene.topics) for number in range(scene.topics[topic])
    ]
    return tuple(
        (member, encode_assignment(partitions[turn :: len(members)], None, 1))
        for turn, member in enumerate(members)
    )


def _heartbeat(fields: Fields, label: str, scene: Scene) -> Heartbeat:
    return Heartbeat(
        **_sender(fields, label, scene),
        generation=_group_generation(fields, label, scene),
        version=fields.version(4, 0, 4),
    )


def _leave(fields: Fields, label: str, scene: Scene) -> LeaveGroup:
    if "members" in fields:
        members = _leaving(fields.value("members"), label, scene)
    else:
        own = scene.clients.member_id(label, fields.value("member", "$"))
        members = (LeavingMember(own, fields.optional_text("instance")),)
    return LeaveGroup(
        group=fields.optional_text("group", "g") or "",
        members=members,
        version=fields.version(5, 0, 5),
        client_id=fields.text("client_id", "client"),
    )


def _leaving(value: Any, label: str, scene: Scene) -> tuple[LeavingMember, ...]:
    if not isinstance(value, list):
        raise InvalidStep(f"members: {value!r} is no list of pairs")
    members = []
    for pair in value:
        match pair:
            case [member, str() | None as instance]:
                members.append(LeavingMember(scene.clients.member_id(label, member), instance))
            case _:
                raise InvalidStep(f"members: {pair!r} is no pair of member and instance")
    return tuple(members)


def _commit(fields: Fields, label: str, scene: Scene) -> OffsetCommit:
    return OffsetCommit(version=fields.version(9, 2, 10), **_of_commit(fields, label, scene))


def _txn_commit(fields: Fields, label: str, scene: Scene) -> TxnOffsetCommit:
    return TxnOffsetCommit(
        producer_id=whole_number("producer", fields.value("producer", 1), LONG_MAX),
        version=fields.version(5, 0, 6),
        **_of_commit(fields, label, scene),
    )


def _of_commit(fields: Fields, label: str, scene: Scene) -> dict[str, Any]:
    """The fields that both kinds of commit have; with ``epoch`` a variable is the member epoch."""
    read = _epoch if fields.value("epoch") is True and "generation" in fields else _generation
    generation = scene.clients.number("generation", label, fields.value("generation", "$"), read)
    return {
        **_sender(fields, label, scene),
        "generation": whole_number("generation", generation, INT_MAX),
        "offsets": _offsets(fields),
    }


def _offsets(fields: Fields) -> dict[str, dict[int, CommittedOffset]]:
    offsets: dict[str, dict[int, CommittedOffset]] = {}
    for topic, partitions in fields.table("offsets").items():
        if not isinstance(partitions, dict):
            raise InvalidStep(f"offsets: {partitions!r} does not give offsets by partition")
        offsets[topic] = {
            partition_number("offsets", number): CommittedOffset(whole_number("offsets", offset, LONG_MAX))
            for number, offset in partitions.items()
        }
    return offsets


def _fetch_offsets(fields: Fields, label: str, scene: Scene) -> OffsetFetch:
    topics = None if fields.value("topics") is None else fields.numbers_by_name("topics")
    member = fields.value("member")
    return OffsetFetch(
        group=fields.text("group", "g"),
        topics=topics,
        version=fields.version(9, 1, 10),
        member_id=None if member is None else scene.clients.member_id(label, member),
        member_epoch=scene.clients.number("generation", label, fields.value("generation", -1), _epoch),
        require_stable=fields.flag("stable"),
    )


def _delete_offsets(fields: Fields) -> OffsetDelete:
    group, client_id = fields.optional_text("group", "g") or "", fields.text("client_id", "client")
    return OffsetDelete(group, fields.numbers_by_name("topics"), client_id)


_BUILDERS: dict[str, Callable[[Fields, str, Scene], Request]] = {
    "join": _join,
    "sync": _sync,
    "heartbeat": _heartbeat,
    "leave": _leave,
    "commit": _commit,
    "txn_commit": _txn_commit,
    "fetch_offsets": _fetch_offsets,
    "describe": lambda fields, *_: DescribeGroup(fields.text("group", "g"), fields.version(6, 0, 6)),
    "delete_offsets": lambda fields, *_: _delete_offsets(fields),
    "delete_groups": lambda fields, *_: DeleteGroup(
        fields.text("group", "g"), fields.text("client_id", "client")
    ),
    "chb": consumer_heartbeat,
    "streams": streams_heartbeat,
    "describe_streams": lambda fields, *_: DescribeStreamsGroup(
        fields.text("group", "g"), fields.flag("description")
    ),
    "topology_update": topology_update,
    "shb": share_heartbeat,
    "describe_share": lambda fields, *_: DescribeShareGroup(fields.text("group", "g")),
}
