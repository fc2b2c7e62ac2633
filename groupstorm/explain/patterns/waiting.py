"""Members that a round waits for: in the join phase, in the leader's assignor, in a callback, or because they
do not call poll() in time, and the record that may be why; and the work of Kafka Connect that waits."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from groupstorm.explain.findings import Match
from groupstorm.explain.history import History, Incident
from groupstorm.explain.patterns.selecting import (
    SECOND_US,
    away,
    begun_by,
    killed_by_records,
    rounds_of,
    under_way,
    under_way_at,
    unique,
    was_empty,
    with_changes,
)
from groupstorm.explain.stuck_records import StuckRecord
from groupstorm.history.phases import SLOW_US
from groupstorm.history.rebalances import Absence, ChangeKind, Rebalance, Round
from groupstorm.imports.timeline.members import name_before_uuid
from groupstorm.trace.events.group_states import Cause
from groupstorm.wording import counted, lasting, listed, seconds

#: A leader that takes longer for its plan keeps everybody waiting: assignors take milliseconds.
SLOW_PLAN_US: Final = 5 * SECOND_US
#: Later after all others than their heartbeats are apart (heartbeat.interval.ms).
LATE_US: Final = 3 * SECOND_US
#: A join phase of so long waits for more than heartbeats, also if several members come last together. Few
#: sessions are longer.
_NO_HEARTBEATS_US: Final = 60 * SECOND_US
#: The longest wait is named, and so many members.
_NAMED_MAX: Final = 4


def held_join_phase(history: History) -> Match | None:
    """A join phase took 10 s or more, or did so at least until the last line that shows it open, and not
    because of group.initial.rebalance.delay.ms: the round waited for the last member to join, or to be
    removed. Heartbeats bring all members within 3 s: if the last one came no later after the others, it did
    not hold them up; in a minute several did.
    (For a session that had to expire see session-expired.)"""
    held = [
        (rebalance, one)
        for rebalance, one in rounds_of(history)
        if _is_held(one) and not (one is rebalance.rounds[0] and _begins_empty(history, rebalance))
    ]
    if not held:
        return None
    longest = max(held, key=lambda pair: _joining_us(pair[1]))[1]
    sentence = f"{counted(len(held), 'join phase')} took 10 s or more. {_waited(longest)}"
    rows = [longest.begun, longest.last_join, longest.removed_at_end, longest.joined or longest.last]
    unknown = ""
    if any(one.joined is not None and not _last(one) for _, one in held):
        logs = "the coordinator's log" if history.has_member_rows else "the logs of the consumers"
        unknown = f"who came last: add {logs}"
        end_us = (longest.joined or longest.begun)["time_us"]
        died = [one for one in history.of_kind("crashed") if 0 <= end_us - one.time_us <= _NO_HEARTBEATS_US]
        if died and not _last(longest):
            names = listed(unique(one.member for one in died))
            unknown = f"whom it waited for, a late member or the session of {names}, which died: add {logs}"
    if longest.joined is None:
        unknown = "when it ended, and whom it waited for: add the rest of the log, and the consumers' logs"
    # of several that came last together none is to blame more than the others
    members = unique(_last(one) for _, one in held if one.removed_member or _late_us(one) >= LATE_US)
    rebalances = [rebalance for rebalance, _ in held]
    return Match(sentence, members, rebalances, (), [row for row in rows if row is not None], unknown)


def slow_revocation(history: History) -> Match | None:
    """A member of a consumer group (KIP-848) took 10 s or more to give up partitions that others wait for:
    it gives them up in a poll()."""
    slow = history.slow_revocations
    if not slow:
        return None
    worst = max(slow, key=lambda one: one.lasted_us)
    sentence = (
        f"{counted(len(slow), 'revocation')} took 10 s or more, the longest "
        f"{lasting(worst.lasted_us)} ({worst.member})."
    )
    rebalances = under_way_at(history, (int(one.first["time_us"]) for one in slow))
    rows = [row for one in slow for row in (one.first, one.last)]
    return Match(sentence, unique(one.member for one in slow), rebalances, (), rows)


def _is_held(one: Round) -> bool:
    """A round that waited for a member whose session had to expire belongs to `sessions`."""
    if _joining_us(one) < SLOW_US or (one.joined or {}).get("cause") == Cause.INITIAL_DELAY:
        return False
    if one.removed_at_end is not None:
        return one.removed_at_end.get("cause") != Cause.SESSION_EXPIRED
    is_long = _joining_us(one) >= _NO_HEARTBEATS_US
    return one.joined is None or not _last(one) or _late_us(one) >= LATE_US or is_long


def _begins_empty(history: History, rebalance: Rebalance) -> bool:
    """Whether the group was empty before, or all members of which rows tell came in this rebalance: nobody
    was there for whom it waits, but the coordinator lets an initial delay pass."""
    begun = rebalance.rounds[0].begun
    if begun.get("previous_state") != "unknown":
        return was_empty(rebalance)
    if begun.get("count", 0) > 1:
        return False
    until_us = {ChangeKind.WENT: rebalance.begun_us, ChangeKind.CAME: rebalance.begun_us - SECOND_US}
    last = {one.member: one.kind for one in history.changes if one.time_us <= until_us[one.kind]}
    has_come = any(one.kind is ChangeKind.CAME for one in rebalance.changes)
    return has_come and ChangeKind.CAME not in last.values()


def _late_us(one: Round) -> int:
    """Return the time by which the last member joined after all others, in microseconds."""
    return 0 if one.last_join is None else one.last_join["time_us"] - (one.others_joined_us or one.begun_us)


def _joining_us(one: Round) -> int:
    return one.open_us if one.joining_us is None else one.joining_us


def _last(one: Round) -> str:
    """The member that the join phase waited for; "" if no row names it: the phase goes on after the last
    join of which a row tells."""
    until_us = (one.joined or one.last or one.begun)["time_us"]
    is_end = one.last_join is not None and until_us - one.last_join["time_us"] < LATE_US
    return one.removed_member or (one.last_joiner if is_end else "")


def _waited(one: Round) -> str:
    took = lasting(_joining_us(one))
    if one.joined is None:
        return f"The longest was still in its join phase after at least {took}; no row tells its end."
    if one.removed_at_end is not None:
        cause = one.removed_at_end.get("cause", "unknown")
        return f"The longest took {took}: it waited for {_last(one)}, which was removed ({cause})."
    if not _last(one):
        return f"The longest took {took}."
    if _late_us(one) < LATE_US:
        return f"The longest took {took}: several members joined at its end, {_last(one)} last."
    after = lasting(_late_us(one))
    return f"The longest took {took}: {_last(one)} joined last, {after} after all others."


def slow_assignor(history: History) -> Match | None:
    """The leader took 5 s or more from the end of the join phase to its SyncGroup: its assignor is slow,
    or the process stood still. A rebalance that waited longer for a session to expire is not its doing."""
    slow = [pair for pair in rounds_of(history) if (pair[1].assigning_us or 0) >= SLOW_PLAN_US]
    if not slow:
        return None
    longest = max((one.assigning_us or 0) for _, one in slow)
    sentence = (
        f"In {counted(len(slow), 'round')} the group waited 5 s or more for the leader's plan, "
        f"{lasting(longest)} at the longest."
    )
    rows = [row for _, one in slow for row in (one.joined, one.ended) if row is not None]
    leaders = unique(_name(history, str((one.joined or {}).get("leader", ""))) for _, one in slow)
    own = [rebalance for rebalance, _ in slow if not _is_of_session(rebalance)]
    return Match(sentence, leaders[:_NAMED_MAX], own, (), rows)


def _is_of_session(rebalance: Rebalance) -> bool:
    """Whether a session expired in it, and less than half of it was for plans."""
    planned_us = sum(one.assigning_us or 0 for one in rebalance.rounds)
    expired = any(one.cause == Cause.SESSION_EXPIRED for one in rebalance.changes)
    return expired and 2 * planned_us < rebalance.lasted_us


def _name(history: History, member_id: str) -> str:
    name = name_before_uuid(member_id)
    return name if name in history.subscriptions or name in history.assignments else member_id


def slow_callback(history: History) -> Match | None:
    """onPartitionsRevoked, or onPartitionsLost, took 3 s or more: meanwhile the partition has no owner,
    and the round waits for the member."""
    slow = history.of_kind("slow-callback")
    if not slow:
        return None
    longest = max(slow, key=lambda one: int(one.row["duration_us"]))
    members = unique(one.member for one in slow)
    sentence = (
        f"{counted(len(slow), 'callback')} of {counted(len(members), 'member')} took 3 s or more, the "
        f"longest {lasting(longest.row['duration_us'])} ({longest.member})."
    )
    spans = [(one.time_us, one.time_us + int(one.row["duration_us"])) for one in slow]
    return Match(sentence, members, under_way(history, spans), (), [one.row for one in slow])


def next_heartbeat(history: History) -> Match | None:
    """A consumer group (KIP-848) in which most of the time without an owner, and one partition-second at
    least, went to new owners whose next heartbeat fetches the partition, or whose next poll() takes it. If
    only the least time is known, it may be the smaller part."""
    waits = history.handover_waits_us
    if not history.is_consumer_group or not history.unowned_us or waits is None or history.unowned_is_least:
        return None
    waited_us = sum(waits)
    if waited_us < SECOND_US or 2 * waited_us < history.unowned_us:
        return None
    words = [
        f"{lasting(us)} to the next {what}"
        for us, what in zip(waits, ("heartbeat", "poll()"), strict=True)
        if us
    ]
    sentence = (
        f"Of {lasting(history.unowned_us)} without an owner, summed over partitions, new owners "
        f"waited {listed(words)}."
    )
    return Match(sentence, (), history.rebalances)


#: A member that left for want of a poll() joins again when its batch is done: by then at the latest.
BACK_US: Final = 900 * SECOND_US
#: So many owners end at one position, or owners stand there so long in all: the record there is why.
ENDS_MIN: Final = 3
STOOD_MIN_US: Final = 30 * SECOND_US
_RECORDS_NAMED_MAX: Final = 6


def max_poll_interval(history: History) -> Match | None:
    """A member left the group itself, because max.poll.interval.ms had passed without a poll(). Its own rows
    say so, or else the reason that it gave the coordinator."""
    return None if history.is_connect else poll_timeouts(history, "max.poll.interval.ms")


def poll_timeouts(history: History, setting: str) -> Match | None:
    """The members that left, because ``setting`` had passed."""
    kinds = ("poll-timeout", "poll-timeout-lost", "poll-timeout-told")
    left = next((found for kind in kinds if (found := history.of_kind(kind))), [])
    if not left:
        return None
    # a broker logs the reason twice: with the round that begins, and with the member that has left
    left = [
        one
        for before, one in zip([None, *left], left, strict=False)
        if before is None or before.member != one.member or one.time_us - before.time_us > SECOND_US
    ]
    members = unique(one.member for one in left)
    rebalances: list[Rebalance] = []
    absences: list[Absence] = []
    for one in left:
        span = one.time_us - SECOND_US, _back_us(history, one)
        rebalances += [*begun_by(history, {one.member}, *span), *under_way_at(history, [one.time_us])]
        absences += away(history, {one.member}, *span)
    limit = history.settings.number(setting, members[0] if members else "")
    after = "" if limit is None else f" of {seconds(limit / 1000)}"
    static = {one.member for one in history.changes if one.instance is not None}
    stays = static.issuperset(members) and not history.is_consumer_group
    sentence = (
        f"{counted(len(members), 'member')} {'sent no more heartbeats' if stays else 'left the group'} "
        f"{counted(len(left), 'time')} because "
        f"{setting}{after} had passed without a poll()."
    )
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
    batch. If most partitions have such owners, their batches as a whole may be what takes too long. In a
    share group: a record that ended a consumer's process."""
    killed = history.of_kind("killed-by-record")
    if killed:
        members = listed(unique(one.member for one in killed))
        sentence = f"Work on a record ended a consumer's process {counted(len(killed), 'time')}: {members}."
        rebalances = with_changes(history, killed_by_records(history))
        return Match(sentence, (), rebalances, (), [one.row for one in killed])
    stuck = [one for one in history.repeated if len(one.ends) >= ENDS_MIN]
    if stuck:
        alike = sum(3 * len(one.ends) >= len(stuck[0].ends) for one in stuck)
        of_batches = any(row.get("cause") == "poll-timeout" for _, row in stuck[0].ends)
        is_open = of_batches and 2 * alike > len(history.repeated)
        return None if is_open else _repeated(history, stuck[0])
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
        f"{member} stood still for {lasting(longest.stood_us)} although there were records. The "
        f"record is in one of its partitions: {', '.join(names[:_RECORDS_NAMED_MAX])}"
        f"{', ...' if len(names) > _RECORDS_NAMED_MAX else ''}."
    )
    rows = [one.first for one in same]
    return Match(sentence, unique([member]), (), (), rows, partitions=names)


def slow_worker(history: History) -> Match | None:
    """A worker of Kafka Connect left the group itself, because rebalance.timeout.ms had passed without a
    poll() of its herder, which stops and starts connectors and tasks in between."""
    match = poll_timeouts(history, "rebalance.timeout.ms") if history.is_connect else None
    if match is not None and (busy_us := herder_busy_us(history, match)):
        match.sentence += f" The herder was busy for at least {lasting(busy_us)}."
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
        f"{lasting(sum(one.lasted_us for one in gaps))} in all. The longest: {longest.name} of "
        f"{longest.old_worker}, {lasting(longest.lasted_us)}; {took}."
    )
    delays = [row for row in history.work.delays if row["time_us"] >= history.from_us]
    if delays:
        most = max(int(row["duration_us"]) for row in delays)
        sentence += f" The leader let it wait for its worker, up to {lasting(most)} each time."
    rebalances = under_way(history, {(one.to_us - SECOND_US, one.to_us) for one in history.work.gaps})
    return Match(sentence, unique(one.old_worker for one in gaps), rebalances, (), delays)
