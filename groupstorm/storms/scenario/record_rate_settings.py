"""The values of the settings about records: rates by topic, skew over partitions, changes over time.

Rates are whole records per 1,000 seconds. Changes may come from a CSV file: when, how many a second, into
which topic and partition. All arithmetic is on integers, or in decimals whose operations are rounded
correctly: the same settings give the same rates on any machine.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import (
    MILLION,
    milliseconds,
    number,
    plain,
    share,
    thousandths,
    whole,
)
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.units import microseconds
from groupstorm.yaml_documents import read_text

MAX_RATE: Final = 10**9
"""Records a second into one partition."""

MAX_FACTOR: Final = 1_000
OTHERS: Final = "others"
WAVE_SLOTS: Final = 24
MAX_WAVE_CHANGES: Final = 1_000

_DECIMALS: Final = Context(prec=20)
_WEIGHT_OF_FIRST: Final = 10**15

MAX_FILE_BYTES: Final = 10_000_000
MAX_ROWS: Final = 200_000

_UNIT_OF_HEADER: Final = {"time": "", "time_ms": "ms", "time_s": "s"}
_HEADER: Final = "time,rate[,topic[,partition]]"


class FileRow(NamedTuple):
    """A rate: each partition gets ``rate`` records per 1,000 s from ``at_ms`` on. None: all of them."""

    at_ms: int
    rate: int
    topic: str | None
    partition: int | None


def read_rate_file(where: str, name: str) -> tuple[FileRow, ...]:
    """Raises InputError that names the file, the line, the value and what was expected."""
    try:
        text = read_text(Path(name), MAX_FILE_BYTES)
    except InputError as problem:
        raise InputError(f"{where}{problem}") from problem
    return _rows_of_text(f"{where}{name}", text.removeprefix("\ufeff"))  # spreadsheets write a mark in front


def _rows_of_text(source: str, text: str) -> tuple[FileRow, ...]:
    lines = csv.reader(text.splitlines(), strict=True)
    rows: list[FileRow] = []
    unit: str | None = None
    width = 0
    try:
        for cells in lines:
            where = f"{source}: line {lines.line_num}"
            values = [cell.strip() for cell in cells]
            if not any(values):
                continue
            if unit is None:
                unit, width = _header(where, values)
                continue
            if not 2 <= len(values) <= width:
                raise InputError(f"{where}: {len(values)} values: expected {_HEADER}")
            rows.append(_row(where, values, unit))
            if len(rows) > MAX_ROWS:
                raise InputError(f"{source}: more than {MAX_ROWS} rows")
    except csv.Error as error:
        raise InputError(f"{source}: line {lines.line_num}: not CSV: {error}") from error
    if not rows:
        raise InputError(f"{source}: no rates in it: expected the header {_HEADER} and rows")
    return _sorted_rows(source, rows)


def _header(where: str, values: list[str]) -> tuple[str, int]:
    names = [value.lower() for value in values]
    if names[0] not in _UNIT_OF_HEADER or names[1:] != ["rate", "topic", "partition"][: len(names) - 1]:
        raise InputError(
            f"{where}: {','.join(values)[:80]!r}: expected the header {_HEADER}; the first "
            "column may be time_ms or time_s"
        )
    if len(names) < 2:
        raise InputError(f"{where}: expected the header {_HEADER}")
    return _UNIT_OF_HEADER[names[0]], len(names)


def _row(where: str, values: list[str], unit: str) -> FileRow:
    time = (values[0] + unit).strip()
    at_us = microseconds(time) if time[-1:].isalpha() else None
    if at_us is None:
        expected = f"a number of {unit}" if unit else "a time with its unit such as 90s or 5m"
        raise InputError(f"{where}: time: {values[0]!r}: expected {expected}")
    topic = values[2] if len(values) > 2 and values[2] else None
    partition = values[3] if len(values) > 3 and values[3] else None
    if partition is not None and (topic is None or not partition.isdecimal()):
        raise InputError(f"{where}: partition: {partition!r}: expected a number, with its topic before it")
    rate = thousandths(f"{where}: rate", values[1], MAX_RATE)
    return FileRow(int(at_us) // 1000, rate, topic, None if partition is None else int(partition))


def read_rate_rows(where: str, written: Any) -> tuple[FileRow, ...]:
    """The rows of a file as a resolved scenario has them: [milliseconds, rate, topic, partition].

    Raises InputError.
    """
    if not isinstance(written, list) or not 0 < len(written) <= MAX_ROWS:
        raise InputError(f"{where}: expected a list of [milliseconds, rate, topic, partition]")
    rows = []
    for row_number, one in enumerate(written, start=1):
        place = f"{where}: {row_number}"
        if not isinstance(one, list) or len(one) != 4:
            raise InputError(f"{place}: {one!r}: expected [milliseconds, rate, topic, partition]")
        at_ms, rate, topic, partition = one
        if topic is not None and not isinstance(topic, str):
            raise InputError(f"{place}: topic: {topic!r}: expected a name or null")
        if partition is not None and (topic is None or type(partition) is not int or partition < 0):
            raise InputError(f"{place}: partition: {partition!r}: expected a number of a topic, or null")
        rows.append(FileRow(milliseconds(place, at_ms), thousandths(place, rate, MAX_RATE), topic, partition))
    return _sorted_rows(where, rows)


def _sorted_rows(source: str, rows: list[FileRow]) -> tuple[FileRow, ...]:
    """By time. Raises InputError if two rows speak of the same time and partitions."""
    seen: set[tuple[int, str | None, int | None]] = set()
    for row in rows:
        key = (row.at_ms, row.topic, row.partition)
        if key in seen:
            raise InputError(f"{source}: two rates at {row.at_ms} ms for the same partitions")
        seen.add(key)
    return tuple(sorted(rows, key=lambda row: row.at_ms))


@dataclass(frozen=True, slots=True)
class RecordRate:
    """`record_rate`: records per 1,000 s into a partition of each topic, on average over its partitions."""

    others: int
    by_topic: tuple[tuple[str, int], ...]
    as_written: Any = field(compare=False, hash=False)

    def of(self, topic: str) -> int:
        return dict(self.by_topic).get(topic, self.others)


@dataclass(frozen=True, slots=True)
class RecordSkew:
    """`record_skew`: how the records of a topic spread over its partitions.

    With ``zipf`` the share of the partition of rank k is proportional to k**-zipf. With ``hot`` these
    partitions (or so many) get ``hot_share`` millionths of the records in equal parts, the others the rest.
    Which partitions come first depends on the topic's name alone: the same in all seeds and variants.
    """

    zipf: Decimal | None
    hot: tuple[int, ...]
    hot_count: int
    hot_share: int
    as_written: Any = field(compare=False, hash=False)

    def weights(self, topic: str, partitions: int) -> tuple[int, ...] | None:
        """The weight of each partition; None if all are equal."""
        if self.zipf is not None:
            weights = [0] * partitions
            for rank, partition in enumerate(_by_heat(topic, partitions), start=1):
                weights[partition] = _zipf_weight(self.zipf, rank)
            return tuple(weights)
        hot = set(self.hot or _by_heat(topic, partitions)[: self.hot_count]) & set(range(partitions))
        if not hot or len(hot) == partitions:
            return None
        cold = partitions - len(hot)
        hot_weight, cold_weight = self.hot_share * cold, (MILLION - self.hot_share) * len(hot)
        return tuple(hot_weight if p in hot else cold_weight for p in range(partitions))


@dataclass(frozen=True, slots=True)
class RateChanges:
    """`record_rate_over_time`: factors from instants on, or rates from a file."""

    factors: tuple[tuple[int, int], ...]
    """(from, in microseconds; thousandths), rising from 0."""
    rows: tuple[FileRow, ...]
    as_written: Any = field(compare=False, hash=False)

    @property
    def is_steps(self) -> bool:
        """Whether it is neither a wave nor a file: the last rate is not chance."""
        return isinstance(self.as_written, list)

    def rows_of(self, topic: str, partition: int) -> tuple[FileRow, ...]:
        """The rows that count for a partition: its own, else its topic's, else those for all."""
        for wanted in ((topic, partition), (topic, None), (None, None)):
            rows = tuple(row for row in self.rows if (row.topic, row.partition) == wanted)
            if rows:
                return rows
        return ()


