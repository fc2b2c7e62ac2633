"""The order in which range and roundrobin lay out the members (AbstractPartitionAssignor.MemberInfo)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupstorm.assignors.userdata import Subscription, java_key


def in_order(members: Iterable[str], subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Static members by group.instance.id, then dynamic ones by member id; equals keep their order.

    So a static member keeps its place when a restart gives it a new member id (KIP-345).
    """

    def place(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].instance
        return (instance is None, java_key(member if instance is None else instance))

    return sorted(members, key=place)
