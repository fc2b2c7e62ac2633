"""The topics of a scenario: their names, their partitions at the beginning, the records that arrive."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.problems import InputError
from groupstorm.storms.scenario.member_rules import SlowRecordList
from groupstorm.storms.scenario.record_rate_settings import RateChanges, RecordRate, RecordSkew, shares
from groupstorm.storms.scenario.settings import Settings


def topic_partitions(settings: Settings) -> Mapping[str, int]:
    """The scenario's topics with their partitions: those of `topic_partitions`, or topic-0, topic-1, ..."""
    given = settings.optional("topic_partitions", dict)
    if given is not None:
        return given
    partitions = settings.integer("partitions")
    return {f"topic-{number}": partitions for number in range(settings.integer("topics"))}


def topic_names(settings: Settings) -> tuple[str, ...]:
    """The names of the scenario's topics, in their order."""
    return tuple(topic_partitions(settings))


def rates_of(settings: Settings, topic: str, partition: int) -> tuple[tuple[int, int], ...]:
    """(from, in microseconds; records per 1,000 s) of one partition, rising from 0, no rate twice in a row.

    `record_rate` is the mean over a topic's partitions; `record_skew` divides the topic's records among the
    partitions that it has at the beginning. A partition that is added later gets the mean.
    """
    base = settings.of_type("record_rate", RecordRate)
    skew = settings.optional("record_skew", RecordSkew)
    changes = settings.optional("record_rate_over_time", RateChanges)
    partitions: int = (settings.optional("topic_partitions", dict) or {}).get(
        topic, settings.integer("partitions")
    )

    def divided(mean: int) -> int:
        return _share(skew, topic, partition, partitions, mean)

    mean = base.of(topic)
    if changes is None:
        return ((0, divided(mean)),)
    if not changes.rows:
        return _distinct([(at_us, divided(mean * factor // 1000)) for at_us, factor in changes.factors])
    rates = [(0, divided(mean))]
    for row in changes.rows_of(topic, partition):
        rate = row.rate if row.partition is not None else divided(row.rate)
        if row.at_ms == 0:
            rates.clear()
        rates.append((row.at_ms * 1000, rate))
    return _distinct(rates)


def check_topics(where: str, settings: Settings, topics: Mapping[str, int]) -> None:
    """Raise InputError if a setting names a topic or a partition that the scenario does not have.
    ``topics``: all that it ever has, with their partitions."""
    base = settings.of_type("record_rate", RecordRate)
    changes = settings.optional("record_rate_over_time", RateChanges)
    rows = () if changes is None else changes.rows
    slow = [one for one in settings.of_type("slow_records", SlowRecordList).records if one.every is None]
    named: list[tuple[str, str, int | None]] = [
        *(("record_rate", topic, None) for topic, _ in base.by_topic),
        *(("record_rate_over_time", row.topic, row.partition) for row in rows if row.topic is not None),
        *(("slow_records", one.topic, one.partition) for one in slow),
    ]
    for setting, topic, partition in named:
        if topic not in topics:
            raise InputError(f"{where}{setting}: {topic!r} is none of the topics ({', '.join(topics)})")
        if partition is not None and partition >= topics[topic]:
            most = topics[topic] - 1
            raise InputError(f"{where}{setting}: {topic}: partition: {partition}: expected at most {most}")
    skew, most = settings.optional("record_skew", RecordSkew), max(topics.values())
    if skew is not None and max(*skew.hot, skew.hot_count - 1, 0) >= most:
        hot = list(skew.hot) or skew.hot_count
        raise InputError(f"{where}record_skew: hot: partitions: {hot}: no topic has more than {most} of them")


def _share(skew: RecordSkew | None, topic: str, partition: int, partitions: int, mean: int) -> int:
    if skew is None or partition >= partitions:
        return mean
    return shares(skew, topic, partitions, mean * partitions)[partition]


def _distinct(rates: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    kept: list[tuple[int, int]] = []
    for at_us, rate in rates:
        if not kept or kept[-1][1] != rate:
            kept.append((at_us, rate))
    return tuple(kept)


def mean_rate(settings: Settings) -> int:
    """Records a second into a partition of a topic that `record_rate` does not name, rounded down."""
    return settings.of_type("record_rate", RecordRate).others // 1000
