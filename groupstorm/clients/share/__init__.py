"""A share consumer for asyncio (KIP-932): `ShareConsumer`.

`member` decides on the membership, `sessions` on the requests to leaders, `held` on the records: there is no
clock and no socket in them. `driver` runs them over TCP.
"""

from __future__ import annotations

from groupstorm.clients.share.acknowledgements import AcknowledgeType
from groupstorm.clients.share.consumer import ShareConsumer
from groupstorm.clients.share.errors import (
    AcknowledgementRefused,
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
