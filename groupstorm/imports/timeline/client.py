"""One member, as its own log tells it: when it joins, what it owns, why it joins again, when it leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Final

from groupstorm.imports.provenance import Why
from groupstorm.imports.source import Observation
from groupstorm.imports.timeline.group import NULL
from groupstorm.imports.timeline.member import Member
from groupstorm.imports.timeline.part import Handlers
from groupstorm.imports.timeline.reasons import (
    NO_OFFSET,
    REFUSED,
    REJOIN_REASONS,
    REVOKED,
    UNKNOWN,
    offset_reset,
    refusal,
    rejoin_cause,
)
from groupstorm.imports.timeline.rounds import Round
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import imported
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.schema import Source

#: Settings of a client that say how its group behaves.
_SETTINGS: Final = (
    *("session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms"),
    *("partition.assignment.strategy", "group.protocol", "group.instance.id", "client.rack"),
    *("scheduled.rebalance.max.delay.ms", "rebalance.timeout.ms"),
)

#: An answer that comes sooner did not wait for other members.
_AT_ONCE_US: Final = 100_000
_RETURNED = "member: a new process of the static member is in the generation of the former one"
_ASKED = "the coordinator has the JoinGroup after the member says that it sends it"
#: The cause that makes a member leave without being closed.
TOO_SLOW: Final = "poll-timeout"
_KEPT: Final = "partitions: with those of its assignment that it had before the log begins"
_CLOSED_WITH_THREAD: Final = "its thread of Kafka Streams has shut down, and has nothing any more"
_AT_ACKNOWLEDGEMENT = "the member has what it was told to add when it acknowledges"
#: The largest scheduled.rebalance.max.delay.ms, for which the work of a worker that has gone may wait.
_DELAY_MAX_MS: Final = (1 << 31) - 1
#: What a worker's line has in the place of an error: the leader has another configuration than the worker.
_WORK_ERRORS: Final = {"0": None, "1": "CONFIG_MISMATCH"}


class ClientMember(Member):
    """Takes the lines of one client of one group, in the order of time."""

    # -- what it is ------------------------------------------------------------------------------

    def _config(self, line: Observation) -> None:
        if self._group.is_connect and line.kind == "config":
            return
        settings: Mapping[str, str] = line.fields["settings"]
        said = {name: settings[name] for name in _SETTINGS if settings.get(name, "null") != "null"}
        if said:
            self._deaths.configured.update(said)
            self._configured(line, said)

    def _configured(self, line: Observation, said: Mapping[str, str]) -> None:
        event = imported.MemberConfigured(self._group.name, self._client, json.dumps(said))
        self._group.emit(line, event, source=Source.WORLD)

    def _subscribed(self, line: Observation) -> None:
        topics = tuple(line.fields["topics"])
        self._group.clients[self._client] = True
        instance = line.fields.get("instance")
        self._emit(line, member_events.MemberStarted(self._group.name, self._client, instance, topics))

    # -- joining ---------------------------------------------------------------------------------

    def _rejoin(self, line: Observation) -> None:
        found = REJOIN_REASONS.find(line.fields.get("reason", ""))
        if found is not None:
            self._learn(found.fields.get("member_id"))
        self._ask(line, rejoin_cause(line))

    def _rejected(self, line: Observation) -> None:
        self._ask_outside(line, line.fields["error"])

    def _reset(self, line: Observation) -> None:
        found = REJOIN_REASONS.find(line.fields["reason"])
        if found is not None and found.kind == "error":
            self._losing = found.fields["error"]

    def _poll_timeout(self, line: Observation) -> None:
        # librdkafka names the interval that is over; whether it joins again it logs with `debug` only
        interval_us = line.fields.get("ms", 0) * 1_000
        last = self._asked_last
        is_next = interval_us and last is not None and line.time_us - last.time_us >= interval_us
        if self._losing != TOO_SLOW or is_next:
            self._losing, self._is_away = TOO_SLOW, True
            if interval_us:
                self._configured(line, {"max.poll.interval.ms": str(line.fields["ms"])})
            self._ask(line, TOO_SLOW)

    def _joining(self, line: Observation) -> None:
        if self._is_away:  # by its own fault it was in no round until it polls again
            self._asked, self._begun, self._is_away = None, None, False
        self._asked, self._asked_last = self._asked or line, line
        self._begun = self._begun or line
        if self._member_id and self._generation is not None:
            event = events.JoinParked(self._group.name, self._client, self._member_id, self._generation)
            why = Why([line], _ASKED, line.time_us, None, inferred=True)
            self._group.emit(line, event, why)

    def _joined(self, line: Observation) -> None:
        """Before 2.8 the line comes with the assignment, and names no member."""
        fields = line.fields
        if "generation" not in fields:
            return
        self._see_process(line, fields.get("member_id"))
        self._learn(fields.get("member_id"))
        if self._generation is not None and fields["generation"] > self._generation + 1:
            # it joined rounds that the log does not have
            self._asked, self._begun = self._asked and self._asked_last, None
        self._generation = fields["generation"]
        self._given, self._updated, self._losing = None, False, UNKNOWN
        one = self._round(fields["generation"])
        if self._is_new:
            one.new[self._id()] = self._asked or line, fields.get("instance")
            self._see_return(one, line)
        one.joined[self._id()] = line
        self._is_new = False
        one.protocol = fields.get("protocol") or one.protocol
        asked = self._begun or self._asked
        if asked is not None and (one.requested is None or asked.time_us < one.requested.time_us):
            one.requested = asked._replace(order=self._group.first.order)
            is_second = self._reason == REVOKED
            one.began_by = self._id() if is_second else None
            one.begin_cause = str(Cause.MEMBER_UPDATED) if is_second else UNKNOWN
        self._asked, self._begun, self._reason = None, None, UNKNOWN
        if not fields.get("member_id"):
            one.synced[self._id()] = line

    def _see_return(self, one: Round, line: Observation) -> None:
        """A static member that comes back to a Stable group is answered at once, in its generation."""
        instance = line.fields.get("instance")
        if instance is None:
            return
        if self._asked is not None and line.time_us - self._asked.time_us <= _AT_ONCE_US:
            one.at_once.add(self._id())
        former = [member_id for member_id in one.joined if one.clients[member_id] == self._client]
        for old in former[-1:] if not self._group.has_coordinator else ():
            who = self._client, self._id(), old, instance, one.generation
            event = events.MemberReplaced(self._group.name, *who)
            self._group.emit(line, event, Why([one.joined[old], line], _RETURNED, inferred=True), step=-7)

    def _synced(self, line: Observation) -> None:
        """A line that names no generation is about the one that the member has joined."""
        self._learn(line.fields.get("member_id"))
        self._generation = line.fields.get("generation", self._generation)
        if self._generation is not None:
            self._round(self._generation).synced[self._id()] = line

    def _finished(self, line: Observation) -> None:
        one = self._group.round(line.fields["generation"])
        one.finished, one.leader = line, self._id()
        generation, count = line.fields["generation"], len(line.fields["assignments"])
        event = member_events.AssignmentComputed(
            *self._who(), generation, one.protocol or UNKNOWN, NULL, count
        )
        self._emit(line, event)

    # -- owning ----------------------------------------------------------------------------------

    def _given_all(self, line: Observation) -> None:
        self._given = line.fields["partitions"]

    def _update(self, line: Observation) -> None:
        self._given, self._updated = line.fields.get("assigned_partitions"), True

    def _assigned(self, line: Observation) -> None:
        added = line.fields.get("partitions", [])
        kept = [name for name in self._given or () if name not in self._owned and name not in added]
        self._own(line, added + kept, _KEPT if kept else "")

    def _revoked(self, line: Observation) -> None:
        if self._revoking is not None:
            if self._revoking[1] == line.fields["partitions"]:
                return  # two lines of one revocation: that it begins, and that the callback is called
            self._settle_revocation(line)
        self._revoking = line, line.fields["partitions"]

    def _lost(self, line: Observation) -> None:
        self._lose(line, line.fields["partitions"])
        self._losing = UNKNOWN

    # -- the end ---------------------------------------------------------------------------------

    def _leaving(self, line: Observation) -> None:
        self._learn(line.fields.get("member_id"))
        if "poll" in line.fields.get("reason", ""):
            self._poll_timeout(line)
        if self._losing != TOO_SLOW:
            self._close(line)
        self._tell_leaving(line)

    def _failed(self, line: Observation) -> None:
        self._fail(line, "FENCED_INSTANCE_ID")

    # -- what was refused ------------------------------------------------------------------------

    def _refused(self, line: Observation) -> None:
        self._learn(line.fields.get("member_id"))
        found = refusal(line)
        if found is not None:
            self._request_refused(line, *found)

    def _offset_reset(self, line: Observation) -> None:
        self._emit(line, offset_reset(self._group.name, self._client, line))

    # -- KIP-848 ---------------------------------------------------------------------------------

    def _transition(self, line: Observation) -> None:
        fields, self._group.is_modern = line.fields, True
        self._see_process(line, fields["member_id"])
        self._learn(fields["member_id"])
        before, state, epoch = fields["previous_state"], fields["state"], fields["epoch"]
        if epoch > 0:
            self._generation = epoch
        if state == "ACKNOWLEDGING" and self._adding is not None:
            self._own(line, self._adding, _AT_ACKNOWLEDGEMENT)
            self._adding = None
        elif state == "JOINING":
            self._ask(line, "first-join" if before == "UNSUBSCRIBED" else self._losing)
            self._losing = UNKNOWN
        elif state == "FENCED":
            self._losing = "FENCED_MEMBER_EPOCH"
        elif state == "LEAVING" and self._losing != TOO_SLOW:
            self._close(line)
        elif state == "FATAL":
            self._fail(line, self._refused_with)

    def _see_process(self, line: Observation, member_id: str | None) -> None:
        """A member id that comes back after another one belongs to another process of the same client id."""
        if not member_id or self._client in self._group.mixed:
            return
        if member_id in self._former_ids:
            self._former_ids.clear()
            self._group.see_mixed(self._client, line)
        if self._member_id not in ("", member_id):
            self._former_ids.add(self._member_id)

    def _reconciling(self, line: Observation) -> None:
        self._group.is_modern = True
        self._learn(line.fields.get("member"))
        self._adding = line.fields.get("added_partitions") or []

    # -- Kafka Streams ---------------------------------------------------------------------------

    def _tasks(self, line: Observation) -> None:
        """Only threads of a streams group say this, whose consumers log the default of group.protocol."""
        said = {"group.protocol": "streams"}
        self._group.is_streams = True
        if self._deaths.configured.get("group.protocol") != "streams":
            self._deaths.configured.update(said)
            self._configured(line, said)

    def _told_to_shut_down(self, line: Observation) -> None:
        self._is_told_to_close = line.kind == "thread-told"

    def _thread_closed(self, line: Observation) -> None:
        """A thread that was told to shut down closes its consumer, which leaves only if it says so."""
        if not self._is_told_to_close or self._has_left or self._group.is_streams:
            return
        self._give_up(line, [*self._owned], "close", _CLOSED_WITH_THREAD)
        self._ended = line
        if self._member_id:
            self._end_silently(self._member_id)

    # -- Connect ---------------------------------------------------------------------------------

    def _work_assigned(self, line: Observation) -> None:
        """The line has all connectors and tasks of a worker."""
        fields = line.fields
        error = _WORK_ERRORS.get(fields["error"], f"error {fields['error']}")
        revoked = [*fields["revokedConnectorIds"], *fields["revokedTaskIds"]]
        offset, delay_ms = fields["offset"], fields.get("ms")
        event = imported.WorkAssigned(
            *self._who(),
            fields.get("generation", self._generation),
            fields["leader"] or None,
            error,
            (*fields["connectorIds"], *fields["taskIds"]),
            None if delay_ms is None or delay_ms > _DELAY_MAX_MS else delay_ms * 1000,
            json.dumps({"revoked": revoked, "offset": int(offset) if offset else None}),
        )
        self._emit(line, event)

    def _config_behind(self, line: Observation) -> None:
        self._ask(line, line.kind)

    def _work_lost(self, line: Observation) -> None:
        """The worker stops all its work, because its coordinator is out of reach."""
        error = "COORDINATOR_NOT_AVAILABLE"
        self._emit(line, imported.WorkAssigned(*self._there(), None, error, (), None, "{}"))

    HANDLERS: ClassVar[Handlers] = {
        "config": _config,
        "subscribed": _subscribed,
        "rejoin": _rejoin,
        "rejected": _rejected,
        "reset": _reset,
        "poll-timeout": _poll_timeout,
        "joining": _joining,
        "joined": _joined,
        "synced": _synced,
        "finished": _finished,
        "given": _given_all,
        "assignment-update": _update,
        "assigned": _assigned,
        "revoked": _revoked,
        "lost": _lost,
        "leaving": _leaving,
        "failed-for-good": _failed,
        "fenced-exception": _failed,
        **dict.fromkeys(REFUSED, _refused),
        **dict.fromkeys(NO_OFFSET, _offset_reset),
        "transition": _transition,
        "reconciling": _reconciling,
        "tasks": _tasks,
        "thread-told": _told_to_shut_down,
        "thread-unclean": _told_to_shut_down,
        "thread-closed": _thread_closed,
        "worker-config": _config,
        "work-assigned": _work_assigned,
        "work-lost": _work_lost,
        "config-behind": _config_behind,
    }
