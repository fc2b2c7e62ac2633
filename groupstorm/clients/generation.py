"""What a member believes to be part of (AbstractCoordinator.Generation)."""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.coordinator.messages import NO_GENERATION, NO_MEMBER_ID


class Generation(NamedTuple):
    """``id`` -1: of none; ``member_id`` "": not known to the coordinator; ``protocol``: what was chosen."""

    id: int = NO_GENERATION
    member_id: str = NO_MEMBER_ID
    protocol: str | None = None
