"""The other settings under which the same hours are run: variants of the scenario that repeats a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.runs.sweep import VARIANT, parse_axis
from groupstorm.storms.scenario.files import ResolvedScenario, Scenario
from groupstorm.whatif.drafting import AS_IT_WAS
from groupstorm.whatif.knobs import names_members_after_rollout

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_LENGTH_MAX = 100
#: More variants side by side than this no table shows.
VARIANTS_MAX = 12


def variants_of(
    scenario: Scenario, changed: Mapping[str, Any], over: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """``changed`` is one variant; with ``over`` there is one for each combination of its values.

    Raises InputError for a setting that does not exist, or too many combinations.
    """
    axes = [parse_axis(text, scenario) for text in over]
    for axis in axes:
        if axis.name == VARIANT or axis.name in changed:
            raise InputError(f"--over {axis.name}: expected another setting than --set has, and no variant")
    choices = [[*zip(axis.labels, axis.values, strict=True)] for axis in axes]
    found: dict[str, dict[str, Any]] = {}
    for one in product(*choices):
        overlay = {**changed, **{axis.name: value for axis, (_, value) in zip(axes, one, strict=True)}}
        labels = [f"{axis.name}-{label}" for axis, (label, _) in zip(axes, one, strict=True)]
        if overlay:
            found[_name(labels or [f"{name}-{_plain(value)}" for name, value in changed.items()])] = overlay
    if len(found) >= VARIANTS_MAX:
        raise InputError(f"--over: {len(found)} combinations: expected fewer than {VARIANTS_MAX}")
    return found


def check_change(scenario: ResolvedScenario) -> None:
    """Raise InputError if the steps would do something else under the settings of this variant."""
    if scenario.settings.pods("max_surge").number and names_members_after_rollout(scenario):
        raise InputError(
            "max_surge: with surge processes have other names after the rolling restart; steps name members "
            "after it: they would do nothing"
        )


def _plain(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, list) else str(value)


def _name(labels: Sequence[str]) -> str:
    """A name that a folder can have."""
    name = _UNSAFE.sub("-", "-".join(labels)).strip("-")[:_NAME_LENGTH_MAX]
    return f"{name}-changed" if name == AS_IT_WAS else name
