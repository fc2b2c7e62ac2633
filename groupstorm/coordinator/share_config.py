"""Options of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from groupstorm.coordinator.modern.config import INT_MAX, ModernConfig


@dataclass(frozen=True, slots=True)
class ShareConfig(ModernConfig):
    """The options that have an effect on share groups: on their memberships, and on their records."""

    kind: ClassVar[str] = "share"
    own_numbers: ClassVar[Mapping[str, tuple[int, int]]] = {
        **ModernConfig.own_numbers,
        "record_lock_duration_ms": (1_000, INT_MAX),
        "delivery_count_limit": (2, INT_MAX),
        "partition_max_record_locks": (100, INT_MAX),
    }

    max_size: int = 200
    #: Partitions that the persister was asked for are asked for again after this time without an answer.
    initialize_retry_interval_ms: int = 30_000
    record_lock_duration_ms: int = 30_000
    min_record_lock_duration_ms: int = 15_000
    max_record_lock_duration_ms: int = 60_000
    delivery_count_limit: int = 5
    min_delivery_count_limit: int = 2
    max_delivery_count_limit: int = 10
    partition_max_record_locks: int = 2_000
    min_partition_max_record_locks: int = 100
    max_partition_max_record_locks: int = 4_000
    max_share_sessions: int = 2_000

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        found = super(ShareConfig, cls).from_options(options)
        least_ms = options["offsets.commit.timeout.ms"]
        return replace(found, initialize_retry_interval_ms=max(found.initialize_retry_interval_ms, least_ms))
