"""The order in which sessions end whose members the coordinator has asked about before."""

from __future__ import annotations

from tests.storms.test_sessions_by_hand import Requests, arbiter


def silent(us: int) -> Requests:
    """A member that has been silent since then; its session lasts 10 s."""
    requests = Requests(us // 1_000)
    requests.silent_since_us = lambda: us  # type: ignore[method-assign]
    return requests


def test_who_was_asked_about_for_an_earlier_end_waits_again() -> None:
    """At 15,000 ms a waits for b. Both send something more, and the next end is at 16,000 ms: then a waits
    for c, which the coordinator has not asked about before."""
    a, b, c = silent(5_000_900), silent(5_000_100), silent(6_000_100)
    several = arbiter(a=a, b=b, c=c)
    assert several.last_contact_ms("g", "a", 15_000) == 5_000
    a.contact_ms = 6_000
    a.silent_since_us = lambda: 6_000_900  # type: ignore[method-assign]
    b.contact_ms = 9_000
    b.silent_since_us = lambda: 9_000_000  # type: ignore[method-assign]
    assert several.last_contact_ms("g", "a", 16_000) == 6_000
    assert several.last_contact_ms("g", "c", 16_000) is None
    assert several.last_contact_ms("g", "a", 16_000) is None
