"""A trace about itself: its scenario, and the facts that it does not hold. The figures that need
one of those are null and not zero.

Most of them are missing from imported traces; a trace of `groupstorm serve` lacks the facts of which no
request informs a coordinator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from groupstorm.trace.events.imported import EvidenceMissing
from groupstorm.trace.events.scenario import ScenarioStarted
from groupstorm.trace.rows import TracedEvent

OWNERSHIP: Final = "ownership"
MEMBERS: Final = "members"
SUBSCRIPTIONS: Final = "subscriptions"
STABILITY: Final = "stability"
"""The times at which a consumer group was Stable: its coordinator need not log them."""
ABSENCES: Final = "absences"
DEATHS: Final = "deaths"
"""The times at which processes died: their partitions had no owner for longer than is counted, and perhaps no
two owners."""
TOPICS: Final = "topics"
"""Whether a topic still needs an owner that no assignment has any more, or since when a new one has needed
one: times without an owner are at least these."""
REBALANCES: Final = "rebalances"
"""The generations between two descriptions of a group: there were at least as many as are counted."""
NAMES: Final = "names"
"""The names of processes, so that what one of them subscribes to is not known: several have one client id."""
GENERATIONS: Final = "generations"
"""Lines about generations: there were at least as many as are counted."""
LOG: Final = "log"
"""Missing from every imported trace: the durations of callbacks, the positions of owners in the log, and
which members stop for one deployment."""

_TIMES_WITHOUT_AN_OWNER: Final = (
    "settled_after_ms",
    "unowned_partition_seconds",
    "unowned_max_seconds",
    "unowned_p50_seconds",
    "unowned_p95_seconds",
    "unowned_p99_seconds",
    "unowned_worst_partition",
    "deploy_unowned_partition_seconds",
    "cost_per_deploy_partition_seconds",
    "crash_unowned_partition_seconds",
    "cost_per_crash_partition_seconds",
    "nobody_consuming_seconds",
)
_BALANCE: Final = ("moves_lower_bound", "moves_wasted", "imbalance_max", "idle_members_max")

#: A fact that is not known -> the figures that need it.
NEEDED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    LOG: ("paused_partition_seconds", "deploys", "cost_per_deploy_partition_seconds"),
    OWNERSHIP: (
        *_TIMES_WITHOUT_AN_OWNER,
        "paused_partition_seconds",
        "dual_owner_seconds",
        "moves",
        "revoked_and_returned",
        *_BALANCE,
    ),
    MEMBERS: (
        *_BALANCE,
        "rounds_per_change",
        "deploys",
        "cost_per_deploy_partition_seconds",
        "crashes",
        "cost_per_crash_partition_seconds",
    ),
    ABSENCES: _TIMES_WITHOUT_AN_OWNER,
    DEATHS: ("dual_owner_seconds",),
    TOPICS: (),
    GENERATIONS: (),
    NAMES: _BALANCE,
    REBALANCES: ("rounds_per_change", "rebalance_latency_avg_ms", "rebalance_latency_max_ms"),
    SUBSCRIPTIONS: _BALANCE,
    STABILITY: ("moves", *_BALANCE),
}


#: Types of groups whose members own no partitions: why.
WITHOUT_OWNERS: Final[Mapping[str, str]] = {
    "streams": "a streams group has tasks: its coordinator's log does not say whose partitions they read",
    "share": "members of a share group own no partitions: all of them read from all",
}
STATIC_MEMBERS: Final = (
    "how long partitions waited for static members that restarted is not known, since a coordinator does not "
    "hear when they stop"
)
_ADD_THEIR_LOGS: Final = f"{STATIC_MEMBERS}: add the logs of these members"


class Unknown:
    """Takes what a trace says about itself. ``sentences``: by what is not known, why, and what to add."""

    def __init__(self) -> None:
        self.sentences: dict[str, str] = {}
        self._now: dict[str, str] = {}

    def imported(self, _now_us: int, _event: object) -> None:
        """The trace was made from logs."""
        self.sentences[LOG] = ""

    def missing(self, _now_us: int, event: EvidenceMissing) -> None:
        if event.cause in NEEDED_BY:
            if event.cause != DEATHS:  # which is of a moment, and is over in a later window
                self._now[event.cause] = event.detail
            self.sentences.setdefault(event.cause, event.detail)

    def static_member_returned(self, _now_us: int, _event: object) -> None:
        """A static member is back, and only its coordinator tells of it, which did not hear it stop."""
        is_imported = LOG in self.sentences
        self.sentences.setdefault(ABSENCES, _ADD_THEIR_LOGS if is_imported else STATIC_MEMBERS)

    def known(self, _now_us: int, _event: object) -> None:
        """Every partition's owner is known from now on."""
        self._now.pop(OWNERSHIP, None)

    def begin_window(self) -> None:
        """A fact that was not known before the window counts only if it is not known now."""
        is_imported = LOG in self.sentences
        self.sentences = dict(self._now)
        if is_imported:
            self.sentences[LOG] = ""

    def nothing(self) -> dict[str, None]:
        """The figures that are not known."""
        return {name: None for cause in self.sentences for name in NEEDED_BY[cause]}


def json_object(text: str) -> dict[str, Any]:
    """The JSON object of a row's detail; empty if it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def scenario_of(first: TracedEvent) -> dict[str, Any]:
    """The scenario that the first row of a storm's trace holds as JSON; empty of any other row."""
    return json_object(first.detail) if isinstance(first, ScenarioStarted) else {}


def settings_of(first: TracedEvent) -> dict[str, Any]:
    """The settings of that scenario; empty if it has none."""
    settings = scenario_of(first).get("settings")
    return settings if isinstance(settings, dict) else {}


def figures_from_us(first: TracedEvent) -> int | None:
    """By the first row of a trace; None: from there on."""
    from_ms = scenario_of(first).get("figures_from")
    return from_ms * 1000 if isinstance(from_ms, int) and from_ms > 0 else None
