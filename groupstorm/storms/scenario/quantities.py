"""Numbers of a scenario as integers: shares in millionths, factors in thousandths, times in ms, pods."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar

from groupstorm.problems import InputError
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
