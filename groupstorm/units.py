"""Durations and shares as people write them: `60s`, `5m`, `500ms`, `2h`; `25%`."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from groupstorm.problems import InputError

#: Microseconds of each unit.
UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
UNITS = "us, ms, s, m, h, d"

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


def microseconds(text: str, bare_us: int = 1000) -> Fraction | None:
    """`90s` -> 90,000,000; a number without a unit counts ``bare_us``. None if ``text`` is no duration."""
    match = _DURATION.fullmatch(text)
    if match is None or (match[2] and match[2] not in UNITS_US):
        return None
    return Fraction(match[1]) * (UNITS_US[match[2]] if match[2] else bare_us)


def duration_us(where: str, written: object, bare_us: int = 1000) -> int:
    """Microseconds, fractions of one dropped; a bare number counts ``bare_us``: as a rule, milliseconds.

    Raises InputError that begins with ``where``.
    """
    found: Fraction | None = None
    if isinstance(written, int | float) and not isinstance(written, bool):
        value = Decimal(str(written))
        if not value.is_finite() or value < 0:
            raise InputError(f"{where}: {written!r}: a duration cannot be negative or infinite")
        found = Fraction(value) * bare_us
    elif isinstance(written, str):
        if written.strip().startswith("-"):
            raise InputError(f"{where}: {written!r}: a duration cannot be negative or infinite")
        found = microseconds(written, bare_us)
    if found is None:
        bare = "milliseconds" if bare_us == 1000 else "microseconds"
        raise InputError(
            f"{where}: {written!r} is no duration: expected {bare}, or with a unit: 60s, 5m ({UNITS})"
        )
    return int(found)


#: Bytes of each unit, as disks and networks are sold and as memory is counted.
UNITS_BYTES = {
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("kMGT", 1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)},
}
_BYTES = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def bytes_of(where: str, written: str) -> int:
    """`40GB` -> 40,000,000,000; `1 MiB` -> 1,048,576. Raises InputError that begins with ``where``."""
    match = _BYTES.fullmatch(written)
    if match is None or match[2] not in UNITS_BYTES:
        units = ", ".join(UNITS_BYTES)
        raise InputError(f"{where}: {written!r} is no amount of bytes: expected a number, or 40GB ({units})")
    return int(Fraction(match[1]) * UNITS_BYTES[match[2]])


def percent(written: object) -> Fraction | None:
    """`25%` -> 25; None if it is no share in per cent."""
    match = _PERCENT.fullmatch(written) if isinstance(written, str) else None
    return None if match is None else Fraction(match[1])


#: More microseconds do not fit into a row's 64 bits.
SECONDS_END = 9e12


def window_us(from_seconds: float, to_seconds: float | None) -> tuple[int, int | None]:
    """The window of --from and --to. Raises InputError if it ends before it begins, or beyond all traces."""
    for name, seconds in (("--from", from_seconds), ("--to", to_seconds or 0)):
        if not seconds < SECONDS_END:
            raise InputError(f"{name} {seconds:g}: expected seconds below {SECONDS_END:g}")
    if to_seconds is not None and to_seconds < from_seconds:
        raise InputError(f"--to {to_seconds:g}: expected at least {from_seconds:g}, where --from begins")
    second_us = UNITS_US["s"]
    return round(from_seconds * second_us), None if to_seconds is None else round(to_seconds * second_us)
