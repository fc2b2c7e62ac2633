"""Members as range and roundrobin see them (AbstractPartitionAssignor.MemberInfo), without owned
partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.userdata.strings import java_key_for


def in_order(claims: Sequence[Claim]) -> list[int]:
    """Static members by group.instance.id, then dynamic ones by member id; equal ones keep their order.

    So a static member keeps its place after a restart gives it a new member id (KIP-345).
    """
    names = [claim.member if claim.instance is None else claim.instance for claim in claims]
    by_text = sorted_places(names)
    return sorted(by_text, key=lambda member: claims[member].instance is None)


def subscribers_in_order(topics: Iterable[str], claims: Sequence[Claim]) -> dict[str, list[int]]:
    """Per topic its subscribers, `in_order`; topics with the same subscribers share one list.

    Each distinct list of topics is read once.
    """
    kind_of: dict[tuple[str, ...], int] = {}
    kinds = [kind_of.setdefault(claim.topics, len(kind_of)) for claim in claims]
    kinds_of_topic: dict[str, list[int]] = {topic: [] for topic in topics}
    for listed, kind in kind_of.items():
        for topic in dict.fromkeys(listed):
            if topic in kinds_of_topic:
                kinds_of_topic[topic].append(kind)
    ordered = in_order(claims)
    members: dict[tuple[int, ...], list[int]] = {}
    subscribers: dict[str, list[int]] = {}
    for topic, subscribed in kinds_of_topic.items():
        key = tuple(subscribed)
        if key not in members:
            chosen = frozenset(key)
            members[key] = [member for member in ordered if kinds[member] in chosen]
        subscribers[topic] = members[key]
    return subscribers


def sorted_places(texts: Sequence[str]) -> list[int]:
    """The places of the strings in Java's order; equal strings keep their order."""
    key = java_key_for(texts)
    sortable: Sequence[str] | Sequence[bytes] = texts if key is None else [key(text) for text in texts]
    return sorted(range(len(texts)), key=sortable.__getitem__)
