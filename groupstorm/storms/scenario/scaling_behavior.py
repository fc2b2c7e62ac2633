"""`scale_up_behavior`, `scale_down_behavior`: the policies of an HPA, as Kubernetes writes them.

`{policies: [{type: Pods, value: 4, periodSeconds: 60}], selectPolicy: Min}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import read_list, whole
from groupstorm.storms.scenario.settings_table import INT_MAX

MAX, MIN, DISABLED = "Max", "Min", "Disabled"
#: The most that Kubernetes allows.
PERIOD_S_MAX: Final = 1_800
_FORM: Final = "{type: Pods, value: 4, periodSeconds: 60}"


class ScalingPolicy(NamedTuple):
    """``value`` pods, or per cent of them, may come or go within ``period_ms``."""

    is_percentage: bool
    value: int
    period_ms: int


@dataclass(frozen=True, slots=True)
class ScalingBehavior:
    """The policies of one direction; ``select``: the largest change counts, the smallest one, or none.

    ``as_written``: as a file has it.
    """

    policies: tuple[ScalingPolicy, ...]
    select: str = MAX
    as_written: Mapping[str, Any] = field(default_factory=dict)


def read_scaling_behavior(where: str, written: Any) -> ScalingBehavior:
    """Raises InputError that names the policy and the field."""
    if not isinstance(written, Mapping) or not {"policies"} <= set(written) <= {"policies", "selectPolicy"}:
        raise InputError(f"{where}: {written!r}: expected {{policies: [{_FORM}], selectPolicy: {MAX}}}")
    select = written.get("selectPolicy", MAX)
    if select not in (MAX, MIN, DISABLED):
        raise InputError(f"{where}: selectPolicy: {select!r}: expected {MAX}, {MIN} or {DISABLED}")
    policies = read_list(f"{where}: policies", written["policies"], _FORM, _policy)
    if not policies:
        raise InputError(f"{where}: policies: expected at least one {_FORM}")
    return ScalingBehavior(policies, select, written)


def _policy(where: str, written: Any) -> ScalingPolicy:
    if not isinstance(written, Mapping) or set(written) != {"type", "value", "periodSeconds"}:
        raise InputError(f"{where}: {written!r}: expected {_FORM}")
    if written["type"] not in ("Pods", "Percent"):
        raise InputError(f"{where}: type: {written['type']!r}: expected Pods or Percent")
    return ScalingPolicy(
        written["type"] == "Percent",
        whole(f"{where}: value", written["value"], 1, INT_MAX),
        whole(f"{where}: periodSeconds", written["periodSeconds"], 1, PERIOD_S_MAX) * 1000,
    )
