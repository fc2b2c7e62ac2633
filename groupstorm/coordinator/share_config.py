"""Options of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from groupstorm.coordinator.modern.config import ModernConfig


@dataclass(frozen=True, slots=True)
class ShareConfig(ModernConfig):
    """The options that have an effect on the memberships of share groups."""

    kind: ClassVar[str] = "share"

    max_size: int = 200
    #: Partitions that the persister was asked for are asked for again after this time without an answer.
    initialize_retry_interval_ms: int = 30_000

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        found = super(ShareConfig, cls).from_options(options)
        least_ms = options["offsets.commit.timeout.ms"]
        return replace(found, initialize_retry_interval_ms=max(found.initialize_retry_interval_ms, least_ms))
