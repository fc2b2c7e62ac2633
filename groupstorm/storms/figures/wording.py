"""Numbers and names as sentences have them."""

from __future__ import annotations

from collections.abc import Sequence

_BYTES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def seconds(value: float) -> str:
    """A duration for people: three figures that matter, thousands marked."""
    if value == 0:
        return "0 s"
    if value < 0.001:
        return "less than 1 ms"
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    return f"{value:,.1f} s" if value < 99.95 else f"{value:,.0f} s"


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
    """Money: cents, and more where there are none."""
    return f"${value:,.2f}" if value == 0 or value >= 0.1 else f"${value:.4f}"


def listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
