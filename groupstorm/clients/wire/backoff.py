"""The pause before a retry (ExponentialBackoff, KIP-580)."""

from __future__ import annotations

RETRY_BACKOFF_MAX_MS = 1_000
"""retry.backoff.max.ms, Kafka's default."""

_ENOUGH_DOUBLINGS = 30


def backoff_ms(attempts: int, retry_backoff_ms: int) -> int:
    """retry.backoff.ms, doubled with every failed attempt before, up to retry.backoff.max.ms.

    Kafka's client adds up to a fifth at random, so that many clients do not come back together. Ours adds
    nothing: the same responses make a member do the same.
    """
    most_ms = max(RETRY_BACKOFF_MAX_MS, retry_backoff_ms)
    return min(retry_backoff_ms << min(attempts, _ENOUGH_DOUBLINGS), most_ms)
