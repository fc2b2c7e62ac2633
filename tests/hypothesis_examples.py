"""The number of examples that Hypothesis tries: ten times as many in `./dev soak` as in other runs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

_EVERY = 100
_SAMPLE, _SOAK = 25, 250

#: A machine that is busy fails no property: no example has a deadline, and none is drawn too slowly.
_TOO_SLOW = (HealthCheck.too_slow,)


def load_profile(soaks: bool) -> None:
    """Has to be called before the tests are imported."""
    for name, count in (("sample", _SAMPLE), ("soak", _SOAK)):
        settings.register_profile(name, max_examples=count, deadline=None, suppress_health_check=_TOO_SLOW)
    settings.load_profile("soak" if soaks else "sample")


def soak_properties(items: list[pytest.Item]) -> None:
    """Let `./dev soak` run the properties, too."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.soak)


def examples(count: int) -> int:
    """Return the number of examples of a property that needs ``count`` instead of Hypothesis' 100."""
    return max(1, count * settings().max_examples // _EVERY)
