"""Rounds that wait for one member: in the join phase, in the leader's assignor, in a callback."""

from __future__ import annotations

from typing import Final

from groupstorm.explain.findings import Match
from groupstorm.explain.history import History
from groupstorm.explain.patterns.selecting import SECOND_US, under_way, unique
from groupstorm.history.reasons import SLOW_US
from groupstorm.history.rebalances import Rebalance, Round
from groupstorm.trace.events.group_states import Cause
from groupstorm.wording import counted, listed, seconds

#: A leader that takes longer for its plan keeps everybody waiting: assignors take milliseconds.
SLOW_PLAN_US: Final = 5 * SECOND_US
#: The longest wait is named, and so many members.
_NAMED_MAX: Final = 4


def held_join_phase(history: History) -> Match | None:
    """A join phase took 10 s or more (heartbeats bring the others within seconds), or did so at least until
    the last line that shows it open, and not because of group.initial.rebalance.delay.ms: the round waited
    for the last member to join, or to be removed.
    (For a session that had to expire see session-expired.)"""
    held = [(rebalance, one) for rebalance in history.rebalances for one in rebalance.rounds if _is_held(one)]
    if not held:
        return None
    longest = max(held, key=lambda pair: _joining_us(pair[1]))[1]
    sentence = f"{counted(len(held), 'join phase')} took 10 s or more. {_waited(longest)}"
    end = longest.joined or longest.last
    rows = [longest.begun, longest.last_join, longest.removed_at_end, end]
    unknown = ""
    if not all(_last(one) for _, one in held):
        unknown = "who came last: add the logs of the consumers"
    if longest.joined is None:
        unknown = "when it ended, and whom it waited for: add the rest of the log, and the consumers' logs"
    return Match(
        sentence,
        unique(_last(one) for _, one in held),
        _once([rebalance for rebalance, _ in held]),
        (),
        [row for row in rows if row is not None],
        unknown,
    )


def slow_revocation(history: History) -> Match | None:
    """A member of a consumer group (KIP-848) took 10 s or more to give up partitions that others wait for:
    it gives them up in a poll()."""
    slow = history.slow_revocations
    if not slow:
        return None
    worst = max(slow, key=lambda one: one.lasted_us)
    sentence = (
        f"{counted(len(slow), 'revocation')} took 10 s or more, the longest "
        f"{seconds(worst.lasted_us / SECOND_US)} ({worst.member})."
    )
    rebalances = [rebalance for one in slow for rebalance in under_way(history, int(one.first["time_us"]))]
    rows = [row for one in slow for row in (one.first, one.last)]
    return Match(sentence, unique(one.member for one in slow), _once(rebalances), (), rows)


def _is_held(one: Round) -> bool:
    """A round that waited for a member whose session had to expire belongs to `sessions`."""
    if _joining_us(one) < SLOW_US or (one.joined or {}).get("cause") == Cause.INITIAL_DELAY:
        return False
    return one.removed_at_end is None or one.removed_at_end.get("cause") != Cause.SESSION_EXPIRED


def _joining_us(one: Round) -> int:
    return one.open_us if one.joining_us is None else one.joining_us


def _last(one: Round) -> str:
    """The member that the join phase waited for."""
    return one.removed_member or one.last_joiner


def _waited(one: Round) -> str:
    took = seconds(_joining_us(one) / SECOND_US)
    if one.joined is None:
        return f"The longest was still in its join phase after at least {took}; no row tells its end."
    if one.removed_at_end is not None:
        cause = one.removed_at_end.get("cause", "unknown")
        return f"The longest took {took}: it waited for {_last(one)}, which was removed ({cause})."
    if one.last_join is None:
        return f"The longest took {took}."
    waited_us = one.last_join["time_us"] - (one.others_joined_us or one.begun_us)
    after = seconds(waited_us / SECOND_US)
    return f"The longest took {took}: {_last(one)} joined last, {after} after all others."


def slow_assignor(history: History) -> Match | None:
    """The leader took 5 s or more from the end of the join phase to its SyncGroup: its assignor is slow,
    or the process stood still."""
    slow = [
        (rebalance, one)
        for rebalance in history.rebalances
        for one in rebalance.rounds
        if (one.assigning_us or 0) >= SLOW_PLAN_US
    ]
    if not slow:
        return None
    longest = max((one.assigning_us or 0) for _, one in slow)
    sentence = (
        f"In {counted(len(slow), 'round')} the group waited 5 s or more for the leader's plan, "
        f"{seconds(longest / SECOND_US)} at the longest."
    )
    rows = [row for _, one in slow for row in (one.joined, one.ended) if row is not None]
    leaders = unique(str((one.joined or {}).get("leader", "")) for _, one in slow)
    return Match(sentence, leaders[:_NAMED_MAX], _once([rebalance for rebalance, _ in slow]), (), rows)


def slow_callback(history: History) -> Match | None:
    """onPartitionsRevoked, or onPartitionsLost, took 3 s or more: meanwhile the partition has no owner,
    and the round waits for the member."""
    slow = [*history.of_kind("slow-callback")]
    if not slow:
        return None
    longest = max(slow, key=lambda one: int(one.row["duration_us"]))
    members = unique(one.member for one in slow)
    sentence = (
        f"{counted(len(slow), 'callback')} of {counted(len(members), 'member')} took 3 s or more, the "
        f"longest {seconds(longest.row['duration_us'] / SECOND_US)} ({longest.member})."
    )
    rebalances = [
        rebalance
        for rebalance in history.rebalances
        if any(_during(rebalance, one.time_us, int(one.row["duration_us"]), history.to_us) for one in slow)
    ]
    return Match(sentence, members, rebalances, (), [one.row for one in slow])


def _during(rebalance: Rebalance, from_us: int, lasted_us: int, end_us: int) -> bool:
    return rebalance.begun_us <= from_us + lasted_us and from_us <= rebalance.until_us(end_us)


def next_heartbeat(history: History) -> Match | None:
    """A consumer group (KIP-848) in which most of the time without an owner, and one partition-second at
    least, went to new owners whose next heartbeat fetches the partition, or whose next poll() takes it."""
    waits = history.handover_waits_us
    if not history.is_consumer_group or not history.unowned_us or waits is None:
        return None
    waited_us = sum(waits)
    if waited_us < SECOND_US or 2 * waited_us < history.unowned_us:
        return None
    words = [
        f"{seconds(us / SECOND_US)} to the next {what}"
        for us, what in zip(waits, ("heartbeat", "poll()"), strict=True)
        if us
    ]
    sentence = (
        f"Of {seconds(history.unowned_us / SECOND_US)} without an owner, summed over partitions, new owners "
        f"waited {listed(words)}."
    )
    return Match(sentence, (), history.rebalances)


def _once(rebalances: list[Rebalance]) -> list[Rebalance]:
    return [*{one.number: one for one in rebalances}.values()]
