"""How many examples Hypothesis tries: a quarter in the fast set, which leaves out the tests marked `slow`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_EVERY = 100
_FAST = 25

#: A machine that is busy fails no property: no example has a deadline, and none is drawn too slowly.
_TOO_SLOW = (HealthCheck.too_slow,)


def register_profiles() -> None:
    """``fast`` and ``full``; a profile has to be loaded before the tests are imported."""
    settings.register_profile("full", max_examples=_EVERY, deadline=None, suppress_health_check=_TOO_SLOW)
    settings.register_profile("fast", max_examples=_FAST, deadline=None, suppress_health_check=_TOO_SLOW)


def examples(count: int) -> int:
    """Of ``count`` examples in a full run, those of this run."""
    return max(1, count * settings().max_examples // _EVERY)
