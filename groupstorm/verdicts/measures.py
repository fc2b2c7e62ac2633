"""The figures by which people compare runs: their words, units, and the least differences that count.

A difference between two runs counts if it is at least `Measure.noticed` and a tenth of the larger value:
0 against 304 ms without a consumer does not, a peak lag of 12,722 against 161,055 records does. Over several
seeds, two variants differ if they differ by more than a figure varies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from itertools import takewhile
from math import comb
from statistics import median, median_low
from typing import Any, NamedTuple, Self

from groupstorm.figures.table import Figures
from groupstorm.wording import dollars, number, seconds, size

#: The least difference that counts, as a share of the larger value.
NOTICED_SHARE = 0.1
#: Two variants are compared seed by seed from so many seeds on.
PAIRS_MIN = 5


class Unit(StrEnum):
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    COUNT = "count"
    BYTES = "bytes"
    DOLLARS = "dollars"


class Measure(NamedTuple):
    """A figure of which less is better.

    ``key`` is its word in `--rank`, ``phrase`` its words in sentences. ``noticed``: the least difference that
    a person would act on, in ``unit``; ``of_records`` raises it to this share of the records that the group
    processed. Figures of one ``family`` say nearly the same: a sentence takes one of them.
    """

    figure: str
    key: str
    phrase: str
    unit: Unit
    noticed: float
    family: str
    of_records: float = 0
    #: Whether sentences name it as a difference. The time until the lag was back counts from the first change
    #: on: of a scenario of several steps it holds the quiet time between them, too.
    is_told: bool = True

    def read(self, figures: Figures) -> float | None:
        value = getattr(figures, self.figure, None)
        return value if isinstance(value, int | float) else None

    def weigh(self, figures: Figures) -> float:
        """The part of the figure that a variant answers for.

        Records that are skipped as the group begins are the price of a group without a commit, whatever the
        variant: the later its first assignment, the more of them.
        """
        at_start = figures.records_skipped_at_start if self.figure == "records_skipped" else 0
        return (self.read(figures) or 0) - (at_start or 0)

    def compares(self, *variants: Sequence[Figures]) -> bool:
        """Whether the figure tells variants apart: what crosses racks adds up with all records of a run."""
        done = [median(run.records_processed or 0 for run in runs) for runs in variants]
        return self.key != "dollars" or max(done) - min(done) <= NOTICED_SHARE * max(done)

    def show(self, value: float) -> str:
        """The value in a sentence."""
        if self.unit is Unit.SECONDS:
            return seconds(value)
        if self.unit is Unit.MILLISECONDS:
            return seconds(value / 1000)
        if self.unit is Unit.BYTES:
            return size(value)
        if self.unit is Unit.DOLLARS:
            return dollars(value)
        return f"{value:,.1f}" if value < 10 and value % 1 == 0.5 else number(value)  # a median of two counts

    def show_range(self, spread: Spread) -> str:
        """The median in a sentence, with the range if there is one."""
        return with_range(spread, self.show)

    def noticed_among(self, runs: Iterable[Figures]) -> float:
        """The least difference that counts between ``runs``: by the records of the middle one."""
        return max(self.noticed, self.of_records * median_low(run.records_processed or 0 for run in runs))


_S, _MS, _N, _B = Unit.SECONDS, Unit.MILLISECONDS, Unit.COUNT, Unit.BYTES
_BACK = "time from the first change until the lag was back"

#: Of two figures that differ by as many times what is noticed, a sentence names the first one here.
MEASURES: tuple[Measure, ...] = (
    Measure("unowned_partition_seconds", "unowned", "un-owned time, in all", _S, 60, "un-owned"),
    Measure("task_downtime_seconds", "downtime", "tasks down, in all", _S, 60, "down"),
    Measure("staleness_max_seconds", "staleness", "the oldest unprocessed record", _S, 10, "lag"),
    Measure("lag_peak", "lag", "peak lag in records", _N, 1_000, "lag", 0.0001),
    Measure("nobody_consuming_seconds", "nobody", "nobody consuming at all", _S, 5, "nobody"),
    Measure("unowned_max_seconds", "gap", "longest single gap", _S, 5, "gap"),
    Measure(
        "task_downtime_max_seconds", "longest-downtime", "longest downtime of a task", _S, 30, "down-max"
    ),
    Measure("records_skipped", "skipped", "records skipped", _N, 10, "skipped"),
    Measure("records_duplicated", "duplicates", "records processed again", _N, 100, "again", 0.001),
    Measure("dual_owner_seconds", "two-owners", "time with two owners", _S, 1, "two"),
    Measure("cost_per_crash_partition_seconds", "crash", "un-owned time of a crash", _S, 60, "un-owned"),
    Measure("cost_per_deploy_partition_seconds", "deploy", "un-owned time of a deploy", _S, 60, "un-owned"),
    Measure("lag_recovery_seconds", "recovery", _BACK, _S, 120, "recovery", 0, False),
    Measure("rebalance_latency_max_ms", "rebalance", "longest rebalance", _MS, 10_000, "rebalance"),
    Measure("generations", "generations", "generations", _N, 20, "generations"),
    Measure(
        "generations_without_progress_max",
        "no-progress",
        "generations in a row without progress",
        _N,
        5,
        "progress",
    ),
    Measure("moves", "moves", "partitions moved", _N, 200, "moves"),
    Measure("moves_wasted", "wasted-moves", "moves that balance did not need", _N, 200, "moves"),
    Measure(
        "imbalance_records_max", "load", "records that one member has more than another", _N, 1_000, "even"
    ),
    Measure("imbalance_max", "imbalance", "partitions that one member has more than another", _N, 2, "even"),
    Measure("lock_seconds_lost", "locks", "time that locks kept records from others", _S, 60, "locks"),
    Measure("records_lost", "lost", "records given up and in no dead letter queue", _N, 1, "lost"),
    Measure("records_out_of_order", "order", "records done out of order", _N, 100, "order", 0.01),
    Measure("cross_rack_usd", "dollars", "cost of traffic between racks", Unit.DOLLARS, 0.05, "racks"),
    Measure("restored_bytes", "restored", "state restored before tasks could run", _B, 1e9, "restored"),
    Measure("tasks_from_scratch", "from-scratch", "tasks restored from nothing", _N, 2, "restored"),
    Measure("standby_restored_bytes", "standbys", "state built up by standbys", _B, 1e10, "standbys"),
    Measure(
        "task_imbalance", "task-imbalance", "tasks that one instance has more than another", _N, 2, "even"
    ),
)

BY_KEY: Mapping[str, Measure] = {measure.key: measure for measure in MEASURES}
BY_FIGURE: Mapping[str, Measure] = {measure.figure: measure for measure in MEASURES}


class _Range(NamedTuple):
    least: float
    median: float
    most: float


class Spread(_Range):
    """Values of one figure in the runs of one variant; of an even number the median lies between the two.

    ``likely``: the bounds of the median over all seeds, as far as these runs tell.
    ``by_seed``: the values in the order of the runs, if each has one.
    """

    likely: tuple[float, float]
    by_seed: Sequence[float]

    def __new__(cls, least: float, median: float, most: float) -> Self:
        spread = super().__new__(cls, least, median, most)
        spread.likely, spread.by_seed = (least, most), ()
        return spread

    def holds(self, value: float) -> bool:
        low, high = self.likely
        return low <= value <= high


def spread_of(values: Iterable[Any]) -> Spread | None:
    """Return the spread of those values that are numbers; None if there is none."""
    by_seed = [*values]
    numbers = sorted(value for value in by_seed if is_number(value))
    if not numbers:
        return None
    outer = _outer(len(numbers))
    spread = Spread(numbers[0], median(numbers), numbers[-1])
    spread.likely = numbers[outer], numbers[-1 - outer]
    spread.by_seed = by_seed if len(numbers) == len(by_seed) else ()
    return spread


@cache
def _outer(count: int) -> int:
    """The values on either side of so many sorted ones without which they hold their distribution's median in
    99 of 100 cases. Each lies on either side of it like a coin, so that the number below it is binomial.

    The range of all values grows with their number, so that no difference would be more than the seeds vary.
    """
    below, outer = 1, 0
    while (below := below + comb(count, outer + 1)) * 200 <= 2**count:
        outer += 1
    return outer


def with_range(values: Sequence[float], show: Callable[[float], str]) -> str:
    """The median of values, or of a spread, in a sentence; with the range if they differ by what is shown."""
    least, middle, most = (show(value) for value in (min(values), median(values), max(values)))
    return middle if least == most else f"{middle} ({least} to {most})"


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def within_spread(one: Spread, other: Spread) -> bool:
    """Whether seeds alone may explain the difference: one's median lies in the other's range, or of twelve
    seeds and more in the part of it that is likely to hold the median; and it is not that of each seed."""
    return (one.holds(other.median) or other.holds(one.median)) and not _differ_by_seed(one, other)


def _differ_by_seed(one: Spread, other: Spread) -> bool:
    """Whether each seed shows the difference, with half of its median at least: variants run with the same
    seeds. Chance alone has that of five seeds in 1 of 75 cases, of four in 1 of 30."""
    differences = spread_of(new - old for old, new in zip(one.by_seed, other.by_seed, strict=False))
    if differences is None or not len(one.by_seed) == len(other.by_seed) >= PAIRS_MIN:
        return False
    low, high = differences.likely
    return low * high > 0 and 2 * min(abs(low), abs(high)) >= abs(differences.median)


def all_within_spread(spreads: Sequence[Spread]) -> bool:
    """Whether no two of them differ by more than their seeds do."""
    return all(
        within_spread(one, other) for number, one in enumerate(spreads) for other in spreads[number + 1 :]
    )


#: A curve that stays nearer to its chord than this has no knee.
LEAST_DISTANCE = 0.1


def first_that_meets(met: Sequence[bool]) -> int | None:
    """The place of the knee by a goal; ``met`` in the order of rising values. None if the largest misses."""
    tail = sum(1 for _ in takewhile(bool, reversed(met)))
    return len(met) - tail if tail else None


def furthest_from_chord(values: Sequence[float], figures: Sequence[float]) -> int | None:
    """The place of the knee of a curve; ``values`` rise. None if there is no bend."""
    if len(values) < 3:
        return None
    width, height = values[-1] - values[0], max(figures) - min(figures)
    if width <= 0 or height <= 0:
        return None
    slope = (figures[-1] - figures[0]) / height
    distances = [
        abs((figure - figures[0]) / height - slope * (value - values[0]) / width)
        for value, figure in zip(values, figures, strict=True)
    ]
    most = max(distances)
    return distances.index(most) if most >= LEAST_DISTANCE else None
