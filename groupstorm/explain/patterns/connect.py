"""Patterns of Kafka Connect: workers that are too slow or have another configuration, and work that waits."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from groupstorm.explain.findings import Match
from groupstorm.explain.history import History
from groupstorm.explain.patterns.refused import NAMED_MAX, TRIED_MIN
from groupstorm.explain.patterns.selecting import SECOND_US, begins_after, unique
from groupstorm.explain.patterns.waiting import poll_timeouts
from groupstorm.wording import counted, listed, seconds


def slow_worker(history: History) -> Match | None:
    """A worker of Kafka Connect left the group itself, because rebalance.timeout.ms had passed without a
    poll() of its herder, which stops and starts connectors and tasks in between."""
    match = poll_timeouts(history, "rebalance.timeout.ms") if history.is_connect else None
    if match is not None and (busy_us := herder_busy_us(history, match)):
        match.sentence += f" The herder was busy for at least {seconds(busy_us / SECOND_US)}."
    return match


def herder_busy_us(history: History, match: Match) -> int:
    """The longest time between a poll() that was too late and the one before it, as far as rows show it: the
    time-out, if it is known, and the time until a join phase of the group ended."""
    limits = [history.settings.number("rebalance.timeout.ms", member) or 0 for member in match.members]
    rounds = [one for each in history.rebalances for one in each.rounds]
    ends = [int(one.joined["time_us"]) for one in rounds if one.joined is not None]
    left = [int(row["time_us"]) for row in match.evidence]
    later = [end - us for us in left for end in ends[bisect_right(ends, us) :][:1]]
    return 1000 * max(limits, default=0) + max(later, default=0)


def config_behind(history: History) -> Match | None:
    """A worker of Kafka Connect joined three times or more only because it had not read the configuration by
    which the leader assigns (config.storage.topic) to its end, or has another one."""
    found = [*history.of_kind("config-behind")]
    times = Counter(one.member for one in found)
    asked = [one for one in found if times[one.member] >= TRIED_MIN]
    if not asked:
        return None
    members = unique(one.member for one in asked)
    lasted = seconds((asked[-1].time_us - asked[0].time_us) / SECOND_US)
    named = [f"{one} {counted(times[one], 'time')}" for one in members[:NAMED_MAX]]
    sentence = (
        f"Within {lasted} workers asked for another rebalance, as they had another configuration than the "
        f"one by which the leader assigns: {listed(named)}."
    )
    rebalances = [
        each for each in history.rebalances if any(begins_after(each, one.time_us) for one in asked)
    ]
    return Match(sentence, members, rebalances, (), [one.row for one in asked])


def waiting_work(history: History) -> Match | None:
    """Connectors and tasks of Kafka Connect had no worker: theirs had gone, or gave them up to another one.
    The leader leaves them to nobody for scheduled.rebalance.max.delay.ms, so that a worker that is back may
    go on with them. Seen only if the workers' own logs are there."""
    gaps = [one for one in history.work.gaps if one.to_us > history.from_us]
    if not gaps:
        return None
    longest = max(gaps, key=lambda one: one.lasted_us)
    took = f"{longest.new_worker} took it" if longest.new_worker else "nobody took it until the end"
    sentence = (
        f"{counted(len(gaps), 'time')} a connector or task had no worker, for "
        f"{seconds(sum(one.lasted_us for one in gaps) / SECOND_US)} in all. The longest: {longest.name} of "
        f"{longest.old_worker}, {seconds(longest.lasted_us / SECOND_US)}; {took}."
    )
    delays = [row for row in history.work.delays if row["time_us"] >= history.from_us]
    if delays:
        most = max(int(row["duration_us"]) for row in delays)
        sentence += f" The leader let it wait for its worker, up to {seconds(most / SECOND_US)} each time."
    ends = {one.to_us for one in history.work.gaps}
    rebalances = [
        one
        for one in history.rebalances
        if any(one.begun_us <= at <= one.until_us(history.to_us) + SECOND_US for at in ends)
    ]
    return Match(sentence, unique(one.old_worker for one in gaps), rebalances, (), delays)
