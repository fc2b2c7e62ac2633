"""How a group changed its protocol (KIP-848), and why it could not: for the answer of a comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events.group_states import Cause
from groupstorm.wording import listed, seconds

#: What a consumer of the new protocol gets from a group that cannot change.
REFUSED: Final = "GROUP_ID_NOT_FOUND"

_POLICY: Final = "group.consumer.migration.policy"
_UPGRADES: Final = ("bidirectional", "upgrade")


@dataclass(frozen=True, slots=True)
class Migration:
    """``changes``: seconds, "upgraded" or "downgraded", generation. ``refused``: consumers that ended because
    the group could not be upgraded; ``policy``: group.consumer.migration.policy, if it forbids it."""

    changes: tuple[tuple[float, str, int], ...] = ()
    refused: int = 0
    policy: str = ""


class MigrationWatch:
    """Takes the rows that are about it."""

    def __init__(self) -> None:
        self._changes: list[tuple[float, str, int]] = []
        self._refused = 0
        self._policy = ""

    def started(self, event: world_events.ScenarioStarted) -> None:
        try:
            scenario = json.loads(event.detail)
        except ValueError:
            return
        settings = scenario.get("settings") if isinstance(scenario, dict) else None
        policy = settings.get(_POLICY) if isinstance(settings, dict) else None
        self._policy = "" if policy is None or policy in _UPGRADES else str(policy)

    def converted(self, now_us: int, event: events.GroupConverted) -> None:
        self._changes.append((now_us / 1e6, event.cause, event.generation))

    def failed(self, _now_us: int, event: member_events.MemberFailed) -> None:
        self._refused += event.error == REFUSED

    def migration(self) -> Migration:
        return Migration(tuple(self._changes), self._refused, self._policy)


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
        else:
            parts.append(f"became a classic group again at {seconds(at_s)}, epoch {generation}")
    if run.refused:
        parts.append(f"refused {run.refused} consumers of the new protocol ({REFUSED})")
    return f"the group {' and '.join(parts)}" if parts else ""


def _advice(variants: Mapping[str, Sequence[Migration]]) -> list[str]:
    """What to do first under the variants whose groups refuse the new protocol."""
    by_policy = [name for name, runs in variants.items() if any(run.refused and run.policy for run in runs)]
    others = [name for name, runs in variants.items() if any(run.refused and not run.policy for run in runs)]
    sentences = []
    if by_policy:
        sentences.append(
            f"Before the roll-out, under {listed(by_policy)}: set {_POLICY}=upgrade on the brokers."
        )
    if others:
        sentences.append(
            f"Before the roll-out, under {listed(others)}: roll out an assignor whose assignments carry no "
            "user data (range, cooperative-sticky), beside the old one; Kafka does not take user data along."
        )
    return sentences
