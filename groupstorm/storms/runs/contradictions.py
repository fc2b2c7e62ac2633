"""Settings of a scenario that cannot go well together, found by arithmetic before any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from groupstorm.clients.profiles import ALL_FETCHED
from groupstorm.storms.runs.load import member_load, record_ns
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.slow_work import Machines, SlowRecordList
from groupstorm.storms.scenario.streams_settings import STREAMS
from groupstorm.storms.scenario.topics import topic_partitions
from groupstorm.wording import counted, listed, seconds


def contradictions(variants: Mapping[str, Settings]) -> list[str]:
    """Sentences, each with the variants that it is about unless it is about all."""
    found: dict[str, list[str]] = {}
    for name, settings in variants.items():
        for sentence in _of_one(settings):
            found.setdefault(sentence, []).append(name)
    return [
        f"{sentence}{'' if len(names) == len(variants) else f' ({listed(names)})'}."
        for sentence, names in found.items()
    ]


def outlasts_polls(settings: Settings) -> bool:
    """Whether work may outlast max.poll.interval.ms between two calls of poll()."""
    if settings.choice("application") == STREAMS:
        return False
    return any(True for own in settings.of_profiles() for _ in _polls(own))


def _of_one(settings: Settings) -> Iterator[str]:
    if settings.choice("application") == STREAMS:
        return
    yield from dict.fromkeys(one for own in settings.of_profiles() for one in _polls(own))
    if settings.choice("autoscaler") != "none":
        return
    members, partitions = settings.integer("members"), sum(topic_partitions(settings).values())
    if members > partitions:
        idle = members - partitions
        yield f"{counted(members, 'member')} on {counted(partitions, 'partition')}: {idle:,} own nothing"
    load = member_load(settings)
    if load.per_member is not None and load.busiest >= load.per_member:
        yield (
            f"one partition gets {load.busiest:,.0f} records a second, and its owner processes at most "
            f"{load.per_member:,.0f}: its lag grows, whoever owns it"
        )
    elif load.per_member is not None and load.arriving >= members * load.per_member:
        yield (
            f"{load.arriving:,.0f} records a second arrive, and {counted(members, 'member')} process at most "
            f"{members * load.per_member:,.0f}: the lag grows"
        )


def _polls(settings: Settings) -> Iterator[str]:
    """Work that outlasts max.poll.interval.ms between two calls of poll()."""
    interval_s = settings.integer("max.poll.interval.ms") / 1000
    slow_records = settings.of_type("slow_records", SlowRecordList)
    machines = settings.of_type("machines", Machines)
    slowest = max([1000, *(one.factor for one in machines.machines)]) / 1000
    works_s = {
        "the application may call poll() only every": (
            settings.distribution("poll_interval_ms").largest_us / 1e6,
            "poll_interval_ms",
        ),
        "one record may take": (settings.distribution("process_ms").largest_us * slowest / 1e6, "process_ms"),
        "a slow record takes": (
            max((one.work_us for one in slow_records.records), default=0) * slowest / 1e6,
            "slow_records",
        ),
    }
    is_said = False
    for words, (work_s, setting) in works_s.items():
        if work_s >= interval_s:
            is_said = True
            yield (
                f"{words} {seconds(work_s)} ({setting}), and max.poll.interval.ms is {seconds(interval_s)}: "
                "the member leaves the group meanwhile"
            )
    records = settings.integer("max.poll.records")
    batch_s = records * record_ns(settings) / 1e9
    # a client without the setting hands out what it has fetched
    if batch_s >= interval_s and not is_said and records < ALL_FETCHED:
        fitting = int(interval_s * 1e9 / record_ns(settings))
        yield (
            f"a full batch of {counted(records, 'record')} takes {seconds(batch_s)} in the mean, and "
            f"max.poll.interval.ms is {seconds(interval_s)}: a member that has fallen behind leaves the "
            f"group; {counted(fitting, 'record')} (max.poll.records) would fit"
        )
