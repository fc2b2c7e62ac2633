"""The memory of client labels, filled from their answers, the variables of steps that refer to it, and the
short names m1, m2, ... of member ids in the output."""

from __future__ import annotations

import hashlib
import re
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from groupstorm.assignors.streams.groups import TaskIds
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat, StreamsGroupHeartbeatResponse

_NUMBER = re.compile(r"\$(?P<label>.*?)(?P<plus>[+-]\d+)?", re.DOTALL)
PENDING = "PENDING"

#: topic id -> partitions
Assigned = Mapping[UUID, tuple[int, ...]]


_GroupHeartbeat = messages.ConsumerGroupHeartbeat | StreamsGroupHeartbeat | ShareGroupHeartbeat
_GroupHeartbeatResponse = (
    messages.ConsumerGroupHeartbeatResponse | StreamsGroupHeartbeatResponse | ShareGroupHeartbeatResponse
)


class InvalidStep(Exception):
    """The step cannot be made into a request; the message says why."""


class Client:
    """The memory of one label."""

    def __init__(self) -> None:
        self.member = ""
        self.generation = -1
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leads = False
        self.skips = False
        self.members: tuple[str, ...] = ()
        self.assignment: bytes | None = None
        self.epoch = 0
        #: The last assignment of a consumer group, and the last one before it that differed.
        self.owned: Assigned = {}
        self.owned_before: Assigned = {}
        #: The same of a streams group: active, standby and warm-up tasks.
        self.tasks: tuple[TaskIds, ...] = ((), (), ())
        self.tasks_before: tuple[TaskIds, ...] = ((), (), ())
        self.endpoint_epoch = -1
        #: The internal topics that the last answer named, with their partitions.
        self.to_create: dict[str, int] = {}
        self.last: str | None = None

    def sent(self, kind: str, request: messages.Request) -> None:
        """A join or sync may be parked: until its answer comes, the last answer is pending."""
        if isinstance(request, messages.JoinGroup | messages.SyncGroup):
            self.last = f"{kind}:{PENDING}"
        if isinstance(request, _GroupHeartbeat) and request.member_id:
            self.member = request.member_id

    def answered(
        self, kind: str, member_id: str | None, response: messages.Response, *, by_members: bool
    ) -> None:
        """Remember an answer. ``member_id``: the one that the request used; ``by_members``: a
        LeaveGroup that named its members."""
        match response:
            case messages.JoinGroupResponse():
                self._joined(response)
            case messages.SyncGroupResponse() if not response.error:
                self.assignment = response.assignment
            case messages.ConsumerGroupHeartbeatResponse():
                self._beat(kind, response)
            case StreamsGroupHeartbeatResponse():
                self._beat_of_streams(kind, response)
            case ShareGroupHeartbeatResponse():
                self._take_epoch(kind, response)
            case messages.LeaveGroupResponse() if not by_members:
                if not any(member.error for member in response.members):
                    self.member = ""
        if isinstance(
            response, messages.JoinGroupResponse | messages.SyncGroupResponse | messages.HeartbeatResponse
        ):
            self.last = f"{kind}:{response.error.name}"
            if response.error is Error.UNKNOWN_MEMBER_ID and member_id == self.member:
                self.member = ""

    def _take_epoch(self, kind: str, response: _GroupHeartbeatResponse) -> bool:
        """Remember the epoch of an answer; whether the member is in the group no longer."""
        self.last = f"{kind}:{response.error.name}"
        is_out = response.error in (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID) or (
            not response.error and response.member_epoch < 0
        )
        if is_out:
            self.epoch = 0
        elif not response.error:
            self.epoch = response.member_epoch
        return is_out

    def _beat(self, kind: str, response: messages.ConsumerGroupHeartbeatResponse) -> None:
        if response.member_id:
            self.member = response.member_id
        if self._take_epoch(kind, response):
            self.owned = {}
        elif response.assignment is not None and response.assignment != self.owned:
            self.owned, self.owned_before = response.assignment, self.owned

    def _beat_of_streams(self, kind: str, response: StreamsGroupHeartbeatResponse) -> None:
        self.to_create = {name: topic.partitions for name, topic in response.to_create.items()}
        if self._take_epoch(kind, response):
            self.tasks = ((), (), ())
        elif not response.error:
            self.endpoint_epoch = response.endpoint_epoch
            tasks = (response.active, response.standby, response.warmup)
            if None not in tasks and tasks != self.tasks:
                self.tasks, self.tasks_before = tuple(kind or () for kind in tasks), self.tasks

    def _joined(self, response: messages.JoinGroupResponse) -> None:
        if response.member_id:
            self.member = response.member_id
        if not response.error:
            self.generation = response.generation
            self.protocol_type = response.protocol_type
            self.protocol = response.protocol
            self.leads = response.leader == response.member_id
            self.skips = response.skip_assignment
            self.members = tuple(member.member_id for member in response.members)


