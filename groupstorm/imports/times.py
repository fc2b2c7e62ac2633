"""The times that logs print, as microseconds since 1970: the table of their forms."""

from __future__ import annotations

import re
from calendar import isleap, timegm
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from groupstorm.problems import InputError

MICRO: Final = 1_000_000
DAY_US: Final = 24 * 3600 * MICRO
#: The orders of a date's numbers: year, month, day. Of those that fit a log, the first is assumed.
ORDERS: Final = ("ymd", "dmy", "mdy")
#: Stands for a year that is not printed; it has a 29 February.
_NO_YEAR: Final = 1972
#: Groups have coordinators since Kafka 0.9: what gives an earlier year is another order.
_FIRST_YEAR: Final = 2015


class Instant(NamedTuple):
    """``us``: microseconds since 1970, in UTC if ``is_utc``, else on the clock of a zone that is not printed.

    ``step_us``: how exact the form is. ``lacks``: "date" of a clock alone, "year" of a date without one.
    """

    us: int
    is_utc: bool
    step_us: int
    lacks: str = ""


_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_CLOCK = r"\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AP]M\b)?"
_ZONE = r"(?:Z| ?UTC| ?GMT| ?[+-]\d\d:?\d\d(?!\d))?"
_ISO = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?: ?(Z|UTC|GMT|[+-]\d\d:?\d\d))?"
)
_MONTH = rf"(?:{'|'.join(_NAMES)})[a-z]*\.?"
_NUMBERS = re.compile(r"(?<![\d./-])(\d\d?)([-/.])(\d\d?)\2(\d{4}|\d\d)(?![\d/-])")
_DAY = (
    rf"\d{{4}}[-/.]\d\d?[-/.]\d\d?|20\d\d[01]\d[0-3]\d|\d\d?[-/.]\d\d?[-/.](?:\d{{4}}|\d\d)"
    rf"|\d{{4}} {_MONTH} +\d\d?"
    rf"|\d\d?[- /]{_MONTH}[- /]\d{{4}}|{_MONTH} +\d\d?(?:st|nd|rd|th)?,? \d{{4}}"
)
_DAY_ALONE = re.compile(rf"(?<![\w./-])(?:{_DAY})(?![\w/-])")
_ISO_DAY = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)")
#: Between a date and its clock, also as columns of a CSV file.
_BETWEEN = r'(?:[T:]|,? ?@ |,? at |"?[,;|\t] ?"?|,? +)'


@lru_cache(maxsize=4096)
def _minute_us(text: str) -> int:
    """Return the time of ``2024-11-18 14:36`` in microseconds. Raises ValueError."""
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
    if zone[0] in "+-":
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        us -= (minutes if zone[0] == "+" else -minutes) * 60 * MICRO
    return Instant(us, True, step_us)


def _second_us(digits: str) -> int:
    second = int(digits)
    if second > 60:
        raise ValueError(digits)
    return second * MICRO


_WEEKDAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
#: Words behind a clock that are no unknown zone.
_KNOWN_ZONES: Final = frozenset({"UTC", "GMT", "AM", "PM"})
#: Says in which order the numbers of a day stand.
Order = Callable[[], str]


def _first_order() -> str:
    return ORDERS[0]


def _at_clock(day: str, text: str) -> Instant:
    """``10:00:06.371 PM +0000`` of a day."""
    found = re.fullmatch(r"(\d\d?)(:\d\d:\d\d(?:[.,]\d+)?)(?: ?([AP])M)?(.*)", text)
    if found is None:
        raise ValueError(text)
    hour = int(found[1]) % 12 + 12 * (found[3] == "P") if found[3] else int(found[1])
    return _iso(f"{day} {hour:02d}{found[2]}{found[4]}")


def _dated(text: str, order: Order) -> Instant:
    """A day in any form, and its clock."""
    clock = re.search(_CLOCK + _ZONE + "$", text)
    if clock is None:
        raise ValueError(text)
    return _at_clock(_day(text[: clock.start()], order), clock[0])


def _day(text: str, order: Order) -> str:
    """``2024-11-18``, of a day in any form."""
    text = re.sub(r"^(\d{4})(\d\d)(?=\d\d)", r"\1-\2-", text)
    numbers, words = _NUMBERS.search(text), re.findall(r"\d+|[A-Z][a-z]{2}", text)
    if numbers is not None:
        by_name = dict(zip(order(), (numbers[1], numbers[3], numbers[4]), strict=True))
        year, month, day = (int(by_name[name]) for name in "ymd")
    else:
        named = [_MONTHS[word] for word in words if word in _MONTHS]
        digits = [int(word) for word in words if word.isdigit()]
        month = named[0] if named else digits.pop(1)
        year, day = max(digits), min(digits)
    return f"{year + 2000 if year < 100 else year}-{month:02d}-{day:02d}"


