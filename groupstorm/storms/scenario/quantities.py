"""Values of a scenario as files write them: numbers, names, pods, and the policies of an autoscaler.

Numbers are integers: shares in millionths, factors in thousandths, times in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple, TypeVar

from groupstorm.problems import InputError
from groupstorm.storms.scenario.setting_names import INT_MAX
from groupstorm.units import duration_us

MILLION: Final = 1_000_000
THOUSAND: Final = 1_000

_One = TypeVar("_One")

_PERCENTAGE = re.compile(r"(\d{1,4})%")


def milliseconds(where: str, written: Any) -> int:
    """Whole milliseconds of a number of them, or of a text with a unit. Raises InputError."""
    return duration_us(where, written) // 1000


def share(where: str, written: Any) -> int:
    """Millionths of a whole from `25%` or 0.25. Raises InputError."""
    if isinstance(written, str) and written.rstrip().endswith("%"):
        part = number(where, written.rstrip()[:-1].strip(), "0% to 100%") / 100
    else:
        part = number(where, written, "a share such as 25% or 0.25")
    if part > 1:
        raise InputError(f"{where}: {written!r}: expected a share of at most 100%")
    return int(part * MILLION)


def thousandths(where: str, written: Any, most: int) -> int:
    """Thousandths from a number of 0 to ``most`` with up to three decimals. Raises InputError."""
    value = number(where, written, f"a number from 0 to {most}") * THOUSAND
    if value != int(value) or value > most * THOUSAND:
        raise InputError(f"{where}: {written!r}: expected a number from 0 to {most}, at most three decimals")
    return int(value)


def number(where: str, written: Any, expected: str) -> Decimal:
    """A number that is not negative, exactly as written. Raises InputError."""
    value: Decimal | None = None
    if isinstance(written, int | float | str) and not isinstance(written, bool):
        try:
            value = Decimal(str(written).strip())
        except InvalidOperation:
            value = None
    if value is None or not value.is_finite() or value < 0:
        raise InputError(f"{where}: {written!r}: expected {expected}")
    return value


def whole(where: str, written: Any, least: int, most: int) -> int:
    """A whole number in these bounds. Raises InputError."""
    if isinstance(written, bool) or not isinstance(written, int) or not least <= written <= most:
        raise InputError(f"{where}: {written!r}: expected a whole number from {least} to {most}")
    return written


def read_list(where: str, written: Any, form: str, read_one: Callable[[str, Any], _One]) -> tuple[_One, ...]:
    """The entries of a list, each read with its place. Raises InputError; ``form``: as they are written."""
    if not isinstance(written, list):
        raise InputError(f"{where}: {written!r}: expected a list of {form}")
    return tuple(read_one(f"{where}: {number}", one) for number, one in enumerate(written, start=1))


def is_member_list(written: Any) -> bool:
    """Whether it is a list of places of members."""
    return isinstance(written, list) and all(type(one) is int and one >= 0 for one in written)


def plain(value_thousandths: int) -> int | float:
    """A number of thousandths as a file has it."""
    whole, rest = divmod(value_thousandths, THOUSAND)
    return whole if rest == 0 else value_thousandths / THOUSAND


@dataclass(frozen=True, slots=True)
class PodCount:
    """``number`` pods, or ``number`` per cent of the wanted number (`intstr.IntOrString`)."""

    number: int
    is_percentage: bool = False

    def of(self, wanted: int, *, round_up: bool) -> int:
        """The count that this is of ``wanted`` pods (`GetScaledValueFromIntOrPercent`)."""
        if not self.is_percentage:
            return self.number
        return -(-self.number * wanted // 100) if round_up else self.number * wanted // 100

    @property
    def as_written(self) -> int | str:
        return f"{self.number}%" if self.is_percentage else self.number


def parse_pod_count(written: Any) -> PodCount | None:
    """3 or "25%"; None if it is neither."""
    if isinstance(written, int) and not isinstance(written, bool) and written >= 0:
        return PodCount(written)
    if isinstance(written, str):
        if (match := _PERCENTAGE.fullmatch(written.strip())) is not None:
            return PodCount(int(match[1]), is_percentage=True)
        if written.strip().isascii() and written.strip().isdigit():
            return PodCount(int(written))
    return None


TOPIC_NAME_EXPECTED: Final = "expected letters, digits, . _ and -, at most 249 of them"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """Whether Kafka allows a topic of this name (org.apache.kafka.common.internals.Topic)."""
    return _TOPIC_NAME.fullmatch(text) is not None and text not in (".", "..")


def is_name(text: str) -> bool:
    """Whether a folder can have this name: scenarios and variants give theirs to the folders of runs."""
    return _NAME.fullmatch(text) is not None


#: Values of `selectPolicy`.
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
    """`scale_up_behavior` or `scale_down_behavior`: the policies of one direction, as Kubernetes writes them.

    ``select``: the largest change counts, the smallest one, or none. ``as_written``: as a file has it.
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
