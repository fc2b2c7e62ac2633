"""Skip tests that lack what they need beside Python: brokers, other languages' programs, Kafka's classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from groupstorm.clients.brokers.contract import BrokerUnavailable


class Missing(Exception):
    """A program that a test needs is not on this machine; the message says what to install."""


@contextmanager
def needed(*also: type[Exception]) -> Iterator[None]:
    """Skip the test if the block raises `Missing`, BrokerUnavailable or one of these."""
    kinds: tuple[type[Exception], ...] = (Missing, BrokerUnavailable, *also)
    try:
        yield
    except kinds as missing:
        pytest.skip(str(missing))
