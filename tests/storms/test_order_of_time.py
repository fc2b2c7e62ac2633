"""A session that ends at the same instant as a heartbeat arrives goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.soaking import one_in
from tests.storms.storms_in_memory import START, Storm, scenario, storm
from tests.storms.test_equal_small_worlds import TOGETHER, of_variant

PAUSED_MS = 30_000
LATENCY_MS = 2


def _paused(variant: str, for_ms: int, exact: bool) -> Storm:
    """A member stands still, and sends a heartbeat as soon as it runs again."""
    settings: dict[str, Any] = of_variant(variant) | TOGETHER | {"max.poll.interval.ms": 60_000}
    step = {"at_ms": PAUSED_MS, "do": "pause", "members": [0], "for_ms": for_ms}
    return storm(scenario([START, step], **settings), exact=exact)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("variant", one_in(2, ["cooperative", "static", "consumer"]))
def test_a_heartbeat_that_arrives_when_the_session_ends_comes_first(variant: str, exact: bool) -> None:
    [(ended_us, removed)] = _paused(variant, 40_000, exact).events("member_removed")
    assert removed.cause == "session-expired"
    until_ms = ended_us // 1000 - PAUSED_MS - LATENCY_MS
    assert _paused(variant, until_ms, exact).events("member_removed") == []
    assert len(_paused(variant, until_ms + 1, exact).events("member_removed")) == 1
