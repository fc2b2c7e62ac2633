"""Members that do not call poll() in time, and the record that may be why."""

from __future__ import annotations

from typing import Final

from groupstorm.explain.findings import Match
from groupstorm.explain.history import History, Incident, StuckRecord
from groupstorm.explain.patterns.selecting import SECOND_US, away, begun_by, under_way, unique
from groupstorm.wording import counted, seconds

#: A member that left for want of a poll() joins again when its batch is done: by then at the latest.
BACK_US: Final = 900 * SECOND_US
#: So many owners end at one position, or owners stand there so long in all: the record there is why.
ENDS_MIN: Final = 3
STOOD_MIN_US: Final = 30 * SECOND_US
_NAMED_MAX: Final = 6


def max_poll_interval(history: History) -> Match | None:
    """A member left the group itself, because max.poll.interval.ms had passed without a poll(). Its own rows
    say so, or else the reason that it gave the coordinator."""
    return None if history.is_connect else poll_timeouts(history, "max.poll.interval.ms")


def poll_timeouts(history: History, setting: str) -> Match | None:
    """The members that left, because ``setting`` had passed."""
    kinds = ("poll-timeout", "poll-timeout-lost", "poll-timeout-told")
    left = next((found for kind in kinds if (found := [*history.of_kind(kind)])), [])
    if not left:
        return None
    members = unique(one.member for one in left)
    rebalances = [
        rebalance
        for one in left
        for rebalance in (
            *begun_by(history, {one.member}, one.time_us - SECOND_US, _back_us(history, one)),
            *under_way(history, one.time_us),
        )
    ]
    limit = history.settings.number(setting, members[0] if members else "")
    after = "" if limit is None else f" of {seconds(limit / 1000)}"
    sentence = (
        f"{counted(len(members), 'member')} left the group {counted(len(left), 'time')} because "
        f"{setting}{after} had passed without a poll()."
    )
    absences = [
        absence
        for one in left
        for absence in away(history, {one.member}, one.time_us - SECOND_US, _back_us(history, one))
    ]
    slow = [one.row for one in history.of_kind("slow-batch") if one.member in members]
    return Match(sentence, members, rebalances, absences, [*slow[:1], *(one.row for one in left)])


def _back_us(history: History, left: Incident) -> int:
    """Return the time until which a member's acts belong to its time-out: until it is back."""
    back = (one.time_us for one in history.came() if one.member == left.member and one.time_us > left.time_us)
    return min(next(back, left.time_us + BACK_US), left.time_us + BACK_US) + SECOND_US


def poison_record(history: History) -> Match | None:
    """One record that nobody gets past: three or more owners of a partition that began at one position
    crashed, or were out of the group before they had committed another one. Or an owner stood still for
    30 s although there were records, and no row says that the whole process was paused or had a slow
    batch."""
    for stuck in history.repeated:
        if len(stuck.ends) >= ENDS_MIN:
            return _repeated(history, stuck)
    paused = {one.member for one in history.of_kind("slow-batch", "process-paused")}
    stood = [one for one in history.stood if one.stood_us >= STOOD_MIN_US and one.member not in paused]
    return _stood(stood) if stood else None


def _repeated(history: History, stuck: StuckRecord) -> Match:
    ends = [row for _, row in stuck.ends]
    members = unique(member for member, _ in stuck.ends)
    from_us, to_us = int(stuck.first["time_us"]) - SECOND_US, int(ends[-1]["time_us"]) + BACK_US
    sentence = (
        f"{counted(len(ends), 'owner')} of {stuck.partition} began at position {stuck.position:,} and ended "
        "before they had committed another one."
    )
    rebalances = begun_by(history, members, from_us, to_us)
    absences = away(history, members, from_us, to_us)
    place = f"{stuck.partition} at {stuck.position:,}"
    return Match(sentence, members, rebalances, absences, [stuck.first, *ends], partitions=[place])


def _stood(stood: list[StuckRecord]) -> Match:
    """All partitions of a member stand while it works on one record: which of them has the record is not
    known."""
    longest = stood[0]
    member = longest.member
    same = [one for one in stood if one.member == member and one.stood_us == longest.stood_us]
    names = [f"{one.partition} at {one.position:,}" for one in same]
    sentence = (
        f"{member} stood still for {seconds(longest.stood_us / SECOND_US)} although there were records. The "
        f"record is in one of its partitions: {', '.join(names[:_NAMED_MAX])}"
        f"{', ...' if len(names) > _NAMED_MAX else ''}."
    )
    rows = [one.first for one in same]
    return Match(sentence, unique([member]), (), (), rows, partitions=names)
