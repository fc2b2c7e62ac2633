"""Why partitions were un-owned, in words: of each variant, and its longest gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.figures.migration import migration_sentences
from groupstorm.history.reasons import Gap, Reason, Reasons
from groupstorm.wording import listed, seconds

WORDS: Mapping[Reason, str] = {
    Reason.START: "the group's start, until its first member joins",
    Reason.SESSION: "silent members whose session has to expire (session.timeout.ms)",
    Reason.BROKER_SESSION: "silent members whose session has to expire (group.consumer.session.timeout.ms)",
    Reason.RESTART: "processes on their way back",
    Reason.METADATA: "members that have not refreshed their metadata yet (metadata.max.age.ms)",
    Reason.STATIC_LEADER: "a static leader that is back and does not assign until the next round (KIP-814)",
    Reason.SLOW: "join phases that wait for a slow member",
    Reason.INITIAL_DELAY: "group.initial.rebalance.delay.ms",
    Reason.SECOND_ROUND: "the second round of cooperative rebalances",
    Reason.REJOIN: "members that learn of a round with their next heartbeat and join again",
    Reason.ASSIGN: "the leader's assignor and its SyncGroup",
    Reason.CALLBACK: "rebalance callbacks and the way to the first fetch",
    Reason.REVOCATION: "old owners that revoke, and tell it with a heartbeat",
    Reason.NEXT_HEARTBEAT: "new owners whose next heartbeat fetches the partition "
    "(group.consumer.heartbeat.interval.ms)",
    Reason.NEXT_POLL: "new owners whose next poll() takes it, and the way to the first fetch",
}


def gap_sentence(gap: Gap) -> str:
    """One gap in words: who had the partition, what it waited for, and who took it."""
    lasted = seconds((gap.to_us - gap.from_us) / 1e6)
    then = f"{gap.new_owner} took it" if gap.new_owner else "nobody took it until the end"
    if gap.new_owner == gap.old_owner:
        then = f"{gap.new_owner} got it back"
    waited = f"a join phase that waits for {gap.who}" if gap.who else WORDS[gap.reason]
    begins = f"{gap.partition}, {lasted} from {gap.from_us / 1e6:,.1f} s on"
    return f"{begins}: {gap.old_owner} {gap.ending}; the time went to {waited}; {then}"


def reasons_sentences(variants: Mapping[str, Sequence[Reasons]]) -> list[str]:
    """What each variant's un-owned time was spent on, and its longest gap. Several runs (seeds) add up."""
    by_shares: dict[str, list[str]] = {}
    for name, runs in variants.items():
        if any(run.us for run in runs):
            by_shares.setdefault(_shares(runs), []).append(name)
    parts = [f"under {listed(names)} {shares}" for shares, names in by_shares.items()]
    sentences = [f"Where un-owned time went: {'; '.join(parts)}."] if parts else []
    sentences += migration_sentences(
        {name: [run.migration for run in runs] for name, runs in variants.items()}
    )
    gaps = [(name, gap) for name, runs in variants.items() if (gap := longest_gap(runs)) is not None]
    if gaps:
        worst, gap = max(gaps, key=lambda pair: _lasted(pair[1]))
        told = variants[worst][0].tasks.words(gap_sentence(gap))
        sentences.append(f"Longest gap, under {worst}: {told}.")
    return sentences


def longest_gap(runs: Sequence[Reasons]) -> Gap | None:
    """Of several runs."""
    return max((run.longest for run in runs if run.longest is not None), key=_lasted, default=None)


def _lasted(gap: Gap) -> int:
    return gap.to_us - gap.from_us


def _shares(runs: Sequence[Reasons]) -> str:
    """The one or two reasons that take most of the time."""
    sums: dict[Reason, int] = {}
    for run in runs:
        for reason, lasted_us in run.us.items():
            sums[reason] = sums.get(reason, 0) + lasted_us
    total = sum(sums.values())
    ranked = sorted(sums, key=lambda reason: -sums[reason])
    named = [ranked[0], *(reason for reason in ranked[1:2] if sums[reason] * 4 >= total)]
    return listed([f"{100 * sums[reason] // total} % to {_words(reason, runs)}" for reason in named])


def _words(reason: Reason, runs: Sequence[Reasons]) -> str:
    if reason is not Reason.SLOW:
        return runs[0].tasks.words(WORDS[reason])
    held = max((run.slowest for run in runs if run.slowest is not None), key=lambda one: one[1], default=None)
    if held is None:
        return WORDS[reason]
    return f"join phases that wait for a slow member ({held[0]}, {seconds(held[1] / 1e6)} at the longest)"
