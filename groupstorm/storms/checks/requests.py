"""JoinGroup and SyncGroup requests that the coordinator parked: each must be answered when its phase ends.

Also the request of a client that gave up waiting counts: its member missed the round.
"""

from __future__ import annotations

from groupstorm.storms.checks.verdicts import PARKED, Verdicts, listed
from groupstorm.trace.events import coordinator as events

_PREPARING = "PreparingRebalance"
_COMPLETING = "CompletingRebalance"


class RequestChecks:
    """Follows the parked requests: member id -> name of the member.

    When a phase ends, the coordinator answers the requests that it parked in it before it changes the group's
    state once more.
    """

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._joins: dict[str, str] = {}
        self._syncs: dict[str, str] = {}
        #: Parked in a phase that has ended.
        self._due_joins: dict[str, str] = {}
        self._due_syncs: dict[str, str] = {}

    def is_parked(self, member_id: str) -> bool:
        return member_id in self._joins or member_id in self._syncs

    def join_parked(self, event: events.JoinParked) -> None:
        """A member that joins again replaces its older JoinGroup, as in Kafka: that one has no response."""
        self._joins[event.member_id] = event.member

    def join_answered(self, event: events.JoinAnswered) -> None:
        member_id = event.member_id or self._parked_id_of(event.member)
        self._joins.pop(member_id, None)
        if self._due_joins:
            self._due_joins.pop(member_id, None)

    def _parked_id_of(self, name: str) -> str:
        """A group that could not be written is gone: the response to a join of it has no member id."""
        return next((member_id for member_id, member in self._joins.items() if member == name), "")

    def sync_parked(self, event: events.SyncParked) -> None:
        self._syncs[event.member_id] = event.member

    def sync_answered(self, event: events.SyncAnswered) -> None:
        self._syncs.pop(event.member_id, None)
        if self._due_syncs:
            self._due_syncs.pop(event.member_id, None)

    def member_gone(self, member_id: str) -> None:
        """Kafka does not answer the SyncGroup of a member that it removes."""
        self._syncs.pop(member_id, None)
        self._due_syncs.pop(member_id, None)

    def state_changed(self, event: events.GroupStateChanged) -> None:
        self._check_due()
        if event.previous_state == _PREPARING:
            self._due_joins = dict(self._joins)
        elif event.previous_state == _COMPLETING:
            self._due_syncs = dict(self._syncs)

    def finish(self) -> None:
        """At the end only a phase that still lasts may hold requests back."""
        self._check_due()

    def _check_due(self) -> None:
        for api, due in (("JoinGroup", self._due_joins), ("SyncGroup", self._due_syncs)):
            if due:
                names = listed(sorted(set(due.values())))
                self._verdicts.violated(PARKED, f"the coordinator never answered the {api} of {names}")