class Clients:
    """All labels of a scenario, and the variables of its steps."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._clients: dict[str, Client] = {}

    def get(self, label: str) -> Client:
        """The label's memory, empty at first."""
        return self._clients.setdefault(label, Client())

    def member_id(self, label: str, value: Any) -> str:
        """A member id: "$" the client's own, "$r1" client r1's, "$m3" the id named m3, else literally."""
        if not isinstance(value, str):
            raise InvalidStep(f"member: {value!r} is no text")
        if not value.startswith("$"):
            return value
        other = value[1:]
        if is_name(other):
            return self._names.member_id(other)
        return self._known(other or label).member

    def number(self, field: str, label: str, value: Any, read: Callable[[Client], int]) -> int:
        """A number, or "$", "$r1", "$+1", "$r1-1": a client's own and something added to it."""
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise InvalidStep(f"{field}: {value!r} is no number")
        return read(self._known(match["label"] or label)) + int(match["plus"] or 0)

    def _known(self, label: str) -> Client:
        return self._clients.get(label) or Client()


class Scene(NamedTuple):
    """The state that a step may refer to."""

    clients: Clients
    names: Names
    topics: Mapping[str, int]
    #: The scenario's own, as they stand there.
    topologies: Mapping[str, Any]


_NAME = re.compile(r"m\d+")


def scenario_uuid(scenario_id: str | int, number: int) -> uuid.UUID:
    """The n-th UUID that a scenario draws: MD5 of "<id>:<n>" with the bits of a random UUID."""
    digest = hashlib.md5(f"{scenario_id}:{number}".encode(), usedforsecurity=False).digest()
    return uuid.UUID(bytes=digest, version=4)


def topic_uuid(name: str) -> uuid.UUID:
    """The id of a script's topic: MD5 of "topic:<name>" with the bits of a random UUID."""
    digest = hashlib.md5(f"topic:{name}".encode(), usedforsecurity=False).digest()
    return uuid.UUID(bytes=digest, version=4)


def is_name(text: str) -> bool:
    """Whether a text has the form of these names."""
    return _NAME.fullmatch(text) is not None


class Names:
    """Draws ids and names them in the order in which they are first seen."""

    def __init__(self, scenario_id: str | int) -> None:
        self._scenario_id = scenario_id
        self._count = 0
        self._drawn: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def draw(self, prefix: str) -> str:
        """A new member id. In a consumer group its UUID alone is the id, in Kafka's base64."""
        self._count += 1
        drawn = scenario_uuid(self._scenario_id, self._count)
        member_id = f"{prefix}-{drawn}"
        self._drawn[member_id] = self._drawn[urlsafe_b64encode(drawn.bytes).decode().rstrip("=")] = (
            self._count
        )
        return member_id

    def see(self, ids: Iterable[str]) -> None:
        """Name the ids that were drawn and have no name yet, in the order of drawing."""
        new = {member_id for member_id in ids if member_id in self._drawn and member_id not in self._names}
        for member_id in sorted(new, key=self._drawn.__getitem__):
            name = f"m{len(self._names) + 1}"
            self._names[member_id] = name
            self._ids[name] = member_id

    def name(self, member_id: str) -> str:
        """The id's name; an id that was not drawn here is its own name."""
        return self._names.get(member_id, member_id)

    def member_id(self, name: str) -> str:
        """The id of a name; "no-m3" if m3 does not exist yet."""
        return self._ids.get(name, f"no-{name}")

    def key(self, name: str) -> tuple[int, int, str]:
        """Sort key: the names first, by number, then other ids as text."""
        return (0, int(name[1:]), "") if name in self._ids else (1, 0, name)

    @property
    def ids(self) -> dict[str, str]:
        """Name -> id, in the order of naming."""
        return dict(self._ids)
