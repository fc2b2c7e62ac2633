"""Cases for assignors: JSON lines in, JSON lines out (`groupstorm assign`). Unknown fields are ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from groupstorm.assignors import casefields, registry
from groupstorm.assignors.casefields import MAX_PARTITIONS, Field, read_line
from groupstorm.assignors.consumer.planned import PlannedAssignor
from groupstorm.assignors.consumer.streamjoin import StreamJoinStickyAssignor
from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    Assignor,
    MapOrder,
    TopicMetadata,
)
from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    UserDataError,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupstorm.assignors.userdata.sticky import NO_EPOCH, encode_join_data
from groupstorm.problems import InputError

#: The fields of a result that an answer has, if the assignor gives them.
_FACTS = ("constrained", "transferring", "max_generation", "epoch")


class CaseMember(NamedTuple):
    """A member of a case; ``version``: its subscription passes through bytes of that version."""

    id: str
    subscription: Subscription
    version: int | None


class Case(NamedTuple):
    id: Any
    assignor: Assignor
    topics: Mapping[str, TopicMetadata]
    members: tuple[CaseMember, ...]
    order: MapOrder
    emit_bytes: bool


def answers(lines: Iterable[bytes], plug_ins: Collection[str] = ()) -> Iterator[str]:
    """``plug_ins``: the ``module:attribute`` that lines may name, because a file must not import code. Raises
    `InputError` for one that is not there."""
    for name in plug_ins:
        registry.get(name)
    return casefields.answers(lines, lambda line, place: answer(read_case(line, place, plug_ins)))


def read_case(line: bytes, place: str, plug_ins: Collection[str] = ()) -> Case:
    """Read one case; ``place`` names the line. `InputError` names the field and the expected value."""
    case = read_line(line, place)
    order = case.choice("order", MapOrder.JAVA_HASH)
    assignor = _assignor(case, order, plug_ins)
    version = case.optional_integer("version", minimum=0)
    members = tuple(_member(field, version, assignor) for field in case.field("members").items())
    if len({member.id for member in members}) < len(members):
        raise case.field("members").expected("an id of its own for each")
    return Case(
        case.object()["id"],
        assignor,
        _topics(case.field("topics")),
        members,
        order,
        case.flag("emit_bytes"),
    )


def _assignor(case: Field, order: MapOrder, plug_ins: Collection[str]) -> Assignor:
    name = case.field("assignor").string()
    if ":" in name and name not in plug_ins:
        raise case.field("assignor").expected(f"a name; a file cannot name code, use --plug-in {name}")
    try:
        assignor = registry.get(name, order=order, bug_compat=case.flag("bug_compat"))
    except InputError as problem:
        raise InputError(f"{case.place}: field assignor: {problem}") from problem
    if isinstance(assignor, PlannedAssignor):
        return replace(assignor, protocol=case.choice("protocol", assignor.protocol))
    return assignor


def _topics(field: Field) -> dict[str, TopicMetadata]:
    topics = {topic: _topic(entry) for topic, entry in field.entries()}
    if sum(metadata.partitions for metadata in topics.values()) > MAX_PARTITIONS:
        raise field.expected(f"at most {MAX_PARTITIONS} partitions in all")
    return topics


def _topic(field: Field) -> TopicMetadata:
    partitions = field.field("partitions").integer(minimum=0)
    racks = field.optional("racks")
    if racks is None:
        return TopicMetadata(partitions)
    replicas = tuple(frozenset(rack.string() for rack in item.items()) for item in racks.items())
    if len(replicas) != partitions:
        raise racks.expected(f"one list for each of the {partitions} partitions")
    return TopicMetadata(partitions, replicas)


def _member(field: Field, version: int | None, assignor: Assignor) -> CaseMember:
    generation = field.integer_or("generation", -1)
    subscription = Subscription(
        topics=tuple(topic.string() for topic in field.field("topics").items()),
        user_data=_user_data(field, generation, assignor),
        owned=_partitions(field, "owned") or (),
        generation=generation,
        rack=field.optional_string("rack"),
        instance=field.optional_string("instance"),
    )
    own_version = field.integer_or("version", version, minimum=0)
    return CaseMember(field.field("id").string(), subscription, own_version)


def _user_data(field: Field, generation: int, assignor: Assignor) -> bytes | None:
    """Raw bytes, or the user data of the member's own assignor after that assignment."""
    raw = field.optional("userdata_hex")
    if raw is not None:
        try:
            return bytes.fromhex(raw.string())
        except ValueError:
            raise raw.expected("bytes in hexadecimal") from None
    if isinstance(assignor, StreamJoinStickyAssignor):
        numbers = field.optional("userdata_partitions")
        epoch = field.optional_integer("userdata_epoch")
        if numbers is not None or epoch is not None:
            listed = [number.integer() for number in field.listed("userdata_partitions")]
            return encode_join_data(listed, max(generation, NO_EPOCH) if epoch is None else epoch)
    owned = _partitions(field, "userdata_owned")
    last_generation = field.optional_integer("userdata_generation")
    if owned is None and last_generation is None:
        return None
    return assignor.user_data(owned or (), generation if last_generation is None else last_generation)


def _partitions(field: Field, name: str) -> tuple[TopicPartition, ...] | None:
    listed = field.optional(name)
    if listed is None:
        return None
    return tuple(_partition(pair) for pair in listed.items())


def _partition(pair: Field) -> TopicPartition:
    items = pair.items()
    if len(items) != 2:  # a topic and a partition
        raise pair.expected("[topic, partition]")
    return TopicPartition(items[0].string(), items[1].integer())


def answer(case: Case) -> dict[str, Any]:
    """Run the case's assignor: the answer, or the refusal."""
    try:
        subscriptions = _subscriptions(case)
        result = case.assignor.assign(case.topics, subscriptions)
        return _answer(case, result)
    except AssignmentRefused as refusal:
        return casefields.refused(case.id, refusal)
    except UserDataError as refusal:
        return {"id": case.id, "error": type(refusal).__name__, "message": str(refusal)}


def _subscriptions(case: Case) -> dict[str, Subscription]:
    """The members in the order of a hash table that is filled in the order of the case."""
    passed: dict[str, Subscription] = {}
    for member in case.members:
        subscription = member.subscription
        if member.version is not None:
            travelled = decode_subscription(encode_subscription(subscription, member.version))
            subscription = travelled._replace(instance=subscription.instance)
        passed[member.id] = subscription
    return {member: passed[member] for member in case.order.arrange(passed)}


def _answer(case: Case, result: AssignmentResult) -> dict[str, Any]:
    members = dict.fromkeys(member.id for member in case.members)
    found: dict[str, Any] = {
        "id": case.id,
        "assignment": {member: result.partitions.get(member, []) for member in members},
    }
    facts = ((name, getattr(result, name)) for name in _FACTS)
    found.update((name, fact) for name, fact in facts if fact is not None)
    if case.emit_bytes:
        found["bytes"] = {
            member: encode_assignment(result.partitions.get(member, []), result.user_data).hex()
            for member in members
        }
    return found
