"""One member as its log shows it so far: its identity, its partitions, whether it joins again or has died."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from groupstorm.imports.provenance import Why
from groupstorm.imports.source import BY_HAND, Observation
from groupstorm.imports.timeline.ends import Deaths
from groupstorm.imports.timeline.group import NULL, GroupRecord
from groupstorm.imports.timeline.reasons import STARTS, TOLD, UNKNOWN, revocation_cause
from groupstorm.imports.timeline.rounds import Round
from groupstorm.trace.events import imported
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.schema import Source

_JOINS: Final = ("joining", "rd-joining")
_SILENT: Final = "its thread of Kafka Streams has shut down, and its log has no LeaveGroup"
_HAD: Final = "it had them before its log begins"
_NEVER_JOINED = "cause: no line says it, nor what came of it"
#: Kinds of lines by which a member's own log says that it has lost or given up what it had.
_OWN_END: Final = frozenset({"revoked", "lost", "rejected", "leaving", "poll-timeout", "reset"})


class Member:
    """Makes the rows of one client of one group; its subclasses know what lines say."""

    def __init__(self, group: GroupRecord, client: str) -> None:
        self._group = group
        self._client = client
        self._member_id = ""
        self._generation: int | None = None
        self._owned: dict[str, None] = {}
        #: The first line since the last generation by which it joins again, and the last one.
        self._asked: Observation | None = None
        self._asked_last: Observation | None = None
        #: The first of them that shows that a round has begun: it sends a JoinGroup, or was told to.
        self._begun: Observation | None = None
        #: Why it joins again, if that is the first line.
        self._reason = UNKNOWN
        #: It has left because it did not poll, and has not joined since.
        self._is_away = False
        self._given: list[str] | None = None
        #: Whether the log has what it owns: from the start of the process on, or from its next assignment.
        self._is_known = False
        self._updated = False
        #: Whether the log has the start of the process, and no round since.
        self._is_new = False
        #: A revocation whose cause the next line tells.
        self._revoking: tuple[Observation, list[str]] | None = None
        self._losing: str = UNKNOWN
        #: The error of the last request that was refused.
        self._refused_with: str = UNKNOWN
        self._adding: list[str] | None = None
        self._last: Observation | None = None
        self._former_ids: set[str] = set()
        #: The coordinator's line that removed the member, and the cause, if the own log has not said its end.
        self._removed: tuple[Observation, str] | None = None
        #: It has sent a LeaveGroup, by its own log; its thread of Kafka Streams was told to shut down.
        self._has_left = self._is_told_to_close = False
        #: The line by which its thread has ended, until it is known as which member.
        self._ended: Observation | None = None
        self._deaths = Deaths(group, client)

    def take(self, line: Observation, handler: Callable[[Any, Observation], None]) -> None:
        if self._revoking is not None and line.kind != "revoked":
            self._settle_revocation(line)
        if self._removed is not None and line.kind in _OWN_END:
            self._removed = None
        if line.kind in STARTS:
            self._begin_process(line)
        if self._client in self._group.mixed and not line.fields.get("member_id"):
            self._member_id = ""  # no line says whose it is
        self._last = line
        # a worker of Connect has consumers that join no group, as readers that assign by hand do not
        if line.kind != "config" and not line.fields.get(BY_HAND):
            self._group.clients.setdefault(self._client, False)
        handler(self, line)

    def finish(self) -> None:
        """No more lines come."""
        if self._revoking is not None:
            self._settle_revocation(None)
        if self._removed is not None:
            self._crashed(self._removed[0])
        first = self._asked
        if (
            first is not None
            and first is self._asked_last
            and first.kind in _JOINS
            and self._generation is None
        ):
            at = first._replace(order=self._group.first.order)
            self._emit(at, self._rejoins(UNKNOWN), Why([first], _NEVER_JOINED))
        if self._client not in self._group.mixed:  # that one starts says nothing of the others
            self._deaths.finish()

    def _begin_process(self, line: Observation) -> None:
        """Begin another process of the member, if it had one before: the lines that follow are about it."""
        if self._owned and self._client not in self._group.mixed:
            self._crashed(line)
        if self._member_id:
            self._former_ids.add(self._member_id)
        self._member_id, self._generation, self._given = "", None, None
        self._losing, self._asked, self._begun, self._updated = UNKNOWN, None, None, False
        self._is_new, self._is_known, self._has_left, self._is_told_to_close = True, True, False, False

    def removed_id(self, member_id: str, line: Observation, cause: str) -> None:
        """The coordinator has removed a member: unless its own log says how it ended, it had died."""
        if self._deaths.removed_later(member_id, line, cause):
            return
        if cause == Cause.SESSION_EXPIRED and member_id.startswith(f"{self._client}-"):
            self._end_silently(member_id)
        is_present = member_id == self._member_id and self._removed is None
        if is_present and self._owned and self._revoking is None:
            self._removed = line, cause

    def _crashed(self, line: Observation) -> None:
        """``line``: of the process after it, or of the coordinator, which has removed the member."""
        removed, self._removed = self._removed, None
        if not self._owned:
            return  # a later line has told how it ended
        before = self._last or line
        crashed = member_events.MemberCrashed(*self._there(), tuple(self._owned), NULL, NULL)
        if removed is None:
            self._deaths.succeeded(crashed, before, line)
        else:
            self._deaths.removed(crashed, before, *removed)
        self._owned.clear()

    def _tell_leaving(self, line: Observation) -> None:
        """The member's own log says that it has sent LeaveGroup."""
        if not self._group.has_coordinator and self._generation is not None and self._member_id:
            self._group.comings.left(line, self._client, self._member_id, self._generation)

    def _emit(self, line: Observation, event: Any, why: Why | None = None) -> None:
        self._group.emit(line, event, why or Why([line]), Source.MEMBER)

    # -- what it owns ----------------------------------------------------------------------------

    def _ask(self, line: Observation, cause: str) -> None:
        self._reason = cause if self._asked is None else self._reason
        self._asked, self._asked_last = self._asked or line, line
        if cause == TOLD:
            self._begun = self._begun or line
            if not self._is_known:
                self._group.running.add(self._client)
        rule = "cause: the line's reason is not one that is known" if cause == UNKNOWN else ""
        self._emit(line, self._rejoins(cause), Why([line], rule))

    def _rejoins(self, cause: str) -> member_events.RejoinRequested:
        group, client, _, generation = self._there()
        return member_events.RejoinRequested(group, client, self._member_id, generation, cause)

    def _ask_outside(self, line: Observation, cause: str) -> None:
        """It joins again, and loses what it has."""
        self._losing = cause
        self._ask(line, cause)

    def _own(self, line: Observation, added: list[str], rule: str = "") -> None:
        self._losing, self._is_known = UNKNOWN, True
        self._owned.update(dict.fromkeys(added))
        self._group.topics.taken(added, line)
        event = member_events.PartitionsAssigned(*self._there(), tuple(added), NULL, NULL)
        self._emit(line, event, Why([line], rule))
        if self._generation is not None and not self._group.is_modern:
            one = self._round(self._generation)
            self._replace_former(one)
            one.told[self._id()] = line, tuple(self._owned if self._given is None else self._given)

    def _round(self, generation: int) -> Round:
        """The round of a generation that it is in."""
        one = self._group.round(generation)
        one.clients[self._id()] = self._client
        return one

    def _replace_former(self, one: Round) -> None:
        """A static member that comes back in the same generation has the place of its former process."""
        for member_id in [*one.told]:
            is_there = {member_id, self._id()}
            is_former = one.clients[member_id] == self._client and member_id != self._id()
            if is_former and self._client not in self._group.shared and not is_there <= {*one.planned}:
                del one.told[member_id]

    def _settle_revocation(self, then: Observation | None) -> None:
        """``then``: the member's next line."""
        revoking, self._revoking = self._revoking, None
        if revoking is None:
            return
        line, partitions = revoking
        if not partitions and not self._member_id:
            return  # some clients log it before they join for the first time
        cause, rule = revocation_cause(line, then, self._updated or self._group.is_modern)
        self._emit(line, self._drop(line, partitions, cause), Why([line], rule))

    def _give_up(self, line: Observation, partitions: Sequence[str], cause: str, rule: str = "") -> None:
        """The line says that it owns these no more, if it names any."""
        if partitions:
            self._emit(line, self._drop(line, partitions, cause), Why([line], rule))

    def _drop(
        self, line: Observation, partitions: Sequence[str], cause: str, *, is_lost: bool = False
    ) -> Any:
        """It owns these no more: the event."""
        if partitions and not (self._is_known or is_lost):
            self._group.running.add(self._client)
            event = member_events.PartitionsAssigned(*self._there(), tuple(partitions), NULL, NULL)
            self._group.emit(line, event, Why([line], _HAD, None, line.time_us, True), Source.MEMBER, -1)
        self._group.topics.given_up(partitions, line)
        for name in partitions:
            self._owned.pop(name, None)
        kind = member_events.PartitionsLost if is_lost else member_events.PartitionsRevoked
        return kind(*self._there(), tuple(partitions), NULL, NULL, NULL, cause)

    def _lose(self, line: Observation, partitions: Sequence[str]) -> None:
        self._emit(line, self._drop(line, partitions, self._losing, is_lost=True))

    def _close(self, line: Observation) -> None:
        self._has_left = True
        self._emit(line, member_events.MemberClosed(*self._who(), Cause.LEFT))

    def _end_silently(self, member_id: str) -> None:
        """Its thread of Kafka Streams, if it has ended, was this member: it has closed without LeaveGroup."""
        if self._ended is not None:
            event = member_events.MemberClosed(self._group.name, self._client, member_id, "silent")
            self._group.emit(self._ended, event, Why([self._ended], _SILENT), Source.MEMBER, 1)
            self._ended = None

    def _fail(self, line: Observation, error: str) -> None:
        self._emit(line, member_events.MemberFailed(*self._who(), error))

    # -- who it is, and what it is answered ------------------------------------------------------

    def _request_refused(self, line: Observation, api: str, error: str) -> None:
        name, member_id = self._group.name, self._member_id or None
        self._refused_with = error
        self._emit(line, imported.RequestRefused(name, self._client, member_id, self._generation, api, error))

    def _learn(self, member_id: str | None) -> None:
        """``member_id``: "" or None if the line does not say it."""
        if member_id:
            self._member_id = member_id
            self._group.members.learn(member_id, self._client)
            self._group.all_ids[member_id] = True

    def _id(self) -> str:
        """Its member id; the client id as long as no line says it."""
        return self._member_id or self._client

    def _who(self) -> tuple[str, str, str]:
        """The group, the client and the member, with which its rows begin."""
        return self._group.name, self._client, self._id()

    def _there(self) -> tuple[str, str, str, Any]:
        """`_who`, and its generation: null in a row as long as no line says it."""
        return *self._who(), self._generation