def _epoch(text: str) -> Instant:
    """Seconds with a fraction, or a whole number of milliseconds, microseconds or nanoseconds."""
    seconds, _, fraction = text.partition(".") if "." in text else (text[:10], "", text[10:])
    us = int(seconds) * MICRO + int(fraction[:6].ljust(6, "0"))
    return Instant(us, True, 10 ** max(0, 6 - len(fraction)))


def _clock(text: str) -> Instant:
    return _at_clock("1970-01-01", text)._replace(lacks="date")


def _ctime(text: str) -> Instant:
    """As `date` prints it: ``Wed Mar  4 10:00:06 UTC 2026``."""
    words = text.split()
    month = next(index for index, word in enumerate(words) if word in _MONTHS)
    clock = " ".join(word for word in words[month + 2 : -1] if word in _KNOWN_ZONES or not word.isalpha())
    return _at_clock(f"{words[-1]}-{_MONTHS[words[month]]:02d}-{int(words[month + 1]):02d}", clock)


def _syslog(text: str) -> Instant:
    """A date without a year: ``Feb 27 09:17:17.924``."""
    month, day, clock = text.split(None, 2)
    return _at_clock(f"{_NO_YEAR}-{_MONTHS[month]:02d}-{int(day):02d}", clock)._replace(lacks="year")


def _glog(text: str) -> Instant:
    """As glog and klog print it, without a year: ``I0227 09:17:17.924123``."""
    return _syslog(f"{_NAMES[int(text[1:3]) - 1]} {text[3:5]} {text[6:]}")


class Form(NamedTuple):
    """``read``: takes the text, and the order of the numbers of a day."""

    pattern: re.Pattern[str]
    read: Callable[[str, Order], Instant]


#: Name -> how a time looks, and what it says. At one place of a line the first that fits counts.
FORMS: Mapping[str, Form] = {
    "iso": Form(
        re.compile(r"(?<!\d)\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?" + _ZONE),
        lambda text, _: _iso(text),
    ),
    "dated": Form(re.compile(rf"(?<![\w./-])(?:{_DAY}){_BETWEEN}{_CLOCK}{_ZONE}"), _dated),
    "epoch": Form(re.compile(r"(?<![\d.])\d{9,10}\.\d{1,9}(?![\d.])"), lambda text, _: _epoch(text)),
    "ctime": Form(
        re.compile(
            rf"(?:{_WEEKDAY} )?(?:{'|'.join(_NAMES)}) [ \d]?\d {_CLOCK}(?: [A-Z]{{3,5}})? \d{{4}}(?!\d)"
        ),
        lambda text, _: _ctime(text),
    ),
    "syslog": Form(
        re.compile(rf"(?:{'|'.join(_NAMES)}) [ \d]?\d {_CLOCK}{_ZONE}"), lambda text, _: _syslog(text)
    ),
    "glog": Form(
        re.compile(rf"(?<!\w)[DIWEF](?:0[1-9]|1[0-2])[0-3]\d {_CLOCK}"), lambda text, _: _glog(text)
    ),
    "clock": Form(re.compile(rf"(?<![\d:.-]){_CLOCK}(?![\d:])"), lambda text, _: _clock(text)),
    #: Seconds since logrus began, as it prints them on a terminal: ``INFO[0051]``.
    "elapsed": Form(
        re.compile(r"(?<=[A-Z]{4}\[)\d{4,7}(?=\])"),
        lambda text, _: Instant(int(text) * MICRO, False, MICRO, lacks="date"),
    ),
}
_ANY = re.compile("|".join(f"(?P<{name}>{form.pattern.pattern})" for name, form in FORMS.items()))
#: Only where nothing else says when: such a number may be anything.
_WHOLE_EPOCH = re.compile(r"(?<![\w.-])1\d{9}(?:\d{3}){1,3}(?![\w.-])")


def instant(text: str, form: str = "", order: Order = _first_order) -> Instant | None:
    """The time that ``text`` is; of ``form``, or of any. None if it is none."""
    text = text.strip()
    if not form:
        found = _ANY.fullmatch(text)
        if found is None:
            return _read(_epoch, text) if _WHOLE_EPOCH.fullmatch(text) else None
        form = str(found.lastgroup)
    return _read(lambda text: FORMS[form].read(text, order), text)


def _read(read: Callable[[str], Instant], text: str) -> Instant | None:
    try:
        return read(text)
    except (ValueError, KeyError):
        return None


