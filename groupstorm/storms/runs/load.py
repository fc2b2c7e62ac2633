"""The work that arrives for a group and that its members can do, by arithmetic: no storm is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

from groupstorm.storms.scenario.consistency import commit_ns, is_shared
from groupstorm.storms.scenario.member_rules import STRATEGY, Machines, SlowRecordList
from groupstorm.storms.scenario.record_rate_settings import RateChanges
from groupstorm.storms.scenario.setting_names import CLASSIC, LARGEST_GROUP, STREAMS
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import Step, partitions_at_end
from groupstorm.storms.scenario.topics import rates_of, topic_partitions

CONCURRENCY_MAX = 100
"""More records at a time are not proposed."""


def record_ns(settings: Settings) -> int:
    """The mean time of a record and its commit in nanoseconds on the slowest machine, with ``concurrency``
    records at a time."""
    return _work_ns(settings) // settings.integer("concurrency") + _commit_ns(settings)


def _commit_ns(settings: Settings) -> int:
    return 0 if is_shared(settings) else commit_ns(settings)


def _work_ns(settings: Settings, factor: int | None = None) -> int:
    """Return the work on a record on a machine with this factor, in thousandths; None: on the slowest one."""
    slow_records = settings.of_type("slow_records", SlowRecordList)
    nanoseconds, _ = settings.distribution("process_ms").mean_and_variance()
    nanoseconds += sum(1000 * one.work_us // one.every for one in slow_records.records if one.every)
    return nanoseconds * (_slowest(settings) if factor is None else factor) // 1_000


def has_records(settings: Settings) -> bool:
    """Whether records arrive at some time: without any nothing is processed, however long it would take."""
    return any(
        rate
        for topic, count in topic_partitions(settings).items()
        for number in range(count)
        for _, rate in rates_of(settings, topic, number)
    )


def _slowest(settings: Settings) -> int:
    """The factor of the slowest machine, in thousandths."""
    return max([1000, *(one.factor for one in settings.of_type("machines", Machines).machines)])


def longest_work_us(settings: Settings) -> dict[str, int]:
    """The longest time that a process may be away from poll(), by the setting that it comes from."""
    slow_records = settings.of_type("slow_records", SlowRecordList).records
    factor = _slowest(settings) if has_records(settings) else 0
    return {
        "poll_interval_ms": settings.distribution("poll_interval_ms").largest_us,
        "process_ms": settings.distribution("process_ms").largest_us * factor // 1000,
        "slow_records": max((one.work_us for one in slow_records), default=0) * factor // 1000,
    }


@dataclass(frozen=True, slots=True)
class MemberLoad:
    """Records a second: of all partitions, the busiest first, and what one member does.

    ``work_s``: of the work on a record by the slowest member, which does ``concurrency`` records at a time.
    ``commit_s``: of the commit that each of its records waits for. ``quickest_s``: of a record of the
    quickest member. ``together``: what all members do, None if records take no time. Partitions are taken to
    be spread evenly by number, and the slowest member to own the busiest ones. ``is_shared``: of a share
    group, in which ceil(members / partitions) members read each partition (SimpleAssignor). ``threads``: of
    each instance of a Kafka Streams application, whose members these are; None of other groups. ``by_topic``:
    the partitions of each topic if the assignor is range, which deals them out topic by topic.
    """

    partitions: tuple[float, ...]
    work_s: float
    commit_s: float
    members: int
    concurrency: int
    quickest_s: float
    together: float | None
    is_shared: bool = False
    threads: int | None = None
    by_topic: tuple[tuple[float, ...], ...] = ()

    @property
    def name(self) -> str:
        """The word for a member."""
        return "member" if self.threads is None else "thread"

    @property
    def per_member(self) -> float | None:
        """The most that the slowest member does; None: records take no time."""
        return 1 / self._record_s if self._record_s else None

    @property
    def _record_s(self) -> float:
        return self.work_s / self.concurrency + self.commit_s

    @property
    def is_uneven(self) -> bool:
        """Whether some member is slower than others by more than a hundredth."""
        return self.quickest_s * 1.01 < self._record_s

    def is_enough_for_the_quickest(self) -> bool:
        """Whether the members would keep up if all were as quick as the quickest."""
        return self.of_unluckiest(self.members) * self.quickest_s < 1

    @property
    def arriving(self) -> float:
        return sum(self.partitions)

    @property
    def busiest(self) -> float:
        return self.partitions[0] if self.partitions else 0

    def readers_of_each(self, members: int) -> int:
        return -(-members // (len(self.partitions) or 1)) if self.is_shared else 1

    def of_unluckiest(self, members: int, at_most: bool = False) -> float:
        """Records a second for the member that has most to do. ``at_most``: also if it reads the busiest
        partitions of a share group together, each of which has several members."""
        readers = self.readers_of_each(members)
        if readers > 1 and not at_most:
            return max(self.arriving / members, self.busiest / readers)
        dealt = self.by_topic or (self.partitions,)
        return sum(sum(each[: -(-len(each) * readers // members)]) for each in dealt) / readers

    def enough_members(self) -> int | None:
        """The least number of members above the present one of which none has too much to do."""
        if self.per_member is None:
            return None
        most = LARGEST_GROUP if self.is_shared else len(self.partitions)
        more = range(self.members + 1, most + 1)
        return next((count for count in more if self.of_unluckiest(count, True) < self.per_member), None)

    def enough_threads(self) -> int | None:
        """The least threads of each of the present instances with which none has too much to do."""
        enough = self.enough_members()
        return None if enough is None or not self.threads else -(-enough * self.threads // self.members)

    def enough_concurrency(self) -> int | None:
        """The least ``concurrency`` with which the present members have no more than they can do."""
        most = self.of_unluckiest(self.members)
        left = 1 - self.commit_s * most
        if not self.work_s or left <= 0:
            return None
        least = max(int(self.work_s * most / left), self.concurrency) + 1
        return least if least <= CONCURRENCY_MAX else None

    @property
    def work_name(self) -> str:
        """The words for the time that `record_ms` limits."""
        return f"work on a record{f' by the slowest {self.name}' if self.is_uneven else ''}"

    def record_ms(self) -> float | None:
        """The slowest member's work on a record, in milliseconds, with which the members keep up; None if
        any, or none, will do."""
        most = self.of_unluckiest(self.members)
        left_s = 1 / most - self.commit_s if most else 0
        return 1000 * self.concurrency * left_s if left_s > 0 else None


def members_added(settings: Settings, steps: Sequence[Step]) -> int:
    """The members that steps start beside those of the beginning."""
    return sum(step.count for step in steps if step.do == "add") * settings.integer("members_per_pod")


def member_load(settings: Settings, steps: Sequence[Step] = ()) -> MemberLoad:
    """The load at the end of a scenario's rates, or the mean of a wave or a file if that is more; with what
    ``steps`` add."""
    changes = settings.optional("record_rate_over_time", RateChanges)
    of_rates = _last if changes is not None and changes.is_steps else _records_per_second
    topics = [
        sorted((of_rates(rates_of(settings, topic, one)) for one in range(count)), reverse=True)
        for topic, count in partitions_at_end(settings, steps).items()
    ]
    partitions = sorted(chain.from_iterable(topics), reverse=True)
    threads = settings.integer("num.stream.threads") if settings.choice("application") == STREAMS else None
    members = (settings.integer("members") + members_added(settings, steps)) * (threads or 1)
    later = settings.of_profiles()[len(settings.at_start()) :]
    rosters = [_at_start(settings, members), *([_pace(own, _slowest(settings))] * members for own in later)]
    roster = max(rosters, key=lambda paces: sum(pace.record_s for pace in paces))
    slowest, quickest_s = max(roster), min(pace.record_s for pace in roster)
    return MemberLoad(
        tuple(partitions),
        slowest.work_s,
        slowest.commit_s,
        members,
        slowest.concurrency,
        quickest_s,
        sum(1 / pace.record_s for pace in roster) if quickest_s else None,
        is_shared(settings),
        threads,
        tuple(map(tuple, topics)) if threads is None and all(map(_is_range, settings.at_start())) else (),
    )


def _is_range(own: Settings) -> bool:
    """Whether a plain consumer of these settings gets its partitions from range, if all want it first."""
    protocol = own.choice("group.protocol")
    return (own.names(STRATEGY)[0] if protocol == CLASSIC else own.choice("group.remote.assignor")) == "range"


class _Pace(NamedTuple):
    """The mean time of a record and its parts in seconds; a member works on ``concurrency`` at a time."""

    record_s: float
    work_s: float
    commit_s: float
    concurrency: int


def _pace(own: Settings, factor: int) -> _Pace:
    work_s, commit_s = _work_ns(own, factor) / 1e9, _commit_ns(own) / 1e9
    concurrency = own.integer("concurrency")
    return _Pace(work_s / concurrency + commit_s, work_s, commit_s, concurrency)


def _at_start(settings: Settings, members: int) -> list[_Pace]:
    """The pace of each member before a step rolls out other settings."""
    machines = settings.of_type("machines", Machines)
    known: dict[tuple[Settings, int], _Pace] = {}
    paces = []
    for index in range(members):
        key = settings.of_member(index), machines.factor(index)
        if key not in known:
            known[key] = _pace(*key)
        paces.append(known[key])
    return paces


def _last(rates: tuple[tuple[int, int], ...]) -> float:
    return rates[-1][1] / 1000


def _records_per_second(rates: tuple[tuple[int, int], ...]) -> float:
    """The last rate of a partition, or the mean before it if that is more.

    ``rates``: from when on, in microseconds, and records per 1,000 s.
    """
    last_us = rates[-1][0]
    passed = sum(rate * (next_us - at_us) for (at_us, rate), (next_us, _) in pairwise(rates))
    return max(_last(rates), passed / last_us / 1000 if last_us else 0)
