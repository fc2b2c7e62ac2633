"""When each process started, stopped, died and stood still, from the rows about it.

A row of the process itself says it, or a rule infers it from the rows of the coordinator. What neither says
becomes a problem: a scenario cannot repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from groupstorm.storms.scenario.setting_names import Known, inferred, observed
from groupstorm.trace.events.group_states import Cause
from groupstorm.whatif import facts as signs
from groupstorm.whatif.facts import UNKNOWN, Reading, Sign

#: The time of what was before the first row of the trace.
BEFORE: Final = -1
STOP: Final = "stop"
CRASH: Final = "crash"
PAUSE: Final = "pause"
BUSY: Final = "busy"
#: The cause of `member_paused` of a process that stands still as a whole; with the other one it works on.
_WHOLE_PROCESS: Final = "pause"
_POLL_TIMEOUT: Final = "poll-timeout"
#: Causes of `member_removed` of a member that did not join, or sync, in time.
_TOO_LATE: Final = frozenset({Cause.REBALANCE_TIMEOUT, Cause.SYNC_TIMEOUT})
#: Why a member that runs has joined: it has just started, or it follows its group.
_OF_EVERY_MEMBER: Final = frozenset({"first-join", "group-rebalancing", "revoked-partitions", UNKNOWN})
#: Rows with which a process may begin; before any other one it was there.
_OF_A_BEGINNING: Final = frozenset({signs.STARTED, signs.JOINED, signs.REPLACED})
#: Meanings of the next row of a process after its member has left: its end, or its going on.
_TELL_OF_THE_END: Final = frozenset({signs.CLOSING, signs.CLOSED, signs.CRASHED, signs.STARTED, signs.LOST})
#: A member that joins so much later than the next heartbeat and poll() allow was at work.
_LATE_US: Final = 2_000_000
#: A process that starts joins within milliseconds. If its first JoinGroup comes so much later, it looked for
#: its coordinator or was held up before; a scenario's process joins as soon as it starts.
_FIRST_JOIN_US: Final = 50_000
_FIRST_JOIN: Final = "first-join"
_FIRST_JOIN_GROUP: Final = "its first JoinGroup"
_FIRST_ROUND: Final = "the first round that it is in"
#: Kafka's consumer since 3.0 asks for a round when it is closed, and never joins it.
_LEFT_GROUP: Final = "left-group"
#: Logs have whole milliseconds, and the coordinator's timers have ticks.
_TICK_US: Final = 1_000_000
#: The source that says what a trace does not.
_BROKER: Final = "the log of the broker, which expires its session,"
_OWN_LOG: Final = "the log of the member itself"
_EITHER_LOG: Final = "the log of the broker, or that of the member itself,"


class Moment(NamedTuple):
    """When something happened to a process, and how that is known. ``do``: the step that repeats it."""

    at: Known
    do: str
    for_us: int = 0

    @property
    def at_us(self) -> int:
        return int(self.at.value)


@dataclass
class Stint:
    """One incarnation of a process. ``end`` None: it runs when the trace ends."""

    name: str
    start: Moment
    end: Moment | None = None


@dataclass
class Lives:
    """All incarnations by their starts, and the times in which processes stood still."""

    stints: list[Stint] = field(default_factory=list)
    pauses: list[tuple[str, Moment]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Timeouts(NamedTuple):
    """The timeouts of one member, in microseconds."""

    session_us: int
    heartbeat_us: int
    max_poll_interval_us: int


def lives_of(reading: Reading, timeouts: Callable[[str], Timeouts]) -> Lives:
    """The lives of all processes of a trace."""
    found = Lives()
    for name in sorted(reading.signs):
        _Life(name, reading, timeouts(name), found).read(reading.signs[name])
    found.stints.sort(key=lambda stint: stint.start.at_us)
    found.pauses.sort(key=lambda pause: pause[1].at_us)
    return found


class _Life:
    """Reads the signs of one process in their order."""

    def __init__(self, name: str, reading: Reading, timeouts: Timeouts, lives: Lives) -> None:
        self._name = name
        self._timeouts = timeouts
        self._lives = lives
        self._stint: Stint | None = None
        self._last: Sign | None = None
        #: The member ids that the incarnation has had.
        self._ids: set[str] = set()
        self._following: Sequence[Sign] = ()
        self._says_itself = any(sign.kind == signs.STARTED for sign in reading.signs[name])
        #: The coordinator removed the member, and nothing has said yet why its process was silent.
        self._expired: Sign | None = None
        self._late: Sign | None = None
        #: It has given up all its partitions, and no later sign says that it joins again.
        self._gave_up: Sign | None = None
        self._paused_until_us = 0
        self._began_empty = reading.began_empty
        self._is_static = name in reading.instances
        self._is_storm = reading.is_storm
        self._handlers: Mapping[str, Callable[[Sign], None]] = {
            signs.STARTED: self._started,
            signs.JOINED: self._joined,
            signs.REPLACED: self._replaced,
            signs.PARKED: self._parked,
            signs.SYNCED: self._synced,
            signs.CLOSING: self._gone,
            signs.CLOSED: self._gone,
            signs.REMOVED: self._removed,
            signs.CRASHED: self._crashed,
            signs.FAILED: self._failed,
            signs.REVOKED: self._revoked,
            signs.LOST: self._goes_on,
            signs.REJOIN: self._rejoin,
            signs.PAUSED: self._paused,
        }

    def read(self, all_signs: Sequence[Sign]) -> None:
        for number, sign in enumerate(all_signs, start=1):
            self._following = all_signs[number:]
            if self._last is None and sign.kind not in _OF_A_BEGINNING:
                self._first_seen(sign)
            handler = self._handlers.get(sign.kind)
            if handler is not None:
                handler(sign)
            self._last = sign
        if self._expired is not None and self._stint is not None:
            self._silent_before(self._expired)

    # -- beginnings ------------------------------------------------------------------------------

    def _begin(self, at: Known) -> None:
        self._stint = Stint(self._name, Moment(at, "start"))
        self._lives.stints.append(self._stint)
        self._ids = set()
        self._expired = None
        self._late = None
        self._gave_up = None

    def _started(self, sign: Sign) -> None:
        if self._stint is not None:
            self._ended_before(sign)
        self._begin(observed(sign.time_us, sign.place))

    def _ended_before(self, sign: Sign) -> None:
        """A new process of the name: how did the one before it end?"""
        expired = self._expired or self._expires_later()
        if expired is not None:
            self._silent_before(expired)
        elif self._gave_up is not None:
            self._stopped(self._gave_up)
        else:
            self._problem(sign, "a new process of the name starts, and when the one before it ended", _BROKER)

    def _expires_later(self) -> Sign | None:
        """The row by which the session of this incarnation expires, though its successor runs already."""
        return next(
            (
                sign
                for sign in self._following
                if (sign.kind, sign.detail) == (signs.REMOVED, Cause.SESSION_EXPIRED)
                and sign.member_id in self._ids
            ),
            None,
        )

    def _joined(self, sign: Sign) -> None:
        if self._stint is not None and self._expired is not None and not self._says_itself:
            self._silent_before(self._expired)
        if self._stint is None:
            self._begin(inferred(sign.time_us, _first(sign)))
        self._first_join(sign)
        self._end_of_work(sign)
        self._ids.add(sign.member_id)

    def _replaced(self, sign: Sign) -> None:
        if self._stint is None:
            self._begin(inferred(sign.time_us, _first(sign)))
        elif self._ids:
            self._problem(sign, "the static member comes back, and when its process had stopped", _OWN_LOG)
        self._first_join(sign)
        self._ids.add(sign.member_id)

    def _first_join(self, sign: Sign) -> None:
        """A process that said that it starts joins: if it took long, it counts from here on."""
        stint = self._stint
        if stint is None or self._ids or sign.time_us <= stint.start.at_us + _FIRST_JOIN_US:
            return
        stint.start = stint.start._replace(at=inferred(sign.time_us, _first(sign)))

    def _first_seen(self, sign: Sign) -> None:
        """A member of whose beginning there is no row."""
        if self._began_empty:
            at_us = sign.time_us if sign.round_us is None else sign.round_us
            self._begin(inferred(at_us, f"{sign.place}: {_FIRST_ROUND}"))
        else:
            self._begin(inferred(BEFORE, f"{sign.place}: it is in the group when the trace begins"))

    def _synced(self, sign: Sign) -> None:
        self._ids.add(sign.member_id)
        self._gave_up = None

    # -- ends ------------------------------------------------------------------------------------

    def _end(self, moment: Moment) -> None:
        assert self._stint is not None
        self._stint.end = moment
        self._stint = None
        self._expired = None
        self._gave_up = None

    def _gone(self, sign: Sign) -> None:
        if self._stint is not None:
            self._end(Moment(observed(sign.time_us, sign.place), STOP))

    def _crashed(self, sign: Sign) -> None:
        if self._stint is not None:
            self._end(Moment(observed(sign.time_us, sign.place), CRASH))

    def _failed(self, sign: Sign) -> None:
        self._problem(sign, f"the consumer fails with {sign.detail}, and what started it again")
        self._stint = None

    def _revoked(self, sign: Sign) -> None:
        self._gave_up = sign

    def _stopped(self, sign: Sign) -> None:
        """A static member that is closed gives up everything, and sends no LeaveGroup."""
        why = f"{sign.place}: it gives up everything, and its process has no further line"
        self._end(Moment(inferred(sign.time_us, why), STOP))

    def _silent_before(self, sign: Sign) -> None:
        """The session of ``sign`` ran from the last heartbeat: the process stopped or died before the next
        one."""
        if self._gave_up is not None and self._is_static:
            self._stopped(self._gave_up)
            return
        at_us, why = self._silent_since(sign)
        self._end(Moment(inferred(at_us, why), CRASH))

    def _silent_since(self, sign: Sign) -> tuple[int, str]:
        assert self._stint is not None
        session_us, heartbeat_us = self._timeouts.session_us, self._timeouts.heartbeat_us
        began_us = self._stint.start.at_us
        if began_us != BEFORE and sign.time_us < began_us + session_us - _TICK_US:
            self._contradicts("session.timeout.ms", session_us, sign, began_us)
        at_us = max(sign.time_us - session_us + heartbeat_us // 2, began_us)
        return at_us, (
            f"{sign.place}: its session of {session_us / 1e6:g} s expired; half a heartbeat interval after "
            "the last heartbeat"
        )

    def _removed(self, sign: Sign) -> None:
        if self._stint is None or (self._ids and sign.member_id not in self._ids):
            return
        if sign.detail == Cause.LEFT:
            if not self._goes_on_after(sign):
                self._end(Moment(observed(sign.time_us, sign.place), STOP))
        elif sign.time_us < self._paused_until_us:
            return
        elif sign.detail in _TOO_LATE:
            self._late = sign
        elif sign.detail == UNKNOWN and not self._says_itself:
            self._problem(sign, "it goes, and whether it left or its session expired", _EITHER_LOG)
            self._end(Moment(observed(sign.time_us, sign.place), STOP))
        else:
            self._expired = sign

    def _goes_on_after(self, sign: Sign) -> bool:
        """Whether the member that leaves is one that did not poll in time: its process goes on."""
        if self._late is not None or sign.time_us < self._paused_until_us:
            return True
        after = next((one for one in self._following if _tells_of_the_end(one)), None)
        if not self._says_itself or after is None or after.kind not in (signs.LOST, signs.REJOIN):
            return False
        self._late = sign._replace(kind=signs.REJOIN, detail=_POLL_TIMEOUT)
        return True

    # -- times in which the process stood still ------------------------------------------------------

    def _paused(self, sign: Sign) -> None:
        self._paused_until_us = sign.time_us + sign.for_us
        do = PAUSE if sign.detail == _WHOLE_PROCESS else BUSY
        self._lives.pauses.append((self._name, Moment(observed(sign.time_us, sign.place), do, sign.for_us)))

    def _rejoin(self, sign: Sign) -> None:
        if sign.detail == _POLL_TIMEOUT:
            if sign.time_us >= self._paused_until_us:
                self._late = sign
        elif sign.detail == _FIRST_JOIN:
            self._first_join(sign)
        elif sign.detail not in _OF_EVERY_MEMBER and sign.detail != _LEFT_GROUP:
            self._goes_on(sign)

    def _goes_on(self, sign: Sign) -> None:
        """The process runs, and learns that it is out of the group."""
        if self._expired is not None and self._stint is not None:
            at_us, why = self._silent_since(self._expired)
            self._stood_still(PAUSE, at_us, f"{why}; the process went on", sign)
            self._expired = None
        elif self._late is not None and self._late.kind == signs.REMOVED:
            self._end_of_work(sign)

    def _end_of_work(self, sign: Sign) -> None:
        """The process polls again after it had worked for too long."""
        late, self._late = self._late, None
        if late is None:
            return
        if late.kind == signs.REJOIN:
            began_us = late.time_us - self._timeouts.max_poll_interval_us
            if self._stint is not None and began_us < self._stint.start.at_us != BEFORE:
                interval_us = self._timeouts.max_poll_interval_us
                self._contradicts("max.poll.interval.ms", interval_us, late, self._stint.start.at_us)
            why = f"{late.place}: max.poll.interval.ms was over; it joins again with {sign.place}"
        else:
            began_us = late.round_us if late.round_us is not None else late.time_us
            why = f"{late.place}: it missed the round; it goes on with {sign.place}"
        self._stood_still(BUSY, began_us, why, sign)

    def _stood_still(self, do: str, began_us: int, why: str, until: Sign) -> None:
        """Rows of a storm say it of its steps and pauses; all else follows from its settings, as its work on
        records does, and would be done twice."""
        if not self._is_storm:
            moment = Moment(inferred(began_us, why), do, until.time_us - began_us)
            self._lives.pauses.append((self._name, moment))

    def _contradicts(self, setting: str, timeout_us: int, over: Sign, began_us: int) -> None:
        """The timeout was over sooner after the process had joined than it allows."""
        lived_s = (over.time_us - began_us) / 1e6
        self._lives.problems.append(
            f"{self._name}: its {setting} cannot be {timeout_us / 1e6:g} s: it was over {lived_s:,.1f} "
            f"s after the process had started ({over.place}): give it with --known {setting}=..."
        )

    def _parked(self, sign: Sign) -> None:
        self._gave_up = None
        self._end_of_work(sign)
        began_us = sign.round_us
        if began_us is None or self._stint is None or not self._ids:
            return
        allowed_us = self._timeouts.heartbeat_us + _LATE_US
        idle_us = max(began_us, self._paused_until_us)
        if self._stint.start.at_us <= began_us and sign.time_us > idle_us + allowed_us:
            why = f"{sign.place}: its JoinGroup comes long after its next heartbeat: it worked until then"
            self._stood_still(BUSY, began_us, why, sign)

    def _problem(self, sign: Sign, what: str, source: str = "") -> None:
        """``source``: the log that would say it."""
        self._lives.problems.append(
            f"{self._name}: {what}, the trace does not say (at {sign.time_us / 1e6:,.1f} s: {sign.place})"
            f"{source and f': {source} does'}"
        )


def _tells_of_the_end(sign: Sign) -> bool:
    """Whether a sign after a LeaveGroup says if its process was stopped, or had not polled in time."""
    return sign.kind in _TELL_OF_THE_END or (sign.kind == signs.REJOIN and sign.detail == _POLL_TIMEOUT)


def _first(sign: Sign) -> str:
    """The first join of a process, with the way in which its time is known."""
    return f"{sign.place}: {_FIRST_ROUND if sign.detail == signs.IN_ROUND else _FIRST_JOIN_GROUP}"
