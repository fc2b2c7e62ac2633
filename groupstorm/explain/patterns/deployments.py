"""Processes that are replaced or scaled: deploy waves, restarts at once, autoscalers."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Final, NamedTuple

from groupstorm.explain.findings import Match
from groupstorm.explain.history import OF_COORDINATOR, History, Incident
from groupstorm.explain.patterns.membership import fenced_instances
from groupstorm.explain.patterns.selecting import (
    AFTER_US,
    PLANNED,
    SECOND_US,
    Restart,
    away,
    away_most,
    begun_by,
    find_restarts,
    find_stop,
    formed_us,
    is_within,
    rounds_of,
    under_way_at,
    unique,
    unwritten_spans,
    with_changes,
)
from groupstorm.history.causes import process_of
from groupstorm.history.rebalances import REPLACED, Absence, Change, ChangeKind, Rebalance, Row
from groupstorm.trace.events.group_states import Cause
from groupstorm.wording import counted, lasting, listed

#: The next process of a deployment stops so soon after the last one is back (minReadySeconds included).
PAUSE_US: Final = 120 * SECOND_US
#: Fewer restarts are no wave.
RESTARTS_MIN: Final = 3
#: Incidents with which a consumer leaves although nobody stopped its process, at most so long before or
#: after.
FAILURES: Final = (
    "poll-timeout",
    "poll-timeout-told",
    "member-failed",
    "fenced",
    "inconsistent-protocol",
    "migration-refused",
)
FAILED_US: Final = 5 * SECOND_US
#: It has left so long after that at the latest.
LEAVES_US: Final = 60 * SECOND_US
#: An autoscaler that flaps: it grows, shrinks and grows again (or the other way round), each time by two
#: processes at least and by so much of the largest size.
TURNS_MIN: Final = 2
STEP_MIN: Final = 2
STEP_PERCENT: Final = 30
SAMPLE_US: Final = 30 * SECOND_US
#: Samples on either side of a median, and their time.
_AROUND: Final = 3
MEDIAN_US: Final = _AROUND * SAMPLE_US
_TURNS_NAMED: Final = 6
#: Changes further apart (four years) are of damaged times, and would take as many samples.
LASTS_MAX_US: Final = 4 * 366 * 86_400 * SECOND_US


def stopped(history: History) -> Match | None:
    """The last members left in order, or were closed without LeaveGroup and expired, and nobody has come
    since: the group is empty when the trace ends. Somebody stopped it, so what its partitions wait for from
    then on is no failure."""
    gone = find_stop(history)
    if not gone:
        return None
    members = unique(one.member for one in gone)
    from_us = min(one.time_us if one.cause == Cause.LEFT else _alive_us(one) for one in gone)
    sentence = f"The last members left, {len(members):,} of them, from {lasting(from_us)} on."
    expired = sum(one.cause != Cause.LEFT for one in gone)
    if expired:
        sentence += f" {expired:,} of them without a LeaveGroup, so that their sessions had to expire."
    absences = away(history, members, from_us - SECOND_US, history.to_us)
    rows = [row for one in (gone[0], gone[-1]) for row in (one.alive if expired else None, one.row) if row]
    return Match(sentence, members, with_changes(history, gone), absences, rows)


def _alive_us(gone: Change) -> int:
    return gone.time_us if gone.alive is None else int(gone.alive["time_us"])


def static_restart(history: History) -> Match | None:
    """A static member was restarted and came back before its session expired: no rebalance, and its
    partitions waited for it. (A wave of such restarts, and twins that take a membership from each other,
    are other patterns.)"""
    waves = [one.came.row["seq"] for wave in _waves(_planned(history)) for one in wave]
    unwritten = unwritten_spans(history, SECOND_US)
    replaced = (one for one in find_restarts(history) if one.went.cause == REPLACED)
    known = (one for one in replaced if not is_within(one.came.time_us, unwritten))
    back = [one for one in known if one.came.row["seq"] not in waves]
    twins = fenced_instances(history)
    if not back or twins is not None:
        return None
    members = unique(one.came.member for one in back)
    absences = [
        absence
        for one in back
        for absence in away(history, {one.came.member}, one.down_us - SECOND_US, one.up_us + SECOND_US)
    ]
    times = counted(len(back), "time")
    sentence = f"{counted(len(members), 'static member')} came back {times} within the session: no rebalance."
    rows = [row for one in back for row in (one.went.alive, one.came.row) if row]
    return Match(sentence, members, (), absences, rows)


def deploy_wave(history: History) -> Match | None:
    """A rolling restart: three or more members leave cleanly and come back or are replaced, each
    less than two minutes after the one before is back, and never (by any row) half of the group at once."""
    waves = [wave for wave in _waves(_planned(history)) if not _is_aligned(history, wave)]
    may_be = any(_is_aligned(history, wave, at_most=True) for wave in waves)
    most = max(map(_stopped_together, waves), default=0)
    how = "one after the other, " if most <= 1 else f"up to {most} at a time, "
    return _of_waves(history, waves, "" if may_be else how)


def aligned_restart(history: History) -> Match | None:
    """A restart of everybody: of a wave at least half of the group's members, and three, are away at one
    instant.

    The group is nearly empty then, and whoever stays takes all partitions for a moment.
    """
    waves = [wave for wave in _waves(_planned(history)) if _is_aligned(history, wave)]
    return _of_waves(history, waves, "at the same time, ")


def migration(history: History) -> Match | None:
    """A live group changed between the classic protocol and KIP-848's. The rolling restart in which it did
    so belongs to it."""
    converted = history.of_kind("converted")
    if not converted:
        return None
    rebalances = under_way_at(history, (one.time_us for one in converted))
    waves = _waves(_planned(history))
    waves = [wave for wave in waves if any(is_within(one.time_us, [_span(wave)]) for one in converted)]
    in_waves, absences = _belonging(history, waves)
    ways = listed([str(one.row["cause"]) for one in converted])
    sentence = f"The group was {ways} with live members."
    if waves:
        sentence += f" That took {counted(sum(map(len, waves)), 'restart')}."
    members = unique(name for wave in waves for one in wave for name in one.members)
    return Match(sentence, members, [*rebalances, *in_waves], absences, [one.row for one in converted])


def autoscaler(history: History) -> Match | None:
    """A group that grows and shrinks in turns: its size changes direction at least twice, each time by two
    processes or more and by 30 % of its largest size. The size is the median over three and a half
    minutes, so that a deployment, which replaces what it stops, does not count; nor does the forming of
    the group, nor a group whose members mostly went because they failed."""
    from_us = formed_us(history)
    changes = [one for one in history.changes if one.time_us > from_us and one.cause not in OF_COORDINATOR]
    threads = _threads({one.member for one in changes})
    turns = _turns(_sizes(changes), _members_before(history, from_us + 1), threads)
    if len(turns) <= TURNS_MIN:
        return None
    from_us, to_us = turns[0].from_us, turns[-1].to_us
    scaled = [one for one in changes if from_us - MEDIAN_US <= one.time_us <= to_us + MEDIAN_US]
    gone = [one for one in scaled if one.kind is ChangeKind.WENT]
    failed = sum(one.cause == Cause.SESSION_EXPIRED and one.instance is None for one in gone)
    failed += sum(from_us <= one.time_us <= to_us for one in history.of_kind("poll-timeout"))
    if 2 * failed > len(gone):
        return None
    ups = len(scaled) - len(gone)
    sizes = [f"{turn.change:+d}" for turn in turns]
    named = ", ".join(sizes if len(sizes) <= _TURNS_NAMED else [*sizes[:_TURNS_NAMED], "..."])
    sentence = (
        f"The group grew and shrank in {counted(len(turns), 'turn')} ({named}): {counted(ups, 'member')} "
        f"came and {len(scaled) - ups:,} went in {lasting(to_us - from_us)}."
    )
    members = unique(one.member for one in scaled)
    absences = away(history, members, from_us - AFTER_US, to_us + AFTER_US)
    evidence = [
        next(
            one.row
            for one in scaled
            if (one.kind is ChangeKind.CAME) == (turn.change > 0) and one.time_us >= turn.from_us - MEDIAN_US
        )
        for turn in turns
    ]
    rebalances = begun_by(history, members, from_us - MEDIAN_US, to_us + MEDIAN_US)
    return Match(sentence, members, rebalances, absences, evidence)


class _Turn(NamedTuple):
    """The group's size went in one direction, by ``change`` members."""

    from_us: int
    to_us: int
    change: int