class Sight(NamedTuple):
    """A time in a text: its form, and where it stands."""

    form: str
    start: int
    end: int


def sights(text: str) -> list[Sight]:
    """The times in a text, from left to right."""
    return [Sight(str(one.lastgroup), one.start(), one.end()) for one in _ANY.finditer(text)]


def number_in(text: str) -> Instant | None:
    """The last whole number of milliseconds or less since 1970."""
    found = _WHOLE_EPOCH.findall(text)
    return _read(_epoch, found[-1]) if found else None


def day_in(text: str, order: Order) -> Instant | None:
    """The midnight of the first date in a text that stands alone, as in a column of its own."""
    found = _DAY_ALONE.search(text)
    if found is None or not re.search(r"\d{4}", found[0]):
        return None  # numbers of two digits may be a version
    return _read(lambda text: _iso(f"{_day(text, order)} 00:00:00"), found[0])


def completed(own: Instant, by: Instant) -> Instant:
    """A clock, or a date without a year, at the day or in the year that puts it nearest to ``by``."""
    if own.lacks == "date":
        before = by.us // DAY_US * DAY_US
        near = [before + days * DAY_US + own.us for days in (-1, 0, 1)]
    else:
        year = (datetime(1970, 1, 1) + timedelta(microseconds=by.us)).year
        near = [in_year(own.us, year + years) for years in (-1, 0, 1)]
    return own._replace(us=min(near, key=lambda us: abs(us - by.us)), lacks="")


def in_year(us: int, year: int) -> int:
    """A time of the year that stands for none, in ``year``."""
    there = datetime(1970, 1, 1) + timedelta(microseconds=us)
    days = (there - datetime(_NO_YEAR, 1, 1)).days
    if there.month > 2 and not isleap(year):
        days -= 1
    return timegm((year, 1, 1, 0, 0, 0)) * MICRO + days * DAY_US + us % DAY_US


def day_order(lines: Iterable[str]) -> tuple[str, bool]:
    """The order of the numbers of a log's dates, and whether it is only assumed.

    Dates that no other order can be decide, or else those that ISO 8601 has beside them.
    """
    orders, halves, near = set(ORDERS), False, dict.fromkeys(ORDERS, False)
    known: str | None = None  # the beginning of a line, with a date that has been looked at
    for line in lines:
        if known is not None and line.startswith(known):
            continue
        iso = set(_ISO_DAY.findall(line))
        for found in FORMS["dated"].pattern.finditer(line):
            numbers = _NUMBERS.match(found[0])
            if numbers is None:
                continue
            known = line[: found.start() + numbers.end()]
            halves = halves or found[0].endswith("M")
            days = {order: _valid_day(order, numbers) for order in ORDERS}
            orders &= {order for order, day in days.items() if day} or orders
            for order, day in days.items():
                near[order] = near[order] or day in iso
        if len(orders) < 2:
            break
    if len(orders) > 1 and any(near[order] for order in orders):
        orders = {order for order in orders if near[order]}
    if halves and "mdy" in orders:  # clocks of twelve hours stand behind American dates
        return "mdy", len(orders) > 1
    return next((order for order in ORDERS if order in orders), ORDERS[0]), len(orders) > 1


def _valid_day(order: str, numbers: re.Match[str]) -> str:
    """``2024-11-18`` as these numbers in this order are; "" if they cannot be it."""
    try:
        text = _day(numbers[0], lambda: order)
        year, month, day = map(int, text.split("-"))
        datetime(year, month, day)
    except ValueError:
        return ""
    return text if year >= _FIRST_YEAR else ""


def date_of(us: int) -> date:
    return (datetime(1970, 1, 1) + timedelta(microseconds=us)).date()


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


def to_utc_us(local_us: int, tz: tzinfo, fold: int = 0) -> int:
    """A clock of ``tz`` -> UTC. ``fold``: 1 in the second of two hours, when summer time ends."""
    local = datetime(1970, 1, 1) + timedelta(microseconds=local_us)
    offset = local.replace(tzinfo=tz, fold=fold).utcoffset()
    return local_us - (0 if offset is None else offset // timedelta(microseconds=1))


def shown(us: int, lacks: str = "") -> str:
    """For people, in UTC, to the millisecond; without what no line says: a "year", a "date", any "time"."""
    if lacks == "time":
        return "an unknown time"
    text = (datetime(1970, 1, 1) + timedelta(microseconds=us)).isoformat(sep=" ", timespec="milliseconds")
    return text[{"": 0, "year": 5, "date": 11}[lacks] :]
