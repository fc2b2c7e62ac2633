"""Members of a group: the consumer's side of the group protocols, as Kafka's Java client implements it.

`membership.Membership` speaks the classic protocol, `consumer_group.member.ConsumerGroupMember` KIP-848's.
`CooperativeConsumer` is a consumer for applications (`groupstorm.clients.consumer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupstorm.clients.consumer import CooperativeConsumer

__all__ = ["CooperativeConsumer"]


def __getattr__(name: str) -> Any:
    """Import the consumer when it is first used: Kafka's message schemas are slow to import."""
    if name in __all__:
        from groupstorm.clients import consumer

        return consumer.CooperativeConsumer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
