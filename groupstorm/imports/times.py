"""The times that logs print, as microseconds since 1970: the table of their forms."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from groupstorm.problems import InputError

MICRO: Final = 1_000_000


class Instant(NamedTuple):
    """``us``: microseconds since 1970, in UTC if ``is_utc``, else on the clock of a zone that is not printed.

    ``step_us``: how exact the form is.
    """

    us: int
    is_utc: bool
    step_us: int


_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_ISO = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")


@lru_cache(maxsize=4096)
def _minute_us(text: str) -> int:
    """Of ``2024-11-18 14:36``. Raises ValueError."""
    year, month, day, hour, minute = (
        int(text[a:b]) for a, b in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16))
    )
    return timegm(datetime(year, month, day, hour, minute).timetuple()) * MICRO


def _iso(text: str) -> Instant:
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError(text)
    us = _minute_us(text[:16]) + _second_us(text[17:19])
    fraction, zone = found[7], found[8]
    step_us = MICRO
    if fraction:
        us += int(fraction[:6].ljust(6, "0"))
        step_us = 10 ** max(0, 6 - len(fraction))
    if zone is None:
        return Instant(us, False, step_us)
    if zone != "Z":
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        us -= (minutes if zone[0] == "+" else -minutes) * 60 * MICRO
    return Instant(us, True, step_us)


def _second_us(digits: str) -> int:
    second = int(digits)
    if second > 60:
        raise ValueError(digits)
    return second * MICRO


def _short(text: str) -> Instant:
    """Of Hadoop's and Spark's log4j: ``19/07/12 11:01:54``."""
    return _iso(f"20{text[:2]}-{text[3:5]}-{text[6:]}")


def _epoch(text: str) -> Instant:
    seconds, _, fraction = text.partition(".")
    return Instant(
        int(seconds) * MICRO + int(fraction[:6].ljust(6, "0")), True, 10 ** max(0, 6 - len(fraction))
    )


def _clock(text: str) -> Instant:
    """A time without a date counts from 1970-01-01."""
    return _iso(f"1970-01-01 {text}")


def _syslog(text: str) -> Instant:
    """A date without a year: ``Feb 27 09:17:17.924``."""
    return _iso(f"1972-{_MONTHS[text[:3]]:02d}-{int(text[4:6]):02d} {text[7:]}")


class Form(NamedTuple):
    pattern: str
    read: Callable[[str], Instant]


#: Name -> how a time looks, and what it says.
FORMS: Mapping[str, Form] = {
    "iso": Form(r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d(?!\d))?", _iso),
    "short": Form(r"(?<!\d)\d\d/\d\d/\d\d \d\d:\d\d:\d\d", _short),
    "epoch": Form(r"(?<!\d)\d{9,10}\.\d{1,6}", _epoch),
    "syslog": Form(r"(?:" + "|".join(_NAMES) + r") [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?", _syslog),
    "clock": Form(r"(?<!\d)\d\d:\d\d:\d\d[.,]\d{3}", _clock),
}
_ANY = re.compile("|".join(f"(?P<{name}>{form.pattern})" for name, form in FORMS.items()))


def instant(text: str, form: str = "") -> Instant | None:
    """The time that ``text`` is; of ``form``, or of any. None if it is none."""
    if not form:
        found = _ANY.fullmatch(text.strip())
        if found is None:
            return None
        form, text = str(found.lastgroup), found[0]
    try:
        return FORMS[form].read(text)
    except (ValueError, KeyError):
        return None


def nearest_to_the_end(prefix: str) -> Instant | None:
    """The last time in ``prefix``: in a line, the one nearest to the message on its right."""
    found = [*_ANY.finditer(prefix)]
    return instant(found[-1][0], str(found[-1].lastgroup)) if found else None


def zone(where: str, name: str) -> tzinfo:
    """``Europe/Berlin``, ``UTC``, ``+05:30``. Raises InputError that begins with ``where``."""
    offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as problem:
        raise InputError(
            f"{where}: {name!r} is no time zone: expected a name as Europe/Berlin, or +05:30"
        ) from problem


def to_utc_us(local_us: int, tz: tzinfo) -> int:
    """A clock of ``tz`` -> UTC."""
    local = datetime(1970, 1, 1) + timedelta(microseconds=local_us)
    offset = local.replace(tzinfo=tz).utcoffset()
    return local_us - (0 if offset is None else offset // timedelta(microseconds=1))


def shown(us: int) -> str:
    """For people, in UTC, to the millisecond."""
    return (datetime(1970, 1, 1) + timedelta(microseconds=us)).isoformat(sep=" ", timespec="milliseconds")
