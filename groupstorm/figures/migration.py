"""How a group changed its protocol (KIP-848, KIP-1071), and why it could not: for a comparison's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.history.migration import POLICY, REFUSED, Migration
from groupstorm.trace.events.group_states import Cause
from groupstorm.wording import listed, seconds


def migration_sentences(variants: Mapping[str, Sequence[Migration]]) -> list[str]:
    """How each variant's group changed its protocol, told of its first run, and what to do first if it could
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
    """What to do first under the variants whose groups refuse the new protocol."""
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
