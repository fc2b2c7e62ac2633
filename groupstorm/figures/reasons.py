"""Why partitions were un-owned, in words: of each variant, and its longest gap; and how a group changed its
protocol (KIP-848, KIP-1071), or why it could not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.history.phases import Reason
from groupstorm.history.protocols import POLICY, REFUSED, Migration
from groupstorm.history.reasons import Gap, Reasons
from groupstorm.trace.events.group_states import Cause
from groupstorm.wording import listed, seconds

WORDS: Mapping[Reason, str] = {
    Reason.START: "the group's start, until its first member joins",
    Reason.SESSION: "silent members whose session has to expire (session.timeout.ms)",
    Reason.BROKER_SESSION: "silent members whose session has to expire (group.consumer.session.timeout.ms)",
    Reason.RESTART: "processes on their way back",
    Reason.COORDINATOR: "processes that were back before a coordinator answered them",
    Reason.EMPTY: "a group without members",
    Reason.METADATA: "members that have not refreshed their metadata yet (metadata.max.age.ms)",
    Reason.LEFT_OUT: "rounds that gave partitions to nobody (no member subscribes to their topic, or an "
    "assignor left them out)",
    Reason.STATIC_LEADER: "a static leader that is back and does not assign until the next round (KIP-814)",
    Reason.SLOW: "join phases that wait for a slow member",
    Reason.INITIAL_DELAY: "group.initial.rebalance.delay.ms",
    Reason.SECOND_ROUND: "the second round of cooperative rebalances",
    Reason.REJOIN: "members that learn of a round with their next heartbeat and join again",
    Reason.LEADER_POLL: "leaders that run the assignor with their next poll()",
    Reason.ASSIGN: "the leader's assignor, its SyncGroup and the coordinator's write",
    Reason.CALLBACK: "rebalance callbacks (onPartitionsRevoked, onPartitionsAssigned)",
    Reason.REVOCATION: "old owners that revoke, and tell it with a heartbeat",
    Reason.NEXT_HEARTBEAT: "new owners whose next heartbeat fetches the partition "
    "(group.consumer.heartbeat.interval.ms)",
    Reason.NEXT_POLL: "new owners whose next poll() takes it, and the way to the first fetch",
}


def gap_sentence(gap: Gap) -> str:
    """One gap in words: who had the partition, what it waited for, and who took it."""
    lasted = seconds((gap.to_us - gap.from_us) / 1e6)
    then = f"{gap.new_owner} took it" if gap.new_owner else "nobody took it"
    if gap.new_owner == gap.old_owner:
        then = f"{gap.new_owner} got it back"
    waited = f"a join phase that waits for {gap.who}" if gap.who else WORDS[gap.reason]
    begins = f"{gap.partition}, {lasted} from {gap.from_us / 1e6:,.1f} s on"
    return f"{begins}: {gap.old_owner} {gap.ending}; the time went to {waited}; {then}"


def reasons_sentences(variants: Mapping[str, Sequence[Reasons]]) -> list[str]:
    """Tell what took each variant's un-owned time, and its longest gap. Several runs (seeds) add up."""
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
    """Return the longest gap of several runs; None if none has a gap."""
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


def migration_sentences(variants: Mapping[str, Sequence[Migration]]) -> list[str]:
    """Tell how each group changed its protocol in a variant's first run, and what to do first if it could
    not. Nothing if no group changed and none was to."""
    told: dict[str, list[str]] = {}
    for name, runs in variants.items():
        if runs:
            told.setdefault(_told(runs[0]), []).append(name)
    if set(told) <= {""}:
        return []
    parts = [f"under {listed(names)} {what or 'the group kept its protocol'}" for what, names in told.items()]
    return [f"Group protocol: {'; '.join(parts)}.", *_advice(variants)]


def _told(run: Migration) -> str:
    parts = []
    for at_s, cause, generation in run.changes:
        if cause == Cause.UPGRADED:
            parts.append(f"became a consumer group at {seconds(at_s)}, generation {generation} as its epoch")
        elif cause == Cause.DOWNGRADED:
            parts.append(f"became a classic group again at {seconds(at_s)}, epoch {generation}")
        else:
            parts.append(f"became a {cause} group at {seconds(at_s)}, empty until then")
    if run.refused:
        parts.append(f"refused {run.refused} consumers of the new protocol ({REFUSED})")
    return f"the group {' and '.join(parts)}" if parts else ""


def _advice(variants: Mapping[str, Sequence[Migration]]) -> list[str]:
    """Tell what to do first under the variants whose groups refuse the new protocol."""
    by_policy = [name for name, runs in variants.items() if any(run.refused and run.policy for run in runs)]
    of_streams, others = (
        [
            name
            for name, runs in variants.items()
            if any(run.refused and not run.policy and run.of_streams is streams for run in runs)
        ]
        for streams in (True, False)
    )
    sentences = []
    if by_policy:
        sentences.append(
            f"Before the roll-out, under {listed(by_policy)}: set {POLICY}=upgrade on the brokers."
        )
    if of_streams:
        sentences.append(
            f"Before the roll-out, under {listed(of_streams)}: stop all instances, and let them leave the "
            "group (CloseOptions of KafkaStreams.close) or wait for session.timeout.ms; an application "
            "changes its protocol only while its group has no members."
        )
    if others:
        sentences.append(
            f"Before the roll-out, under {listed(others)}: roll out an assignor whose assignments carry no "
            "user data (range, cooperative-sticky), beside the old one; Kafka does not take user data along."
        )
    return sentences
