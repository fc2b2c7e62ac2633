"""Cases for the broker's assignors: `groupstorm assign --mode server`, JSON lines in, JSON lines out."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from groupstorm.assignors import casefields
from groupstorm.assignors.casefields import MAX_PARTITIONS, Field, read_line
from groupstorm.assignors.contract import AssignmentRefused, MapOrder
from groupstorm.assignors.server import assignors
from groupstorm.assignors.server.assignors import ServerAssignor
from groupstorm.assignors.server.group import MemberSpec, Target, TopicDescription
from groupstorm.assignors.userdata import java_sorted
from groupstorm.javahash import JavaHashMap
from groupstorm.problems import InputError

_UUID = re.compile("[A-Za-z0-9_-]{22}(==)?")


class ServerCase(NamedTuple):
    """One question to one assignor. ``emit_records``: add the records that a broker would write."""

    id: Any
    assignor: ServerAssignor
    topics: Mapping[str, TopicDescription]
    members: Mapping[str, MemberSpec]
    order: MapOrder
    emit_records: bool


def answers(lines: Iterable[bytes]) -> Iterator[str]:
    """See `casefields.answers`."""
    return casefields.answers(lines, lambda line, place: answer(read_case(line, place)))


def read_case(line: bytes, place: str) -> ServerCase:
    """Read one case; ``place`` names the line. `InputError` names the field and the expected value."""
    case = read_line(line, place)
    order = case.choice("order", MapOrder.JAVA_HASH)
    try:
        assignor = assignors.get(
            case.field("assignor").string(), order=order, bug_compat=case.flag("bug_compat")
        )
    except InputError as problem:
        raise InputError(f"{place}: field assignor: {problem}") from problem
    topics = _topics(case.field("topics"))
    members = dict(_member(member, topics, order) for member in case.field("members").items())
    return ServerCase(case.object()["id"], assignor, topics, members, order, case.flag("emit_records"))


def _topics(field: Field) -> dict[str, TopicDescription]:
    topics: dict[str, TopicDescription] = {}
    ids: set[UUID] = set()
    for name, entry in field.entries():
        topic = TopicDescription(_uuid(entry.field("id")), entry.field("partitions").integer(minimum=0))
        if topic.id in ids:
            raise entry.field("id").expected("an id of its own, another topic has this one")
        ids.add(topic.id)
        topics[name] = topic
    if sum(topic.partitions for topic in topics.values()) > MAX_PARTITIONS:
        raise field.expected(f"at most {MAX_PARTITIONS} partitions in all")
    return topics


def _uuid(field: Field) -> UUID:
    """As Uuid.fromString reads it: base64 of the alphabet for URLs, with or without padding."""
    text = field.string()
    if not _UUID.fullmatch(text):
        raise field.expected("a Uuid as Kafka prints it: 22 letters of base64")
    return UUID(bytes=urlsafe_b64decode(text[:22] + "=="))


def _member(field: Field, topics: Mapping[str, TopicDescription], order: MapOrder) -> tuple[str, MemberSpec]:
    field.optional_string("rack")  # allowed, and has no effect
    names = [topic.string() for topic in field.field("topics").items()]
    spec = MemberSpec(
        topics=JavaHashMap.set_of(names).keys() if order is MapOrder.JAVA_HASH else java_sorted(names),
        target=_target(field.optional("target"), topics),
        instance=field.optional_string("instance"),
    )
    return field.field("id").string(), spec


def _target(field: Field | None, topics: Mapping[str, TopicDescription]) -> Target:
    """Topics that do not exist have no id, so they are left out."""
    listed = {
        name: list(dict.fromkeys(partition.integer() for partition in partitions.items()))
        for name, partitions in (field.entries() if field else ())
    }
    return {topics[name].id: partitions for name, partitions in listed.items() if name in topics}


def answer(case: ServerCase) -> dict[str, Any]:
    """Run the case's assignor: the answer, or the refusal."""
    ordered = {member: case.members[member] for member in case.order.arrange(case.members)}
    try:
        targets = case.assignor.assign(case.topics, ordered)
    except AssignmentRefused as refusal:
        return casefields.refused(case.id, refusal)
    name_of = {topic.id: name for name, topic in case.topics.items()}
    named = {
        member: {name_of[topic]: partitions for topic, partitions in targets[member].items()}
        for member in case.members
    }
    found: dict[str, Any] = {
        "id": case.id,
        "assignment": {
            member: [[name, partition] for name in java_sorted(target) for partition in sorted(target[name])]
            for member, target in named.items()
        },
    }
    if case.emit_records:
        found["records"] = {
            member: [[name, list(partitions)] for name, partitions in target.items()]
            for member, target in named.items()
            if targets[member] is not case.members[member].target
        }
    return found