def _sizes(changes: Sequence[Change]) -> list[tuple[int, int]]:
    """The group's size relative to its first one, every half minute: the median of the samples around."""
    if not changes or changes[-1].time_us - changes[0].time_us > LASTS_MAX_US:
        return []
    samples: list[int] = []
    size = number = 0
    from_us = changes[0].time_us - MEDIAN_US
    for at_us in range(from_us, changes[-1].time_us + 2 * MEDIAN_US, SAMPLE_US):
        while number < len(changes) and changes[number].time_us <= at_us:
            size += 1 if changes[number].kind is ChangeKind.CAME else -1
            number += 1
        samples.append(size)
    around = [samples[max(0, at - _AROUND) : at + _AROUND + 1] for at in range(len(samples))]
    return [(from_us + at * SAMPLE_US, sorted(near)[len(near) // 2]) for at, near in enumerate(around)]


def _turns(sizes: Sequence[tuple[int, int]], members: int, threads: int) -> list[_Turn]:
    """The directions in which the size went, without those that are smaller than a step. ``threads``: the
    members of a process."""
    if not sizes:
        return []
    largest = members + max(size for _, size in sizes)
    step = max(STEP_MIN * threads, math.ceil(STEP_PERCENT * largest / 100))
    turns: list[_Turn] = []
    begin = low = high = last = sizes[0]
    for point in sizes:
        if turns:
            sign = 1 if turns[-1].change > 0 else -1
            last = point if sign * (point[1] - last[1]) > 0 else last
            turns[-1] = _Turn(turns[-1].from_us, last[0], last[1] - begin[1])
            if sign * (last[1] - point[1]) >= step:
                begin, last = last, point
                turns.append(_Turn(begin[0], point[0], point[1] - begin[1]))
            continue
        low, high = min(low, point, key=lambda one: one[1]), max(high, point, key=lambda one: one[1])
        if high[1] - low[1] >= step:
            begin, last = low if low[0] < high[0] else high, point
            turns.append(_Turn(begin[0], point[0], point[1] - begin[1]))
    return turns


def _planned(history: History) -> list[Restart]:
    """Restarts of processes that stopped in order, neither because something failed nor for an autoscaler.
    Twins that take a static membership from each other do not stop, nor do share consumers of a storm that
    poll too late."""
    asked: dict[str, list[Incident]] = {}
    for incident in history.of_kind("asked-to-stop"):
        asked.setdefault(incident.member, []).append(incident)
    others = ("scale-down", "crash", "" if history.settings.get("group.protocol") == "share" else "crash")
    fenced = fenced_instances(history)
    twins = () if fenced is None else fenced.members
    failed: dict[str, list[int]] = defaultdict(list)
    for incident in history.of_kind(*FAILURES):
        failed[incident.member].append(incident.time_us)
    came: dict[str, list[int]] = defaultdict(list)
    for change in history.came():
        came[change.member].append(change.time_us)

    def joined_us(gone: Change, down_us: int) -> int:
        return max((us for us in came[gone.member] if us < down_us), default=0)

    def step(gone: Change) -> str:
        """The step that asked its process to stop since it joined, or "crash"; "" if no row tells."""
        since_us = joined_us(gone, gone.time_us)
        told = [
            one for one in asked.get(process_of(gone.member), ()) if since_us <= one.time_us <= gone.time_us
        ]
        killed = (gone.alive or {}).get("event") == "member_crashed"
        return str(told[-1].row["cause"]) if told else "crash" if killed else ""

    def has_failed(gone: Change, down_us: int, up_us: int) -> bool:
        """A consumer that is too slow leaves (librdkafka), or says so (KIP-848), when it polls again."""
        from_us = min(down_us - FAILED_US, max(joined_us(gone, down_us), down_us - LEAVES_US))
        spans = (from_us, down_us + FAILED_US), (up_us - SECOND_US, up_us)
        return any(begin <= us <= end for us in failed[gone.member] for begin, end in spans)

    return [
        one
        for one in find_restarts(history)
        if one.went.cause in PLANNED
        and step(one.went) not in others
        and not has_failed(one.went, one.down_us, one.up_us)
        and not (one.went.cause == REPLACED and one.came.member in twins)
    ]


def _waves(restarts: Sequence[Restart]) -> list[list[Restart]]:
    """Restarts that follow on each other, those of at least `RESTARTS_MIN` processes."""
    waves: list[list[Restart]] = []
    until_us = 0
    for one in restarts:
        if not waves or one.down_us - until_us > PAUSE_US:
            waves.append([])
            until_us = one.down_us
        waves[-1].append(one)
        until_us = max(until_us, one.down_us, one.up_us)
    return [wave for wave in waves if len({process_of(one.went.member) for one in wave}) >= RESTARTS_MIN]


def _span(wave: Sequence[Restart]) -> tuple[int, int]:
    """From when to when a wave goes on: with max_surge the first process comes before one stops."""
    return min(min(one.down_us, one.up_us) for one in wave), max(one.up_us for one in wave) + AFTER_US


def _stopped_together(wave: Sequence[Restart]) -> int:
    """The largest number of processes that were away at once, or stopped within a second (blue-green), before
    the first of them was back."""
    stops = sorted((one.stopped_us, one.up_us) for one in wave if one.stopped_us is not None)
    ends = (min(us + SECOND_US, up_us - 1) if up_us > us else us + SECOND_US for us, up_us in stops)
    within = (bisect_right(stops, end, key=itemgetter(0)) - number for number, end in enumerate(ends))
    return -(-max(away_most(wave), *within, 0) // _threads({one.went.member for one in wave}))


def _threads(members: Iterable[str]) -> int:
    """The members of a process, which are several in Kafka Streams."""
    return max(Counter(map(process_of, members)).values(), default=1)


def _is_aligned(history: History, wave: Sequence[Restart], at_most: bool = False) -> bool:
    """Whether half of the group was away at once; ``at_most``: with all whose stop no row tells."""
    members = len({one.went.member for one in wave})
    size = _members_before(history, wave[0].down_us, members)
    more = len({one.went.member for one in wave if at_most and one.stopped_us is None})
    return away_most(wave) + more >= max(RESTARTS_MIN, (size + 1) // 2)


def _members_before(history: History, time_us: int, least: int = 0) -> int:
    """The number of members in the last round before ``time_us``, else ``least`` or what comings and goings
    say: who goes and has not come was there before, in a log that begins late."""
    before = (one for _, one in rounds_of(history) if one.begun_us < time_us)
    known = [one.members for one in before if one.members is not None]
    if known:
        return known[-1]
    came = [1 if one.kind is ChangeKind.CAME else -1 for one in history.changes]
    sizes = [*accumulate(came, initial=history.members_before)]
    number = sum(one.time_us < time_us for one in history.changes)
    return max(least, sizes[number] - min(0, *sizes))


def _belonging(history: History, waves: Sequence[Sequence[Restart]]) -> tuple[list[Rebalance], list[Absence]]:
    """The rebalances that members of the waves began, and the absences of these members."""
    rebalances: list[Rebalance] = []
    absences: list[Absence] = []
    for wave in waves:
        members = {name for one in wave for name in one.members}
        from_us, to_us = _span(wave)
        rows = {change.row["seq"] for one in wave for change in (one.went, one.came)}
        rebalances += [
            one
            for one in begun_by(history, members, from_us - SECOND_US, to_us)
            if not one.changes or any(change.row["seq"] in rows for change in one.changes)
        ]
        absences += away(history, members, from_us - SECOND_US, to_us)
    return rebalances, absences


def _of_waves(history: History, waves: Sequence[Sequence[Restart]], how: str) -> Match | None:
    """``how``: in which order they stopped; "" if that is not known."""
    if not waves:
        return None
    rebalances, absences = _belonging(history, waves)
    evidence: list[Row] = []
    for wave in waves:
        evidence += [wave[0].went.row, wave[0].came.row, wave[-1].went.row, wave[-1].came.row]
    restarts = [one for wave in waves for one in wave]
    began = ", ".join(lasting(_span(wave)[0]) for wave in waves[:3])
    silent = sum(one.went.cause == REPLACED for one in restarts)
    members = len({one.went.member for one in restarts})
    times = f" {len(restarts):,} times" if len(restarts) > members else ""
    sentence = (
        f"{counted(members, 'member')} stopped and came back or were replaced{times}, {how}in "
        f"{counted(len(waves), 'wave')} ({'' if how else 'back '}from {began} on)"
    )
    if silent:
        stays = "keep their membership" if history.is_consumer_group else "say nothing"
        which = "these times" if times else "them"
        sentence += f"; {silent:,} of {which} as static members that {stays} when they stop"
    names = unique(name for one in restarts for name in one.members)
    unknown = "" if how else "when each of them stopped, so whether several were away at once"
    return Match(f"{sentence}.", names, rebalances, absences, evidence, unknown)
