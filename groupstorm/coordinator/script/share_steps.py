"""Makes the requests of steps for share groups, `shb` and `describe_share`, and answers for the persister."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from groupstorm.coordinator.config import INT_MAX
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.script.clients import InvalidStep, Scene
from groupstorm.coordinator.script.fields import Fields, whole_number
from groupstorm.coordinator.share.messages import DescribeShareGroup, ShareGroupHeartbeat
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.turns import Turns

_LOST = "lost"


def share_heartbeat(fields: Fields, label: str, scene: Scene) -> ShareGroupHeartbeat:
    """The request of a step, filled in from the client's memory."""
    epoch = scene.clients.number("epoch", label, fields.value("epoch", "$"), lambda client: client.epoch)
    return ShareGroupHeartbeat(
        group=fields.text("group", "g"),
        member_id=scene.clients.member_id(label, fields.value("member", "$")),
        member_epoch=whole_number("epoch", epoch, INT_MAX),
        rack=fields.optional_text("rack"),
        topics=None if fields.value("topics") is None else fields.texts("topics"),
        version=fields.version(1, 1, 1),
        client_id=fields.text("client_id", "client"),
    )


def describe_share(fields: Fields, label: str, scene: Scene) -> DescribeShareGroup:
    del label, scene
    return DescribeShareGroup(group=fields.text("group", "g"))


def persister_error(step: Mapping[str, Any]) -> Error | None:
    """The answer of the persister to what the step makes the coordinator ask; None: it is lost."""
    name = step.get("persister")
    if name is None:
        return NO_ERROR
    if name == _LOST:
        return None
    if not isinstance(name, str) or name not in Error.__members__:
        raise InvalidStep(f"persister: {name!r} is neither an error's name nor lost")
    return Error[name]


class ScriptedPersister:
    """``error``: its answer to the present step. ``asked`` keeps what it was asked to initialise."""

    def __init__(self) -> None:
        self.error: Error | None = NO_ERROR
        self.asked: list[tuple[str, Initialization]] = []

    def initialize(self, group: str, asked: Initialization, /) -> Turns[Error | None]:
        self.asked.append((group, asked))
        yield 0
        return self.error

    def delete(self, group: str, partitions: Mapping[UUID, Iterable[int]], /) -> Turns[Error | None]:
        del group, partitions
        yield 0
        return self.error
