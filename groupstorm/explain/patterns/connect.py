"""Groups of Kafka Connect: connectors and tasks that no worker runs."""

from __future__ import annotations

from groupstorm.explain.findings import Match
from groupstorm.explain.history import History
from groupstorm.explain.patterns.selecting import SECOND_US, unique
from groupstorm.wording import counted, seconds


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
    rebalances = [
        one
        for one in history.rebalances
        if any(one.begun_us <= at <= one.until_us(history.to_us) + SECOND_US for at in _ends(history))
    ]
    return Match(sentence, unique(one.old_worker for one in gaps), rebalances, (), delays)


def _ends(history: History) -> set[int]:
    return {one.to_us for one in history.work.gaps}
