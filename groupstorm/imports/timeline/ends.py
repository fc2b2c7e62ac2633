"""Finds how members went of which their own log, or their coordinator's, has no last word.

A process that died without a word died before its session, which others saw end. Of members of a classic
group that is empty now, the lines that follow may say how they went.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from groupstorm.history.unknown import DEATHS
from groupstorm.imports.provenance import Why
from groupstorm.imports.source import Observation
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.imports.timeline.reasons import UNKNOWN
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.events.member import MemberCrashed
from groupstorm.trace.events.streams import InstanceGone, TaskSuspended
from groupstorm.trace.schema import Source

_NOTICED: Final = "the member's own log ends here without a word: it died between its last line and this one"
_DIED: Final = (
    "the member's own log ends here without a word; its session of {session:g} s ran from its last "
    "heartbeat, and the next one was due {heartbeat:g} s later{assumed}: it died in between, "
    "the middle is taken"
)
_UNKNOWN: Final = (
    "when {client} died (a log says only by when it had), so its partitions were un-owned for longer than is "
    "counted: add the client's configuration (session.timeout.ms; Java logs it) and the broker's log, or "
    "__consumer_offsets"
)
_ASSUMED: Final = " (no log says how much, this is usual)"
#: What all client libraries take as heartbeat.interval.ms by default, and the usual part of the session.
_HEARTBEAT_MS: Final = 3_000
_HEARTBEATS_OF_A_SESSION: Final = 3
_SETTING_MAX_MS: Final = (1 << 31) - 1
#: So much later than the session ends a coordinator may notice it.
_LATE_US: Final = 200_000


_Event = MemberCrashed | TaskSuspended | InstanceGone


class _Death(NamedTuple):
    """``before``: the last line of the process. ``noticed``: the first line by which it was dead; ``step``:
    before or after what that line says."""

    event: _Event
    before: Observation
    noticed: Observation
    step: int


class Deaths:
    """The deaths of one client's processes. ``configured``: what its log has said of its settings.

    Rows are made when no more lines come: a later line may say how long the session was.
    """

    def __init__(self, group: GroupRecord, client: str) -> None:
        self._group = group
        self._client = client
        self.configured = group.configured.setdefault(client, {})
        #: Member id -> its death, which a new process shows; the end of its session may still come.
        self._open: dict[str, _Death] = {}
        #: Each with the line that says its session has expired, if there is one.
        self._known: list[tuple[_Death, Observation | None]] = []

    def removed(self, event: _Event, before: Observation, line: Observation, cause: str) -> None:
        """The coordinator removes a member that has died. ``event``: its death, or what follows from it."""
        self._add(_Death(event, before, line, 0), line, cause)

    def succeeded(self, event: MemberCrashed, before: Observation, line: Observation) -> None:
        """A new process of the client starts, and the one before it has not ended in order."""
        self.removed_later(event.member_id, line, "")  # an earlier one of no known id, too
        self._open[event.member_id] = _Death(event, before, line, -1)

    def removed_later(self, member_id: str, line: Observation, cause: str) -> bool:
        """The coordinator removes a member: whether it is one whose successor has started already."""
        death = self._open.pop(member_id, None)
        if death is not None:
            self._add(death, line, cause)
        return death is not None

    def finish(self) -> None:
        """No more lines come."""
        for death, expired in (*self._known, *((death, None) for death in self._open.values())):
            self._tell(death, expired)

    def _add(self, death: _Death, removed: Observation, cause: str) -> None:
        self._known.append((death, removed if cause == Cause.SESSION_EXPIRED else None))

    def _tell(self, death: _Death, expired: Observation | None) -> None:
        event, before, noticed, step = death
        member_id = event.member_id if isinstance(event, MemberCrashed) else ""
        session_ms = None if expired is None else self._session_ms(member_id)
        if expired is None or session_ms is None:
            why = Why([before, noticed], _NOTICED, before.time_us, noticed.time_us, inferred=True)
            self._group.emit(noticed, event, why, Source.MEMBER, step)
            sentence = _UNKNOWN.format(client=self._client)
            self._group.is_missing(self._group.here(noticed), DEATHS, None, sentence)
            return
        heartbeat_ms = self._setting_ms("heartbeat.interval.ms")
        taken_ms = heartbeat_ms or min(_HEARTBEAT_MS, session_ms // _HEARTBEATS_OF_A_SESSION)
        heard_us = expired.time_us - session_ms * 1000
        earliest_us = min(max(before.time_us, heard_us - _LATE_US), noticed.time_us)
        latest_us = min(max(earliest_us, heard_us + taken_ms * 1000), noticed.time_us)
        rule = _DIED.format(
            session=session_ms / 1000, heartbeat=taken_ms / 1000, assumed="" if heartbeat_ms else _ASSUMED
        )
        why = Why([before, noticed, expired], rule, earliest_us, latest_us, inferred=True)
        died = noticed._replace(time_us=(earliest_us + latest_us) // 2)
        self._group.emit(died, event, why, Source.MEMBER)

    def _session_ms(self, member_id: str) -> int | None:
        group, own = self._group, self._setting_ms("session.timeout.ms")
        if group.is_modern:
            return own
        others = group.session_timeouts_of_clients_ms.get(self._client, ())  # of the client's other processes
        same = next(iter(others)) if len(others) == 1 else None
        return group.session_timeouts_ms.get(member_id) or own or same

    def _setting_ms(self, name: str) -> int | None:
        """A setting of the client; in a group of the newer protocols it is the broker's."""
        text = self.configured.get(name, "")
        if self._group.is_modern:
            kind = "streams" if self._group.is_streams else "consumer"
            text = self._group.broker_settings.get(f"group.{kind}.{name}", "")
        number = int(text[:12]) if text.isascii() and text.isdecimal() else 0
        return number if 0 < number <= _SETTING_MAX_MS else None


_EMPTY = "cause: the group is empty, and no line says how the member went"
_SAID = "time: the group is empty by then; the line that says how the member went comes after it"


class EmptiedGroup:
    """Takes the members that a group had when its coordinator found it empty.

    Before Kafka 4 the coordinator logs that the group is empty, and then who has left.
    """

    def __init__(self, group: GroupRecord) -> None:
        self._group = group
        #: Member id -> the line about the empty group, and the static id.
        self._gone: dict[str, tuple[Observation, str | None]] = {}

    def took(self, member_id: str, instance: str | None, line: Observation) -> None:
        """The group is empty, so the member is out of it."""
        self._gone[member_id] = line, instance

    def said(self, member_id: str, line: Observation, cause: str) -> bool:
        """A line says how a member went; whether it is one of these."""
        if member_id not in self._gone:
            return False
        self._remove(member_id, line, str(cause), _SAID)
        return True

    def settle(self) -> None:
        """No line says how the others went."""
        for member_id in [*self._gone]:
            self._remove(member_id, None, UNKNOWN, _EMPTY)

    def _remove(self, member_id: str, said: Observation | None, cause: str, rule: str) -> None:
        group, (line, instance) = self._group, self._gone.pop(member_id)
        name = group.members.name(member_id, instance)
        event = events.MemberRemoved(group.name, name, member_id, instance, group.generation, cause)
        why = Why([line] if said is None else [line, said], rule, inferred=True)
        group.emit(line, event, why, step=-1)
        group.tell_removal(member_id, group.here(line), cause)