@lru_cache(maxsize=4096)
def shares(skew: RecordSkew | None, topic: str, partitions: int, total: int) -> tuple[int, ...]:
    """``total`` (records per 1,000 s) divided over the partitions of a topic, without a remainder."""
    weights = None if skew is None else skew.weights(topic, partitions)
    if weights is None:
        weights = (1,) * partitions
    whole = sum(weights)
    result = []
    before = 0
    for weight in weights:
        after = before + weight
        result.append(total * after // whole - total * before // whole)
        before = after
    return tuple(result)


def read_record_rate(where: str, written: Any) -> RecordRate:
    """A number, or topics with numbers; `others` for those that are not named. Raises InputError."""
    if not isinstance(written, Mapping):
        return RecordRate(thousandths(where, written, MAX_RATE), (), written)
    rates = {str(topic): thousandths(f"{where}: {topic}", rate, MAX_RATE) for topic, rate in written.items()}
    others = rates.pop(OTHERS, 0)
    return RecordRate(others, tuple(rates.items()), dict(written))


def read_record_skew(where: str, written: Any) -> RecordSkew | None:
    """none, {zipf: 1.0} or {hot: {partitions: 2, share: 50%}}. Raises InputError."""
    if written is None or written == "none":
        return None
    if isinstance(written, Mapping) and set(written) == {"zipf"}:
        exponent = number(f"{where}: zipf", written["zipf"], "an exponent from 0 to 5")
        if exponent > 5:
            raise InputError(f"{where}: zipf: {written['zipf']!r}: expected an exponent from 0 to 5")
        return RecordSkew(exponent, (), 0, 0, {"zipf": written["zipf"]})
    if isinstance(written, Mapping) and set(written) == {"hot"}:
        hot = written["hot"]
        if isinstance(hot, Mapping) and set(hot) == {"partitions", "share"}:
            part = share(f"{where}: hot: share", hot["share"])
            chosen = hot["partitions"]
            if _is_count(chosen):
                return RecordSkew(None, (), chosen, part, {"hot": dict(hot)})
            if isinstance(chosen, list) and chosen and all(_is_count(p, least=0) for p in chosen):
                return RecordSkew(None, tuple(chosen), 0, part, {"hot": dict(hot)})
            raise InputError(
                f"{where}: hot: partitions: {chosen!r}: expected a number of partitions, or a list of them"
            )
    raise InputError(
        f"{where}: {written!r}: expected none, {{zipf: 1.0}} or {{hot: {{partitions: 2, share: 50%}}}}"
    )


def read_rate_changes(where: str, written: Any) -> RateChanges | None:
    """Steps, a wave or a file. Raises InputError, for a file with the name and the line."""
    if written is None or written == "none":
        return None
    if isinstance(written, list) and written:
        steps = [_step(f"{where}: {index}", step) for index, step in enumerate(written, start=1)]
        for (earlier, _), (later, _) in pairwise(steps):
            if later <= earlier:
                raise InputError(f"{where}: {later // 1000} ms comes after {earlier // 1000} ms: sort by at")
        first = () if steps[0][0] == 0 else ((0, 1000),)
        return RateChanges((*first, *steps), (), [dict(step) for step in written])
    if isinstance(written, Mapping):
        keys = set(written)
        if {"period", "low", "high"} <= keys <= {"period", "low", "high", "slots"}:
            return RateChanges(_wave(where, written), (), dict(written))
        if keys == {"file"} and isinstance(written["file"], str):
            rows = read_rate_file(f"{where}: ", written["file"])
            return RateChanges((), rows, {"rates": [_plain_row(row) for row in rows]})
        if keys == {"rates"}:
            rows = read_rate_rows(f"{where}: rates", written["rates"])
            return RateChanges((), rows, {"rates": [_plain_row(row) for row in rows]})
    raise InputError(
        f"{where}: {written!r}: expected none, [{{at: 5m, factor: 3}}], "
        "{period: 24h, low: 0.3, high: 1.5} or {file: rates.csv}"
    )


def _step(where: str, written: Any) -> tuple[int, int]:
    if not isinstance(written, Mapping) or set(written) != {"at", "factor"}:
        raise InputError(f"{where}: {written!r}: expected {{at: 5m, factor: 3}}")
    at_ms = milliseconds(f"{where}: at", written["at"])
    return at_ms * 1000, thousandths(f"{where}: factor", written["factor"], MAX_FACTOR)


def _wave(where: str, written: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """A sine from ``low`` at time 0 to ``high`` at half a period, in equal slots of constant rate."""
    low = thousandths(f"{where}: low", written["low"], MAX_FACTOR)
    high = thousandths(f"{where}: high", written["high"], MAX_FACTOR)
    slots = whole(f"{where}: slots", written.get("slots", WAVE_SLOTS), 2, 360)
    if high < low:
        raise InputError(f"{where}: high: {written['high']!r} lies below low ({written['low']!r})")
    slot_us = milliseconds(f"{where}: period", written["period"]) * 1000 // slots
    if slot_us < 1_000_000:
        raise InputError(f"{where}: period: {written['period']!r}: a slot must last at least 1s")
    period = [low + (high - low) * _height(slot, slots) // MILLION for slot in range(slots)]
    return tuple((number * slot_us, period[number % slots]) for number in range(MAX_WAVE_CHANGES))


def _height(slot: int, slots: int) -> int:
    """(1 - cos) / 2 in the middle of a slot, in millionths, by Bhaskara's rational approximation of the sine
    (within 0.2 %): integers give the same on any machine."""
    turned = 180 * (2 * slot + 1) * 1000 // slots  # thousandths of a degree, 0 to 360,000
    lies_below = turned < 90_000 or turned > 270_000
    from_peak = abs(turned - 180_000) if not lies_below else min(turned, 360_000 - turned)
    angle = 90_000 - from_peak  # the sine of this, 0 to 90 degrees
    product = angle * (180_000 - angle)
    sine = 4 * product * MILLION // (40_500_000_000 - product)
    return (MILLION - sine) // 2 if lies_below else (MILLION + sine) // 2


def _by_heat(topic: str, partitions: int) -> list[int]:
    """The partitions of a topic, the one with most records first."""
    stream = Stream(0, "record-skew", topic)
    return sorted(range(partitions), key=stream.at)


@lru_cache(maxsize=65536)
def _zipf_weight(exponent: Decimal, rank: int) -> int:
    power = _DECIMALS.exp(_DECIMALS.multiply(-exponent, _DECIMALS.ln(Decimal(rank))))
    return max(1, int(_DECIMALS.multiply(power, Decimal(_WEIGHT_OF_FIRST))))


def _is_count(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _plain_row(row: FileRow) -> list[Any]:
    return [row.at_ms, plain(row.rate), row.topic, row.partition]
