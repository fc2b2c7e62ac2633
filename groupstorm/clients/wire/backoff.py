"""The pause before a retry (ExponentialBackoff, KIP-580)."""

from __future__ import annotations

import asyncio

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


class Retries:
    """The attempts of one call; `pause` sleeps longer after each of them."""

    def __init__(self, retry_backoff_ms: int) -> None:
        self._retry_backoff_ms = retry_backoff_ms
        self._attempts = 0

    async def pause(self) -> None:
        await asyncio.sleep(backoff_ms(self._attempts, self._retry_backoff_ms) / 1000)
        self._attempts += 1
