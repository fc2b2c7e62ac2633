"""Members of a group: the consumer's side of the group protocols, as Kafka's Java client implements it.

`membership.Membership` speaks the classic protocol, `consumer_group.member.ConsumerGroupMember` KIP-848's.
`CooperativeConsumer` is a consumer for applications (`groupstorm.clients.consumer`), `ShareConsumer` one of
share groups (`groupstorm.clients.share`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupstorm.clients.consumer import CooperativeConsumer
    from groupstorm.clients.share import ShareConsumer

__all__ = ["CooperativeConsumer", "ShareConsumer"]


def __getattr__(name: str) -> Any:
    """Import a consumer when it is first used: Kafka's message schemas are slow to import."""
    if name == "CooperativeConsumer":
        from groupstorm.clients import consumer

        return consumer.CooperativeConsumer
    if name == "ShareConsumer":
        from groupstorm.clients import share

        return share.ShareConsumer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
