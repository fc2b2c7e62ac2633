"""How a group changed its protocol (KIP-848, KIP-1071), and why it could not: for a comparison's answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events.group_states import Cause, GroupState
from groupstorm.wording import listed, seconds

#: What a consumer of the new protocol gets from a group that cannot change.
REFUSED: Final = "GROUP_ID_NOT_FOUND"

_POLICY: Final = "group.consumer.migration.policy"
_UPGRADES: Final = ("bidirectional", "upgrade")


@dataclass(frozen=True, slots=True)
class Migration:
    """``changes``: seconds, "upgraded" or "downgraded", or the kind that the group, empty, was replaced by;
    generation. ``refused``: consumers that ended because the group could not change; ``policy``:
    group.consumer.migration.policy, if it forbids it; ``of_streams``: an application of Kafka Streams, whose
    group changes only while it is empty."""

    changes: tuple[tuple[float, str, int], ...] = ()
    refused: int = 0
    policy: str = ""
    of_streams: bool = False


class MigrationWatch:
    """Takes the rows that are about it."""

    def __init__(self) -> None:
        self._changes: list[tuple[float, str, int]] = []
        self._refused = 0
        self._policy = ""
        self._of_streams = False
        #: Whether there was a group before, and whether another one has just taken its place.
        self._exists = self._is_replaced = False

    def started(self, event: world_events.ScenarioStarted) -> None:
        try:
            scenario = json.loads(event.detail)
        except ValueError:
            return
        settings = scenario.get("settings") if isinstance(scenario, dict) else None
        if not isinstance(settings, dict):
            return
        policy = settings.get(_POLICY)
        self._of_streams = settings.get("application") == "streams"
        self._policy = "" if policy is None or policy in _UPGRADES else str(policy)

    def converted(self, now_us: int, event: events.GroupConverted) -> None:
        self._changes.append((now_us / 1e6, event.cause, event.generation))

    def created(self, _now_us: int, _event: events.GroupCreated) -> None:
        self._is_replaced, self._exists = self._exists, True

    def deleted(self, _now_us: int, _event: events.GroupDeleted) -> None:
        self._exists = False

    def state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        """The first state of a group that has taken an empty one's place says of which kind it is."""
        if self._is_replaced:
            self._is_replaced = False
            kind = "streams" if self._of_streams else "consumer"
            is_classic = event.state == GroupState.PREPARING_REBALANCE
            self._changes.append((now_us / 1e6, "classic" if is_classic else kind, event.generation))

    def failed(self, _now_us: int, event: member_events.MemberFailed) -> None:
        self._refused += event.error == REFUSED

    def migration(self) -> Migration:
        return Migration(tuple(self._changes), self._refused, self._policy, self._of_streams)


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
            f"Before the roll-out, under {listed(by_policy)}: set {_POLICY}=upgrade on the brokers."
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
