"""From the rows of one group to its `History`: rebalances, changes of membership, incidents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from groupstorm.explain.epochs import Epochs
from groupstorm.explain.history import COORDINATOR_KINDS, History, Incident
from groupstorm.explain.incidents import Refusals, incident_of
from groupstorm.explain.stuck_records import StuckRecords, Uncommitted
from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.figures.totals import Totals
from groupstorm.history.gaps import ClosedGap, Handler, OwnershipListener
from groupstorm.history.phases import SLOW_US
from groupstorm.history.rebalances import (
    Absence,
    Change,
    ChangeKind,
    Memberships,
    Rebalance,
    Round,
    Row,
    SlowRevocation,
)
from groupstorm.history.unknown import json_object
from groupstorm.trace.events.group_states import Cause, GroupState
from groupstorm.trace.rows import TraceEntry

#: A member-updated round that begins so soon after the last one is its second half if no row says what the
#: member revoked: a cooperative member joins again with its next heartbeat (3 s by default), or at once.
SECOND_ROUND_US: Final = 10_000_000
#: A leader that does not answer with a plan is out of its session before, on the whole.
LOST_US: Final = 60_000_000
#: A broker logs why a round begins so long before the round itself, at most, and with whose removal it ends.
LOGGED_BEFORE_US: Final = 100_000
#: No group has a generation in less time, on the whole; and logs may print no more of a time than its second.
GENERATION_MIN_US: Final = 10_000
PRINTED_US: Final = 1_000_000

UNREVOKED: Final = "UNREVOKED_PARTITIONS"
_SECOND_HALF: Final = frozenset({Cause.MEMBER_UPDATED, Cause.LEADER_REJOINED})


class Recorder:
    """Takes the rows of one group, in their order; `finish` gives the history and the sums of its figures.

    ``from_us``: rebalances, changes, incidents and ``figures`` count from then on. ``first_us``: of the
    group's first row. ``listeners``: hear what the figures make of each row, but only of gaps that count.
    """

    def __init__(
        self, group: str, from_us: int, first_us: int, listeners: Sequence[OwnershipListener] = ()
    ) -> None:
        self._history = History(group, from_us, first_us=first_us)
        self._listeners = listeners
        self.figures = FiguresAccumulator(from_us, self)
        self._epochs = Epochs(self._history)
        self._stuck = StuckRecords()
        self._refusals = Refusals()
        #: The place of the last row's first line, and the generation that a row had last.
        self._place = ""
        self._given_us: dict[str, int] = {}
        self._generation: int | None = None
        self._generation_us = 0
        #: Whether rows say what members own: then a second round shows by what its member has given up.
        self._says_owners = False
        self.members = Memberships()
        #: Members of a consumer group that have to give up partitions: the row since when.
        self._revoking: dict[str, Row] = {}
        self._round: Round | None = None
        self._absences: dict[tuple[str, int], Absence] = {}
        self._last_removed: Row | None = None
        #: A member's own row that it leaves, as it did not poll in time: no round has begun since.
        self._left: Row | None = None
        #: The client library of all members of a storm; "" if it has several.
        self._library = ""
        self._handlers: Mapping[str, Callable[[Row], None]] = {
            "scenario_started": self._scenario_started,
            "group_imported": self._imported,
            "evidence_missing": self._missing,
            "members_gone": self._members_gone,
            "work_assigned": self._work_assigned,
            "member_configured": self._configured,
            "group_state_changed": self._state_changed,
            "member_removed": self._removed,
            "member_started": self._started,
            "join_parked": self._join_parked,
            "partitions_revoked": self._partitions_revoked,
            "sync_answered": self._sync_answered,
            "member_reconciled": self._reconciled,
            "rejoin_requested": self._attempted,
            "partitions_assigned": self._given,
        }

    def add(self, row: Row, entry: TraceEntry) -> None:
        """Take the next row, and its event."""
        history, now_us = self._history, row["time_us"]
        history.last_us = now_us
        if row["source"] == "member":
            history.has_member_rows = self._says_owners = self.members.by_clients = True
            if row.get("evidence") and "member" in row:
                history.settings.logs.setdefault(row["member"], row["evidence"][0].rpartition(":")[0])
        self.members.learn(row)
        handler = self._handlers.get(row["event"])
        if handler is not None:
            handler(row)
        for change in self.members.changes(row):
            self._changed(change)
        self._see_open(row)
        place = next(iter(row.get("evidence") or ()), self._place)
        history.lines += place != self._place and now_us >= history.from_us
        self._place = place
        name = self.members.name(row)
        is_repeated = self._refusals.add(row, name)
        self._epochs.add(row, name)
        self._stuck.add(row, self.figures)
        self.members.see_alive(row)
        kind = None if is_repeated else incident_of(row)
        if row["source"] != "world" and (kind not in COORDINATOR_KINDS or kind == "loaded"):
            history.active_us = now_us
        if kind is not None and now_us >= history.from_us:
            history.add_incident(kind, Incident(now_us, name, row))
        self.figures.add(*entry)

    # -- owners (`OwnershipListener`) --------------------------------------------------------------

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {kind: handler for one in self._listeners for kind, handler in one.handlers.items()}

    def interval_begun(self, partition: str, member: str, position: int | None) -> None:
        for one in self._listeners:
            one.interval_begun(partition, member, position)

    def interval_ended(self, partition: str, member: str, position: int | None) -> None:
        for one in self._listeners:
            one.interval_ended(partition, member, position)

    def gap_closed(self, gap: ClosedGap) -> None:
        """A gap belongs to the rebalance that ended it, if one was under way."""
        if gap.gap_us and gap.to_us > self._history.from_us:
            rounds = self._epochs if self._epochs.is_counting else self._history
            (rounds.rebalance_of(gap) or self._absence_of(gap)).add_gap(gap)
            for one in self._listeners:
                one.gap_closed(gap)

    def _absence_of(self, gap: ClosedGap) -> Absence:
        key = gap.old_owner or "", gap.from_us
        absence = self._absences.get(key)
        if absence is None:
            absence = self._absences[key] = Absence(*key, gap.to_us)
            self._history.absences.append(absence)
        return absence

    def count_from(self, from_us: int) -> None:
        """The history counts from ``from_us`` on, a time after all rows so far."""
        self._history.from_us = from_us
        self.figures.count_from(from_us)

    def forget(self) -> None:
        """Drop what the history holds of the rows so far, but for the last rebalance, which may go on."""
        history = self._history
        kept = self._changes_at(history.last_us)
        for change in history.changes[: len(history.changes) - len(kept)]:
            if change.kind is ChangeKind.WENT:
                self.members.forget(change)
        history.changes = kept
        history.rebalances = history.rebalances[-1:]
        history.absences, history.slow_revocations = [], []
        history.incidents, history.uncommitted = {}, Uncommitted()
        self._refusals.forget()
        history.generations_hidden = 0
        history.attempts.clear()
        history.assignments.clear()
        self._absences.clear()
        self._stuck.forget()

    def finish(self, end_us: int) -> tuple[History, Totals]:
        """The trace, or the window, ends at ``end_us``. What began before the window and cost nothing in
        it is left out."""
        history = self._history
        totals = self.figures.totals(end_us)  # which closes the gaps that are open
        history.figures, history.unowned_is_least = totals.figures(), totals.unowned_is_least
        history.from_scratch_down_us = totals.tasks.from_scratch_down_us
        self._epochs.finish()
        if self._round is not None and self._round.open_us and self._round.last is not None:
            self._see_removal_at(self._round, self._round.last)
        history.work.finish(end_us)
        history.uncommitted.finish()
        history.to_us = end_us
        history.without_members = [one for one in totals.without_members if one[1] > history.from_us]
        history.rebalances = [
            one for one in history.rebalances if one.begun_us >= history.from_us or one.unowned_us
        ]
        history.refusals = [
            one for one in self._refusals.found if int(one.last["time_us"]) >= history.from_us
        ]
        history.repeated, history.stood = self._stuck.repeated(), self._stuck.stood()
        return history, totals

    def _scenario_started(self, row: Row) -> None:
        scenario = json_object(row["detail"])
        self._history.scenario = str(scenario.get("name", ""))
        settings = scenario.get("settings")
        self._history.settings.of_group = settings if isinstance(settings, dict) else {}
        profiles = self._history.settings.get("client_profile")
        if isinstance(profiles, list) and len(profiles) == 1:
            self._library = str(profiles[0])

    def _imported(self, row: Row) -> None:
        self._history.is_imported = self.members.by_clients = True
        self._history.began = str(json_object(row["detail"]).get("began", ""))

    def _missing(self, row: Row) -> None:
        self._history.missing.setdefault(row["cause"], row["detail"])

    def _configured(self, row: Row) -> None:
        known = self._history.settings.of_member.setdefault(self.members.name(row), {})
        known.update({name: str(value) for name, value in json_object(row["detail"]).items()})

    def _members_gone(self, row: Row) -> None:
        self._history.work.finish(row["time_us"])

    def _work_assigned(self, row: Row) -> None:
        name = self.members.name(row)
        delay_ms = self._history.settings.number("scheduled.rebalance.max.delay.ms", name)
        self._history.work.assigned(row, name, None if delay_ms is None else 1000 * delay_ms)

    # -- rounds ------------------------------------------------------------------------------------

    def _state_changed(self, row: Row) -> None:
        state, now = row["state"], self._round
        self._see_generation(row)
        if self._history.began_empty is None:
            self._history.began_empty = row["previous_state"] in (GroupState.EMPTY, "unknown")
        self._history.is_empty = state == GroupState.EMPTY
        if state == GroupState.PREPARING_REBALANCE:
            self._begin(row)
        elif now is not None and state == GroupState.COMPLETING_REBALANCE:
            now.joined, now.members = row, row.get("count")
            self._see_removal_at(now, row)
        elif now is not None and state in (GroupState.STABLE, GroupState.EMPTY):
            now.ended, now.members = row, row.get("count", now.members)
            self._round = self._left = None

    def _see_removal_at(self, one: Round, row: Row) -> None:
        """Whether the join phase ended with a removal, or the rows do. A log tells one after the other."""
        removed, within_us = self._last_removed, LOGGED_BEFORE_US if self._history.is_imported else 0
        if removed is not None and one.begun_us < removed["time_us"] >= row["time_us"] - within_us:
            one.removed_at_end, one.removed_member = removed, self.members.name(removed)

    def _see_generation(self, row: Row) -> None:
        """Count the generations that the logs skip. More than there was time for are of another group that
        has the same name in the logs."""
        history, generation = self._history, row.get("generation")
        before, self._generation = self._generation, generation
        lasted_us, self._generation_us = row["time_us"] - self._generation_us, row["time_us"]
        if before is None or generation is None or not history.is_imported:
            return
        begins = row["state"] in (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY)
        hidden = max(0, generation - before - begins)
        is_possible = hidden * GENERATION_MIN_US <= lasted_us + PRINTED_US
        if is_possible and not self._epochs.is_counting and row["time_us"] >= history.from_us:
            history.generations_hidden += hidden

    def _begin(self, row: Row) -> None:
        rebalances, began = self._history.rebalances, Round(row, row["cause"], self._culprit(row))
        continues = bool(rebalances) and self._continues(rebalances[-1], row)
        changes = self._changes_at(row["time_us"], row.get("member_id") or "")
        self._history.begin_round(began, changes, continues)
        self._round = began

    def _see_open(self, row: Row) -> None:
        """A row after the join phase does not show its round open in an import: logs may lack the end."""
        now = self._round
        if now is None or row["source"] == "world":
            return
        if now.joined is None or now.joined is row or not self._history.is_imported:
            now.last = row

    def _is_lost(self, now: Round, row: Row) -> bool:
        """Whether the logs seem to lack the end of the round: they say nothing of it for too long."""
        lasted_us = row["time_us"] - (now.joined or now.begun)["time_us"]
        was_stable = row.get("previous_state") == GroupState.STABLE
        return self._history.is_imported and (was_stable or lasted_us > LOST_US)

    def _continues(self, before: Rebalance, row: Row) -> bool:
        """Whether a round belongs to the rebalance before it."""
        now = self._round
        if now is not None:  # the last round did not end, or its end is not in the logs
            is_lost = self._is_lost(now, row) and row["cause"] != Cause.SYNC_TIMEOUT
            now.last = now.joined or now.begun if is_lost else now.last
            return not is_lost
        if row["cause"] not in _SECOND_HALF or before.ended_us is None:
            return False
        joined = before.rounds[-1].joined
        if joined is not None and joined.get("count") == 1:
            return False  # there is nobody to give partitions to
        # a thread of Kafka Streams joins again when others have given up what is to be its own
        due = self._history.incidents.get("follow-up", ())[-1:]
        waits = any(
            one.row["cause"] == "tasks-change-owner" and one.time_us >= before.ended_us for one in due
        )
        if waits or self.figures.has_revoked(row.get("member_id", "")):
            return True
        history = self._history  # until a loaded group's first round no row says what its members own
        was_loaded = any(one.time_us == history.first_us for one in history.of_kind("loaded"))
        if (
            not history.is_imported
            and self._says_owners
            and not (was_loaded and len(history.rebalances) == 1)
        ):
            return False
        return bool(row["time_us"] - before.ended_us <= SECOND_ROUND_US)

    def _culprit(self, row: Row) -> str:
        member_id = str(row.get("member_id", ""))
        if member_id:
            return self.members.name_of(member_id)
        changes = self._changes_at(row["time_us"])
        known = [one for one in changes if one.cause != "unknown"] or changes[:1] * (len(changes) == 1)
        if known:
            return known[-1].member
        left = self._left  # without the coordinator's rows a round shows by the other members' heartbeats
        is_near = left is not None and row["time_us"] - left["time_us"] <= SECOND_ROUND_US
        return self.members.name(left) if left is not None and is_near and row["cause"] == "unknown" else ""

    def _join_parked(self, row: Row) -> None:
        now = self._round
        if now is not None:
            if now.last_join is not None:
                now.others_joined_us = now.last_join["time_us"]
            now.last_join, now.last_joiner = row, self.members.name(row)

    def _partitions_revoked(self, row: Row) -> None:
        if row["time_us"] >= self._history.from_us:
            self._history.uncommitted.add(self.members.name(row), row)

    def _attempted(self, row: Row) -> None:
        if row.get("cause") == "poll-timeout":
            self._left = row
        if row["time_us"] >= self._history.from_us:
            self._history.attempts[self.members.name(row)] += 1

    def _given(self, row: Row) -> None:
        """Some clients have a row for each partition: those of one instant are one assignment."""
        self._history.uncommitted.taken(row)
        member, now_us = self.members.name(row), row["time_us"]
        _, start = self._history.subscriptions.get(member, ((), {}))
        if start.get("instance") and now_us - start["time_us"] <= SECOND_ROUND_US and self._round is None:
            return  # a static member that comes back has what it had
        is_new = now_us - self._given_us.get(member, -LOGGED_BEFORE_US) >= LOGGED_BEFORE_US
        if is_new and now_us >= self._history.from_us:
            self._history.assignments[member] += 1
        self._given_us[member] = now_us

    def _sync_answered(self, row: Row) -> None:
        self._says_owners = self._says_owners or "partitions" in row

    def _reconciled(self, row: Row) -> None:
        """A member of a consumer group revokes from UNREVOKED_PARTITIONS on, until it says that it has."""
        member_id = row["member_id"]
        since = self._revoking.pop(member_id, None)
        if row.get("state") == UNREVOKED:
            self._revoking[member_id] = since or row
        elif since is not None and row["time_us"] - since["time_us"] >= SLOW_US:
            self._history.slow_revocations.append(SlowRevocation(self.members.name(row), since, row))

    # -- members -----------------------------------------------------------------------------------

    def _removed(self, row: Row) -> None:
        self._last_removed = row
        self._history.work.gone(self.members.name(row), row["time_us"])

    def _changed(self, change: Change) -> None:
        history = self._history
        if change.time_us >= history.from_us:
            history.changes.append(change)
        else:
            history.members_before += 1 if change.kind is ChangeKind.CAME else -1
        history.is_empty = history.is_empty and change.kind is not ChangeKind.CAME
        own, client = change.member, change.row.get("member", "")
        if own == change.member_id and client not in own:
            history.settings.of_member.setdefault(own, {})["client.id"] = client
        self._epochs.changed(change)
        now = self._round
        if now is not None and (now.joined is None or not self._is_lost(now, change.row)):
            history.rebalances[-1].changes.append(change)
            if not now.member and change.cause == now.cause == Cause.SESSION_EXPIRED:
                now.member = change.member  # a live run names it when the round has its members

    def _changes_at(self, now_us: int, went: str = "") -> list[Change]:
        """The changes of this instant: they stand before the row with which the group leaves Stable. In a
        log they may be some milliseconds earlier, or more if the row names the member that went."""
        found: list[Change] = []
        from_us = now_us - (LOGGED_BEFORE_US if self._history.is_imported else 0)
        for change in reversed(self._history.changes):
            is_named = change.member_id == went and change.row["event"] == "member_removed"
            if change.time_us < from_us and not is_named:
                break
            found.append(change)
        return found[::-1]

    def _started(self, row: Row) -> None:
        self._history.subscriptions[row["member"]] = tuple(row.get("topics", ())), row
        if self._library:
            self._history.settings.libraries[row["member"]] = self._library
