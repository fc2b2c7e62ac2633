"""Who is in a group, as far as its coordinator's lines name them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

#: What a coordinator, or a client of KIP-848, puts behind the client id or instance id in a member id.
_UUID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
#: The client ids that libraries have where nobody gives them one: all processes have the same.
_OF_LIBRARY: Final = re.compile(
    r"rdkafka|sarama|kafkajs|kgo|ruby-kafka|(?:aiokafka|kafka-python|faust)-[\d.]+"
)
MEMBER_ID_RULE: Final = "member: the client id is what stands before the UUID in a member id"
INSTANCE_RULE: Final = "member: no line says the client id, group.instance.id stands in its place"
UNNAMED_RULE: Final = "member: no line says the client id, the member id stands in its place"
LIBRARY_RULE: Final = "member: its client id is the default of its library, the member id stands in its place"


@lru_cache(maxsize=1 << 14)  # each round names all members of its group
def name_before_uuid(member_id: str) -> str:
    """The client id or instance id that a member id begins with; the id itself if no UUID ends it."""
    return _UUID.sub("", member_id)


class Member(NamedTuple):
    """``client``: its client id; None if no line and no rule says it."""

    member_id: str
    client: str | None = None
    instance: str | None = None
    is_pending: bool = False


class Membership:
    """Members by member id. ``count``: how many there are by the coordinator's own count, None if not
    known."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.pending: dict[str, Member] = {}
        self.count: int | None = None
        #: Ids of all members that lines have said to come.
        self.ever: set[str] = set()
        self._clients: dict[str, str] = {}

    def learn(self, member_id: str, client: str | None) -> None:
        """A line names the client id of a member."""
        if client:
            self._clients[member_id] = client

    def name(self, member_id: str, instance: str | None = None) -> str:
        """The client id: said by a line, else by the member id, else the member id itself."""
        if member_id in self._clients:
            return self._clients[member_id]
        name = name_before_uuid(member_id)
        return instance or (member_id if _OF_LIBRARY.fullmatch(name) else name)

    def name_rules(self, member_id: str, instance: str | None) -> list[str]:
        """The rule by which `name` names the member; none if a line says its client id."""
        if member_id in self._clients:
            return []
        if instance:
            return [INSTANCE_RULE]
        if _OF_LIBRARY.fullmatch(name_before_uuid(member_id)):
            return [LIBRARY_RULE]
        return [MEMBER_ID_RULE if _UUID.search(member_id) else UNNAMED_RULE]

    def add(self, member_id: str, instance: str | None) -> None:
        if member_id not in self.members and self.count is not None:
            self.count += 1
        self.members[member_id] = Member(member_id, None, instance)
        self.ever.add(member_id)
        self.pending.pop(member_id, None)

    def replace(self, old_member_id: str, member_id: str, instance: str) -> None:
        """A static member has another id now."""
        self.members.pop(old_member_id, None)
        self.ever.add(member_id)
        self.members[member_id] = Member(member_id, None, instance)

    def remove(self, member_id: str) -> Member | None:
        """The member, if it was known. It was in the group in any case."""
        if self.count is not None:
            self.count = max(0, self.count - 1)
        self._clients.pop(member_id, None) if member_id not in self.members else None
        return self.members.pop(member_id, None)

    def counted(self, count: int) -> None:
        """The coordinator has counted its members."""
        self.count = count

    @property
    def unnamed(self) -> int | None:
        """The number of members that no line names; None if the coordinator did not count."""
        return None if self.count is None else max(0, self.count - len(self.members))

    def clear(self) -> None:
        self.members.clear()
        self.pending.clear()
        self.count = None
