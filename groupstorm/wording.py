"""Numbers and names for sentences."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import islice

_BYTES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def seconds(value: float) -> str:
    """A duration for people: three figures that matter, in minutes and hours if it is long."""
    if value < 0.9995:
        return "0 s" if value == 0 else "less than 1 ms" if value < 0.001 else f"{value * 1000:.0f} ms"
    if value < 599.5:
        return f"{value:.1f} s" if value < 99.95 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if value < 3599.5:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def lasting(us: float) -> str:
    """A duration in microseconds, as `seconds` has it."""
    return seconds(us / 1e6)


def number(value: float) -> str:
    """A count, or a median of counts."""
    return f"{value:,.0f}"


def rate(value: float) -> str:
    """A number of records a second, which may be far below one."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def at_most(value: float) -> str:
    """A limit above 0, in three figures that matter and never rounded up."""
    digits = 2 - math.floor(math.log10(value))
    down = math.floor(value * 10**digits) / 10**digits
    return f"{down:,.{digits}f}".rstrip("0").rstrip(".") if digits > 0 else f"{down:,.0f}"


def ratio(value: float, least: float) -> str:
    """Tell how many times ``least`` it is; nothing is not measured in nothings."""
    if least <= 0 or value < 1.05 * least:
        return ""
    times = value / least
    return f"{times:.1f} times" if times < 10 else f"{times:,.0f} times"


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def size(value: float) -> str:
    """An amount of bytes."""
    for unit, name in _BYTES:
        if value >= unit:
            amount = value / unit
            return f"{amount:,.1f} {name}" if amount < 99.95 else f"{amount:,.0f} {name}"
    return f"{value:,.0f} bytes"


def dollars(value: float) -> str:
    """Money in cents, and in smaller units below a cent."""
    return f"${value:,.2f}" if value == 0 or value >= 0.1 else f"${value:.4f}"


def listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def some(names: Collection[str], most: int = 6) -> str:
    """The first of many names."""
    more = len(names) - most
    return ", ".join(islice(names, most)) + (f" and {more:,} more" if more > 0 else "")
