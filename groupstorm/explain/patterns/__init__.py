"""The rules that name what happened to a group, one subject in each module; `PATTERNS` has all of them.

The specific ones come first: a rebalance that several explain belongs to the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from groupstorm.explain.findings import Kind, Pattern, Rule
from groupstorm.explain.patterns import deployments, group, membership, refused, sessions, waiting
from groupstorm.tables import rows

_RULES: Final[Mapping[str, Rule]] = {
    "stopped": deployments.stopped,
    "outage": sessions.outage,
    "mixed-assignors": membership.mixed_assignors,
    "migration-refused": membership.migration_refused,
    "assignment-mismatch": membership.assignment_mismatch,
    "append-failed": group.append_failed,
    "static-fenced": membership.fenced_instances,
    "poison-record": waiting.poison_record,
    "static-unreleased": sessions.static_unreleased,
    "static-session-too-short": sessions.static_session_too_short,
    "static-orphan": sessions.static_orphan,
    "max-poll-interval": waiting.max_poll_interval,
    "slow-worker": waiting.slow_worker,
    "config-behind": refused.config_behind,
    "failing-members": membership.failing_members,
    "coordinator-moved": group.coordinator_moved,
    "never-rejoined": refused.never_rejoined,
    "join-refused": refused.join_refused,
    "closed-silently": sessions.closed_silently,
    "state-lost": group.state_lost,
    "moved-cold": group.moved_cold,
    "follow-up-rebalances": group.follow_ups,
    "slow-assignor": waiting.slow_assignor,
    "held-join-phase": waiting.held_join_phase,
    "slow-revocation": waiting.slow_revocation,
    "slow-callback": waiting.slow_callback,
    "livelock": group.livelock,
    "autoscaler-flapping": deployments.autoscaler,
    "session-expired": sessions.session_expired,
    "out-of-group": sessions.out_of_group,
    "aligned-restart": deployments.aligned_restart,
    "migration": deployments.migration,
    "deploy-wave": deployments.deploy_wave,
    "static-restart": deployments.static_restart,
    "gone-unsaid": membership.gone_unsaid,
    "topics-changed": group.metadata_changed,
    "waiting-work": waiting.waiting_work,
    "leader-rejoined": group.leader_rejoined,
    "formed-in-rounds": group.formation,
    "waits-for-heartbeat": waiting.next_heartbeat,
    "group-start": group.start,
    "assigned-by-hand": refused.assigned_by_hand,
    "zombie": membership.zombies,
    "commit-in-rebalance": refused.commit_in_rebalance,
    "no-committed-offset": refused.no_offset,
    "uncommitted": group.uncommitted,
    "needless-moves": group.needless_moves,
    "subscriptions-differ": membership.subscriptions_differ,
}

PATTERNS: Final = tuple(
    Pattern(name, title, _RULES[name], advice, tuple(presets.split()), Kind[kind.upper()])
    for name, kind, presets, title, advice in rows(__package__, "patterns")
)
