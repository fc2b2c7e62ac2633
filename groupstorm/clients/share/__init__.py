"""A share consumer for asyncio (KIP-932): `ShareConsumer`.

`groupstorm.clients.consumer_group.member.ShareGroupMember` decides on the membership, `sessions` on the
requests to leaders, `records` on the records: there is no clock and no socket in them. `driver` runs them
over TCP.
"""

from __future__ import annotations

from groupstorm.clients.share.consumer import ShareConsumer
from groupstorm.clients.share.records import (
    AcknowledgementRefused,
    AcknowledgeType,
    ImplicitMode,
    NotAcknowledged,
    NotHeld,
    Woken,
)

__all__ = [
    "AcknowledgeType",
    "AcknowledgementRefused",
    "ImplicitMode",
    "NotAcknowledged",
    "NotHeld",
    "ShareConsumer",
    "Woken",
]
