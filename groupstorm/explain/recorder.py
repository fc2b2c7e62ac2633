"""From the rows of one group to its `History`: rebalances, changes of membership, incidents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from groupstorm.explain.epochs import Epochs
from groupstorm.explain.history import (
    COORDINATOR_KINDS,
    REPLACED,
    Absence,
    Change,
    ChangeKind,
    History,
    Incident,
    Rebalance,
    Round,
    Row,
    SlowRevocation,
    Uncommitted,
)
from groupstorm.explain.incidents import INCIDENTS
from groupstorm.explain.refusals import Refusals
from groupstorm.explain.stuck_records import StuckRecords
from groupstorm.figures.gaps import ClosedGap
from groupstorm.figures.reasons import SLOW_US
from groupstorm.trace.events.group_states import Cause, GroupState

#: A member-updated round that begins so soon after the last one is its second half if no row says what the
#: member revoked: a cooperative member joins again with its next heartbeat (3 s by default), or at once.
SECOND_ROUND_US: Final = 10_000_000
#: A broker logs why a round begins so long before the round itself, at most.
LOGGED_BEFORE_US: Final = 100_000
#: More incidents of one kind are not kept: what they show is clear by then.
INCIDENTS_MAX: Final = 10_000

UNREVOKED: Final = "UNREVOKED_PARTITIONS"
_CONSUMER_STATES: Final = frozenset({"Assigning", "Reconciling"})
_SECOND_HALF: Final = frozenset({Cause.MEMBER_UPDATED, Cause.LEADER_REJOINED})
#: Rows of the coordinator that follow from a request of the member: it was alive.
_ALIVE: Final = frozenset(
    {"join_parked", "sync_parked", "offsets_committed", "member_added", "member_replaced"}
)


class Recorder:
    """Takes the rows of one group, in their order; `finish` gives the history.

    ``from_us``: rebalances, changes and incidents count from then on. ``first_us``: of the group's first row.
    """

    def __init__(self, group: str, from_us: int, first_us: int) -> None:
        self._history = History(group, from_us, first_us=first_us)
        self._epochs = Epochs(self._history)
        self._stuck = StuckRecords()
        self._refusals = Refusals()
        #: The place of the last row's first line, and the generation that a row had last.
        self._place = ""
        self._given_us: dict[str, int] = {}
        self._generation: int | None = None
        self._has_member_rows = self._has_state = False
        self._names: dict[str, str] = {}
        self._alive: dict[str, Row] = {}
        #: Member ids that gave up partitions since their last SyncGroup answer (KIP-429).
        self._revoked: set[str] = set()
        self._assigned: dict[str, frozenset[str]] = {}
        #: Members of a consumer group that have to give up partitions: the row since when.
        self._revoking: dict[str, Row] = {}
        self._round: Round | None = None
        self._absences: dict[tuple[str, int], Absence] = {}
        self._last_removed: Row | None = None
        #: A member's own row that it leaves, as it did not poll in time: no round has begun since.
        self._left: Row | None = None
        self._gone_us: int | None = None
        #: The client library of all members of a storm; "" if it has several.
        self._library = ""
        self._handlers: Mapping[str, Callable[[Row], None]] = {
            "scenario_started": self._scenario_started,
            "group_imported": self._imported,
            "evidence_missing": self._missing,
            "members_gone": self._members_gone,
            "members_back": self._members_back,
            "work_assigned": self._work_assigned,
            "member_configured": self._configured,
            "group_state_changed": self._state_changed,
            "member_added": self._added,
            "member_replaced": self._replaced,
            "member_removed": self._removed,
            "member_started": self._started,
            "join_parked": self._join_parked,
            "partitions_revoked": self._partitions_revoked,
            "sync_answered": self._sync_answered,
            "member_reconciled": self._reconciled,
            "rejoin_requested": self._attempted,
            "partitions_assigned": self._given,
        }

    def add(self, row: Row) -> None:
        """Take the next row."""
        history, event, now_us = self._history, row["event"], row["time_us"]
        history.last_us = now_us
        if row["source"] == "member":
            self._has_member_rows = True
            if row.get("evidence"):
                history.settings.logs.setdefault(row["member"], row["evidence"][0].rpartition(":")[0])
        member_id = row.get("member_id")
        if member_id and "member" in row:
            self._names[member_id] = self._name(row)
        handler = self._handlers.get(event)
        if handler is not None:
            handler(row)
        if self._round is not None and row["source"] != "world":
            self._round.last = row
        place = next(iter(row.get("evidence") or ()), self._place)
        history.lines += place != self._place and now_us >= history.from_us
        self._place = place
        is_repeated = self._refusals.add(row, self._name(row))
        self._epochs.add(row, self._name(row))
        self._stuck.add(row)
        if member_id and (row["source"] == "member" or event in _ALIVE):
            self._alive[member_id] = row
        classify = INCIDENTS.get(event)
        kind = None if classify is None or is_repeated else classify(row)
        if row["source"] != "world" and (kind not in COORDINATOR_KINDS or kind == "loaded"):
            history.active_us = now_us
        if kind is not None and now_us >= history.from_us:
            incidents = history.incidents.setdefault(kind, [])
            if len(incidents) < INCIDENTS_MAX:
                incidents.append(Incident(now_us, self._name(row), row))

    def close_gap(self, gap: ClosedGap) -> None:
        """A time without an owner is over: it belongs to the rebalance that ended it, if one was under
        way."""
        if gap.to_us <= self._history.from_us:
            return
        if self._epochs.is_counting:
            found = self._epochs.rebalance_of(gap)
            if found is None:
                self._add_absence(gap)
            else:
                found.add_gap(gap)
            return
        for rebalance in reversed(self._history.rebalances):
            ended_us = rebalance.ended_us
            if rebalance.begun_us <= gap.to_us and (ended_us is None or ended_us >= gap.from_us):
                rebalance.add_gap(gap)
                return
            if ended_us is not None and ended_us < gap.from_us:
                break
        self._add_absence(gap)

    def _add_absence(self, gap: ClosedGap) -> None:
        key = gap.old_owner or "", gap.from_us
        absence = self._absences.get(key)
        if absence is None:
            absence = self._absences[key] = Absence(gap.old_owner or "", gap.from_us, gap.to_us)
            self._history.absences.append(absence)
        absence.add_gap(gap)

    def count_from(self, from_us: int) -> None:
        """The history counts from ``from_us`` on, a time after all rows so far."""
        self._history.from_us = from_us

    def forget(self) -> None:
        """Drop what the history holds of the rows so far, but for the last rebalance, which may go on."""
        history = self._history
        kept = self._changes_at(history.last_us)
        for change in history.changes[: len(history.changes) - len(kept)]:
            if change.kind is ChangeKind.WENT:
                self._names.pop(change.row.get("previous_member_id") or change.member_id, None)
        history.changes = kept
        history.rebalances = history.rebalances[-1:]
        history.absences, history.incidents, history.slow_revocations = [], {}, []
        history.without_members = []
        history.uncommitted = Uncommitted()
        self._refusals.forget()
        history.generations_hidden = 0
        history.attempts.clear()
        history.assignments.clear()
        self._absences.clear()
        self._stuck.forget()

    def finish(self, end_us: int) -> History:
        """The trace, or the window, ends at ``end_us``. What began before the window and cost nothing in
        it is left out."""
        history = self._history
        self._epochs.finish()
        history.work.finish(end_us)
        history.to_us = end_us
        if self._gone_us is not None and self._gone_us < end_us:
            history.without_members.append((max(self._gone_us, history.from_us), end_us))
        history.has_member_rows = self._has_member_rows
        history.rebalances = [
            one for one in history.rebalances if one.begun_us >= history.from_us or one.unowned_us
        ]
        history.refusals = [
            one for one in self._refusals.found if int(one.last["time_us"]) >= history.from_us
        ]
        history.repeated, history.stood = self._stuck.repeated(), self._stuck.stood()
        return history

    # -- settings ----------------------------------------------------------------------------------

    def _scenario_started(self, row: Row) -> None:
        scenario = _json_object(row["detail"])
        self._history.scenario = str(scenario.get("name", ""))
        settings = scenario.get("settings")
        self._history.settings.of_group = settings if isinstance(settings, dict) else {}
        profiles = self._history.settings.get("client_profile")
        if isinstance(profiles, list) and len(profiles) == 1:
            self._library = str(profiles[0])

    def _imported(self, row: Row) -> None:
        self._history.is_imported = True
        self._history.began = str(_json_object(row["detail"]).get("began", ""))

    def _missing(self, row: Row) -> None:
        self._history.missing.setdefault(row["cause"], row["detail"])

    def _configured(self, row: Row) -> None:
        known = self._history.settings.of_member.setdefault(self._name(row), {})
        known.update({name: str(value) for name, value in json.loads(row["detail"]).items()})

    def _members_gone(self, row: Row) -> None:
        self._gone_us = row["time_us"]
        self._history.work.finish(row["time_us"])

    def _work_assigned(self, row: Row) -> None:
        name = self._name(row)
        delay_ms = self._history.settings.number("scheduled.rebalance.max.delay.ms", name)
        self._history.work.assigned(row, name, None if delay_ms is None else 1000 * delay_ms)

    def _members_back(self, row: Row) -> None:
        if self._gone_us is not None and row["time_us"] > self._history.from_us:
            from_us = max(self._gone_us, self._history.from_us)
            self._history.without_members.append((from_us, row["time_us"]))
        self._gone_us = None

    # -- rounds ------------------------------------------------------------------------------------

    def _state_changed(self, row: Row) -> None:
        state, now = row["state"], self._round
        self._see_generation(row)
        if not self._has_state:
            self._has_state = True
            self._history.began_empty = row["previous_state"] == GroupState.EMPTY
        self._history.is_empty = state == GroupState.EMPTY
        if self._epochs.is_counting and state != GroupState.PREPARING_REBALANCE and now is None:
            return
        if state == GroupState.PREPARING_REBALANCE or (state in _CONSUMER_STATES and now is None):
            self._begin(row)
        elif now is None:
            if state == GroupState.STABLE and row["previous_state"] == GroupState.EMPTY:
                self._begin(row)  # a consumer group with its first member
                self._end(row)
        elif state == GroupState.COMPLETING_REBALANCE:
            now.joined, now.members = row, row.get("count")
            removed = self._last_removed
            if removed is not None and removed["time_us"] == row["time_us"]:
                now.removed_at_end, now.removed_member = removed, self._name(removed)
        elif state in (GroupState.STABLE, GroupState.EMPTY):
            self._end(row)
        else:
            now.causes.add(row["cause"])
        self._history.is_consumer_group = self._history.is_consumer_group or state in _CONSUMER_STATES

    def _see_generation(self, row: Row) -> None:
        """Count the generations that the logs skip."""
        history, generation = self._history, row.get("generation")
        before, self._generation = self._generation, generation
        if before is None or generation is None or not history.is_imported:
            return
        begins = row["state"] in (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY)
        if not self._epochs.is_counting and row["time_us"] >= history.from_us:
            history.generations_hidden += max(0, generation - before - begins)

    def _begin(self, row: Row) -> None:
        began = Round(row, row["cause"], self._culprit(row))
        began.causes.add(row["cause"])
        rebalances = self._history.rebalances
        if not rebalances or not self._continues(rebalances[-1], row):
            rebalances.append(Rebalance(len(rebalances) + 1))
        rebalances[-1].rounds.append(began)
        rebalances[-1].changes += self._changes_at(row["time_us"])
        self._round = began

    def _end(self, row: Row) -> None:
        self._left = None
        if self._round is not None:
            self._round.ended = row
            self._round.members = row.get("count", self._round.members)
        self._round = None

    def _continues(self, before: Rebalance, row: Row) -> bool:
        """Whether a round belongs to the rebalance before it."""
        if self._round is not None:
            return True  # the last round did not end
        if row["cause"] not in _SECOND_HALF or before.ended_us is None:
            return False
        if row.get("member_id") in self._revoked:
            return True
        if not self._history.is_imported and (self._has_member_rows or self._assigned):
            return False
        return bool(row["time_us"] - before.ended_us <= SECOND_ROUND_US)

    def _culprit(self, row: Row) -> str:
        member_id = str(row.get("member_id", ""))
        if member_id:
            return self._names.get(member_id, member_id)
        changes = self._changes_at(row["time_us"])
        known = [one for one in changes if one.cause != "unknown"] or changes[:1] * (len(changes) == 1)
        if known:
            return known[-1].member
        left = self._left  # without the coordinator's rows a round shows by the other members' heartbeats
        is_near = left is not None and row["time_us"] - left["time_us"] <= SECOND_ROUND_US
        return self._name(left) if left is not None and is_near and row["cause"] == "unknown" else ""

    def _join_parked(self, row: Row) -> None:
        now = self._round
        if now is None:
            return
        if now.last_join is not None:
            now.others_joined_us = now.last_join["time_us"]
        if now.first_join_us is None:
            now.first_join_us = row["time_us"]
        now.last_join, now.last_joiner = row, self._name(row)

    def _partitions_revoked(self, row: Row) -> None:
        if row.get("cause") == "assignment" and "member_id" in row:
            self._revoked.add(row["member_id"])
        uncommitted = sum(
            position - committed
            for position, committed in zip(row.get("positions", ()), row.get("committed", ()), strict=False)
            if position is not None and committed is not None and committed < position
        )
        if uncommitted and row["time_us"] >= self._history.from_us:
            self._history.uncommitted.add(uncommitted, self._name(row), row)

    def _attempted(self, row: Row) -> None:
        if row.get("cause") == "poll-timeout":
            self._left = row
        if row["time_us"] >= self._history.from_us:
            attempts, member = self._history.attempts, self._name(row)
            attempts[member] = attempts.get(member, 0) + 1

    def _given(self, row: Row) -> None:
        """Some clients have a row for each partition: those of one instant are one assignment."""
        given, member, now_us = self._history.assignments, self._name(row), row["time_us"]
        is_new = now_us - self._given_us.get(member, -LOGGED_BEFORE_US) >= LOGGED_BEFORE_US
        if is_new and now_us >= self._history.from_us:
            given[member] = given.get(member, 0) + 1
        self._given_us[member] = now_us

    def _sync_answered(self, row: Row) -> None:
        if "error" in row:
            return
        member_id = row["member_id"]
        self._revoked.discard(member_id)
        if self._has_member_rows or "partitions" not in row:
            return
        has = frozenset(row["partitions"])
        if self._assigned.get(member_id, frozenset()) - has:
            self._revoked.add(member_id)
        self._assigned[member_id] = has

    def _reconciled(self, row: Row) -> None:
        """A member of a consumer group revokes from UNREVOKED_PARTITIONS on, until it says that it has."""
        member_id = row["member_id"]
        since = self._revoking.pop(member_id, None)
        if row.get("state") == UNREVOKED:
            self._revoking[member_id] = since or row
        elif since is not None and row["time_us"] - since["time_us"] >= SLOW_US:
            self._history.slow_revocations.append(SlowRevocation(self._name(row), since, row))

    # -- members -----------------------------------------------------------------------------------

    def _added(self, row: Row) -> None:
        self._change(ChangeKind.CAME, row, row["cause"])

    def _replaced(self, row: Row) -> None:
        previous = row["previous_member_id"]
        self._change(ChangeKind.WENT, row, REPLACED, self._alive.pop(previous, None))
        self._change(ChangeKind.CAME, row, REPLACED)

    def _removed(self, row: Row) -> None:
        self._last_removed = row
        self._assigned.pop(row["member_id"], None)
        self._history.work.gone(self._name(row), row["time_us"])
        self._change(ChangeKind.WENT, row, row["cause"], self._alive.pop(row["member_id"], None))

    def _change(self, kind: ChangeKind, row: Row, cause: str, alive: Row | None = None) -> None:
        now_us = row["time_us"]
        change = Change(
            now_us, kind, self._name(row), row["member_id"], row.get("instance"), cause, row, alive
        )
        history = self._history
        if now_us >= history.from_us:
            history.changes.append(change)
        history.is_empty = history.is_empty and kind is not ChangeKind.CAME
        self._epochs.changed(change)
        if self._round is not None:
            history.rebalances[-1].changes.append(change)

    def _changes_at(self, now_us: int) -> list[Change]:
        """The changes of this instant: they stand before the row with which the group leaves Stable. In a
        log they may be some milliseconds earlier."""
        found: list[Change] = []
        from_us = now_us - (LOGGED_BEFORE_US if self._history.is_imported else 0)
        for change in reversed(self._history.changes):
            if change.time_us < from_us:
                break
            found.append(change)
        return found[::-1]

    def _started(self, row: Row) -> None:
        self._history.subscriptions[row["member"]] = tuple(row.get("topics", ())), row
        if self._library:
            self._history.settings.libraries[row["member"]] = self._library

    def _name(self, row: Row) -> str:
        """The client id; of a trace with the coordinator's rows alone the instance id or member id: real
        clients often share a client id."""
        if self._has_member_rows or self._history.is_imported:
            return str(row.get("member") or self._names.get(row.get("member_id", ""), ""))
        return str(
            row.get("instance") or self._names.get(row.get("member_id", "")) or row.get("member_id", "")
        )


def _json_object(text: str) -> Mapping[str, Any]:
    """The JSON object of a row's detail; empty if it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
