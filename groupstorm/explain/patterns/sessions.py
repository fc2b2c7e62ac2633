"""Members whose session expired: processes that died or fell silent, and static members that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Final

from groupstorm.explain.findings import Match
from groupstorm.explain.history import History, Incident
from groupstorm.explain.incidents import COORDINATOR_ERRORS, UNRELEASED, ZOMBIE_ERRORS, Refusal
from groupstorm.explain.patterns.selecting import (
    AFTER_US,
    SECOND_US,
    away,
    begun_by,
    find_stop,
    has_ended,
    killed_by_records,
    unique,
    was_empty,
    with_changes,
)
from groupstorm.history.rebalances import Change, ChangeKind, Rebalance, Row
from groupstorm.imports.timeline.streams import THREAD
from groupstorm.trace.events.group_states import Cause
from groupstorm.wording import counted, lasting, listed

#: A static member that is back so soon after its session expired was restarting when it expired.
RESTART_US: Final = 180 * SECOND_US
_NAMED_MAX: Final = 3
#: A live run sees the removal of a member that goes on only as the member is told so.
_AT_ONCE_US: Final = 100_000
#: Incidents with which a process notices that it is out of the group: one that was started again does not.
_TOO_SLOW: Final = ("poll-timeout", "poll-timeout-lost")
_NOTICED: Final = (*_TOO_SLOW, "out-of-group", "lost")


def closed_silently(history: History) -> Match | None:
    """Dynamic members closed without LeaveGroup, as threads of Kafka Streams do, and the coordinator removed
    them a session later. Until then it waits for them in every round, and keeps their partitions."""
    gone = [one for one in _expired(history) if _is_silent(one)]
    return _match(history, gone, "had closed without LeaveGroup before") if gone else None


def _is_silent(gone: Change) -> bool:
    """Whether a dynamic member's own rows say that it closed, and none that it told the coordinator."""
    if gone.instance is not None or gone.alive is None or not gone.is_closed:
        return False
    return gone.alive.get("cause") in ("silent", "close")


def may_have_closed(history: History, gone: Sequence[Change]) -> bool:
    """Whether some of these are threads of Kafka Streams whose own log is not there to say how they ended. In
    a streams group (KIP-1071) those that close leave."""
    return not history.is_streams and any(
        THREAD in one.member and (one.alive is None or one.alive["source"] != "member") for one in gone
    )


def session_expired(history: History) -> Match | None:
    """The coordinator removed a dynamic member because it had no heartbeat for session.timeout.ms: the
    process died, hung, or lost its connection. Until then its partitions have no owner. A static member
    counts if its own rows say that its process was not restarted, but found itself out of the group."""
    gone = [
        one
        for one in _expired(history)
        if (one.instance is None and not _is_silent(one))
        or (_lived_on(history, one) and not _lived_on(history, one, _TOO_SLOW))
    ]
    if gone:
        what = "died, hung or lost the connection"
        if all(one.is_closed for one in gone):
            what = "had closed, and no LeaveGroup arrived"
        elif any(one.is_closed for one in gone):
            what = "died, hung, lost the connection or had closed (no LeaveGroup of theirs arrived)"
        elif may_have_closed(history, gone):
            what = "died, hung, lost the connection or closed (Kafka Streams then sends no LeaveGroup)"
        match = _match(history, gone, what)
        back = [_rejoin(history, one.member, one.time_us) for one in went_on(history, gone)]
        match.rebalances = [*match.rebalances, *chain.from_iterable(back)]
        return match
    silent = _told(history, "session-timeout")
    if silent is not None:
        silent.sentence = (
            f"{counted(len(silent.members), 'member')} had no answer of the coordinator for a whole session "
            "(session-timeout)."
        )
        from_us = silent.evidence[0]["time_us"] - RESTART_US
        answers = [one for one in history.refusals if one.error in ZOMBIE_ERRORS | COORDINATOR_ERRORS]
        answers = [one for one in answers if one.member in silent.members and one.last["time_us"] >= from_us]
        silent.sentence += "".join(f" {one.member} was answered {one.error}." for one in answers[:_NAMED_MAX])
        why = "whether the coordinator removed them, or was itself out of reach: add the broker's log"
        silent.unknown = "" if answers else why
    return silent


def went_on(history: History, gone: Sequence[Change]) -> list[Incident | Change]:
    """The row of each process that found itself out of the group within three minutes, or came back under
    the id that it had, as those of a consumer group do: none of these died."""
    found: list[Incident | Change] = []
    for each in gone:
        same = [one for one in history.came() if one.member_id == each.member_id != ""]
        told = [one for one in history.of_kind("out-of-group") if one.member == each.member]
        told = [one for one in told if one.row.get("member_id", "") in (each.member_id, "")]
        rows: list[Incident | Change] = [*told, *same]
        found += [one for one in rows if 0 <= one.time_us - each.time_us <= RESTART_US][:1]
    return found


def _rejoin(history: History, member: str, from_us: int) -> list[Rebalance]:
    """The rebalance with which a member comes back that went on; others of it may be of a restart."""
    found = begun_by(history, {member}, from_us, from_us + AFTER_US)
    came = (
        one for one in found if any(it.kind is ChangeKind.CAME and it.member == member for it in one.changes)
    )
    return [*islice(came, 1)]


def out_of_group(history: History) -> Match | None:
    """Members' requests were refused because they were not in the group, or not in its generation, and no
    line says how that came: the log of the coordinator is not there."""
    if history.incidents.get("session-timeout") or history.incidents.get("poll-timeout"):
        return None
    return _told(history, "out-of-group")


def outage(history: History) -> Match | None:
    """The last member's session expired, its own log does not say that it was closed, and nobody has come
    until the trace ends, a minute later or more: nobody reads the topics. (Members that left in order: see
    stopped.)"""
    outage_us = history.outage_us
    if outage_us is None:
        return None
    last = next(one for one in reversed(history.changes) if one.kind is ChangeKind.WENT)
    lasted = lasting(outage_us)
    name = last.member or last.member_id
    sentence = f"At least {lasted}: {name} was the last member, its session expired, and nobody came back."
    unknown = "whether somebody had stopped it: add its own log" if last.alive is None else ""
    return Match(sentence, unique([last.member]), with_changes(history, [last]), (), [last.row], unknown)


def is_unheard_since(history: History, told: Refusal) -> bool:
    """Whether a client was told that its coordinator had moved, and no row or heartbeat shows that it found
    the next one before its session expired. A coordinator that loads the group begins every session anew."""
    if told.error not in COORDINATOR_ERRORS:
        return False
    gone = [one for one in _expired(history) if one.member == told.member]
    for one in gone:
        timeout_ms = _timeout_ms(history, one)
        heard_us = one.time_us - (RESTART_US if timeout_ms is None else timeout_ms * 1000 + SECOND_US)
        is_open = told.first["time_us"] <= one.time_us and not (told.over_us or one.time_us) < one.time_us
        is_loaded = any(heard_us <= each.time_us <= one.time_us for each in history.of_kind("loaded"))
        if is_open and (told.last["time_us"] >= heard_us or is_loaded):
            return True
    return not gone


def _told(history: History, kind: str) -> Match | None:
    """Members' own logs, without any word of the coordinator about who went."""
    told = history.of_kind(kind)
    if not told or any(one.kind is ChangeKind.WENT for one in history.changes):
        return None
    members = unique(one.member for one in told)
    causes = listed(sorted({str(one.row.get("cause") or one.row.get("error")) for one in told}))
    sentence = f"{counted(len(members), 'member')} noticed to be out of the group ({causes})."
    unknown = "whether sessions expired, or members joined a round too late: add the broker's log"
    rebalances = [
        rebalance
        for one in told
        for rebalance in begun_by(history, members, one.time_us - SECOND_US, one.time_us + AFTER_US)
    ]
    return Match(sentence, members, rebalances, (), [one.row for one in told], unknown)


def static_session_too_short(history: History) -> Match | None:
    """A static member's session expired, and the same group.instance.id came back within three minutes:
    the restart took longer than session.timeout.ms, so static membership saved nothing. (If the process
    lived on: see session-expired. If it died in a consumer group: see static-unreleased.)"""
    gone = [one for one in _static(history) if _return(history, one) and not _is_kept(history, one)]
    if not gone:
        return None
    match = _match(history, gone, "came back under the same group.instance.id later")
    if not all(_was_restarted(history, one) for one in gone):
        match.unknown = "whether their processes were restarted, or stood still"
        match.unknown += "" if history.has_member_rows else ": add the members' own logs"
    return match


def static_orphan(history: History) -> Match | None:
    """A static member's session expired, and its group.instance.id did not come back within three minutes:
    it was scaled in, or its successor has another id (pods of a Deployment), or it died. A static
    member does not leave when it stops, so its partitions wait for the whole session."""
    gone = [one for one in _static(history) if not (_return(history, one) or _is_kept(history, one))]
    is_cut = any(history.last_us - one.time_us < RESTART_US for one in gone)
    until = " or before the trace ended" if is_cut else ""
    what = f"did not come back under the same group.instance.id within three minutes{until}"
    return _match(history, gone, what) if gone else None


def static_unreleased(history: History) -> Match | None:
    """A static member of a consumer group died, and the coordinator kept its place until its session ended:
    it refuses a process that starts under the group.instance.id before (UNRELEASED_INSTANCE_ID), which ends
    that consumer. So a longer session costs more, however fast the restart is."""
    gone = [one for one in _static(history) if _is_kept(history, one)]
    if not gone:
        return None
    match = _match(history, gone, "died, and their place was kept until then")
    refused = refused_starts(history)
    if refused:
        match.sentence += f" Refused before with {UNRELEASED}: {counted(len(refused), 'start')}."
        match.evidence = [*match.evidence, *(one.row for one in refused)]
    return match


def refused_starts(history: History) -> list[Incident]:
    """The starts that were refused as a member that had died still had their group.instance.id: its session
    expired soon after."""
    return [one for gone in _static(history) for one in _refused(history, gone)]


def _refused(history: History, gone: Change) -> list[Incident]:
    return [
        one
        for one in history.of_kind("fenced")
        if one.row.get("error") == UNRELEASED
        and one.member in (gone.member, gone.instance)
        and 0 <= gone.time_us - one.time_us <= RESTART_US
    ]


def _is_kept(history: History, gone: Change) -> bool:
    """Whether a consumer group kept the place of a static member that died from those who came for it."""
    died = (one.row["member_id"] for one in history.of_kind("crashed"))
    is_back = history.is_consumer_group and _return(history, gone) is not None and gone.member_id in died
    return is_back or bool(_refused(history, gone))


def _expired(history: History) -> list[Change]:
    others = {one.row["seq"] for one in (*find_stop(history), *killed_by_records(history))}
    return [
        one for one in history.went() if one.cause == Cause.SESSION_EXPIRED and one.row["seq"] not in others
    ]


def _static(history: History) -> list[Change]:
    """Static members whose session expired, without those whose process lived on."""
    return [one for one in _expired(history) if one.instance is not None and not _lived_on(history, one)]


def _lived_on(history: History, gone: Change, kinds: Sequence[str] = _NOTICED) -> bool:
    """Whether rows show that the process of a static member did not end: before another one came it noticed
    that it was out, or, in a consumer group, it came back under the id that a process gives itself."""
    if gone.instance is None or has_ended(gone):
        return False
    same = [one for one in history.came() if one.instance == gone.instance]
    back = next((one for one in same if one.time_us >= gone.time_us), None)
    if back is not None and back.member_id == gone.member_id and kinds == _NOTICED:
        return True
    from_us = max((one.time_us for one in same if one.time_us < gone.time_us), default=0)
    to_us = history.to_us if back is None else back.time_us
    own = [one for one in history.of_kind(*kinds) if one.member in (gone.member, gone.instance)]
    return any(from_us < one.time_us <= to_us for one in own)


def _was_restarted(history: History, gone: Change) -> bool:
    """Whether rows say that the process of a member ended, or another one started, before it was back."""
    from_us, back = _silent_from_us(history, gone), _return(history, gone)
    last = [one for name, (_, one) in history.subscriptions.items() if name in (gone.member, gone.instance)]
    is_new = back is not None and any(from_us < one["time_us"] <= back.time_us for one in last)
    return is_new or has_ended(gone)


def ended_by_itself(history: History, rebalance: Rebalance, time_us: int) -> bool:
    """Whether members of a rebalance left in order, or died: by their own logs, or because they were heard
    of after ``time_us``."""
    died = {one.row["member_id"] for one in history.of_kind("crashed")}
    return any(
        change.cause == Cause.LEFT
        or (
            change.cause == Cause.SESSION_EXPIRED
            and (change.member_id in died or _silent_from_us(history, change) > time_us)
        )
        for change in rebalance.changes
        if change.kind is ChangeKind.WENT
    )


def _return(history: History, gone: Change) -> Change | None:
    """The member that came back with the same group.instance.id after its session had expired."""
    for one in history.changes:
        is_same = one.kind is ChangeKind.CAME and one.instance == gone.instance
        if is_same and 0 <= one.time_us - gone.time_us <= RESTART_US:
            return one
    return None


def _match(history: History, gone: Sequence[Change], what: str) -> Match:
    members = unique(one.member for one in gone)
    sentences = [f"{counted(len(gone), 'session')} expired; {counted(len(members), 'member')} {what}."]
    sentences += [_last_alive(history, one) for one in gone[:_NAMED_MAX]]
    absences = [
        absence
        for one in gone
        for absence in away(history, {one.member}, _silent_from_us(history, one), one.time_us + AFTER_US)
    ]
    back = [_return(history, one) for one in gone if one.instance is not None]
    rebalances = with_changes(history, [*gone, *(one for one in back if one is not None)])
    # who comes into the group that these left empty is not to blame for the time without members
    after = {one.number + 1 for one in rebalances}
    refilled = [one for one in history.rebalances if one.number in after and was_empty(one)]
    rebalances += refilled
    gone_us = [one.time_us for one in history.went()]
    empty_us = sum(one.begun_us - max(us for us in gone_us if us <= one.begun_us) for one in refilled)
    # in imported traces nothing counts while the group has no member
    if empty_us >= SECOND_US and not history.is_imported:
        waited = lasting(empty_us)
        sentences.append(f"Then the group had no members for {waited}, which no session timeout shortens.")
    rows = [row for one in gone for row in (one.alive, one.row) if row is not None]
    is_known = not history.is_imported or all(one.alive is not None for one in gone)
    unknown = "" if is_known else "when the members were last alive: add the members' own logs"
    return Match(" ".join(sentences), members, rebalances, absences, rows, unknown)


def _silent_from_us(history: History, gone: Change) -> int:
    if gone.alive is not None:
        return int(gone.alive["time_us"]) - SECOND_US
    timeout_ms = _timeout_ms(history, gone)
    return gone.time_us if timeout_ms is None else gone.time_us - timeout_ms * 1000 - SECOND_US


def _timeout_ms(history: History, gone: Change) -> int | None:
    """The session timeout of a member; in a consumer group the broker's."""
    if history.is_consumer_group:
        kind = "streams" if history.is_streams else "share" if history.is_shared else "consumer"
        return history.settings.number(f"group.{kind}.session.timeout.ms")
    return history.settings.number("session.timeout.ms", gone.member)


def _sends_none(row: Row, time_us: int) -> bool:
    """Whether the process is dead at that time by a row of it, or stands still."""
    if row.get("cause") == "pause":
        return bool(row["time_us"] < time_us < row["time_us"] + row["duration_us"])
    return bool(row["event"] == "member_crashed" and row["time_us"] < time_us)


def since_load_us(history: History, gone: Change) -> int | None:
    """The time of the coordinator's load, if a member's session began with it: no heartbeat came since."""
    loads_us = [one.time_us for one in history.of_kind("loaded")]
    began_us = gone.time_us - (_timeout_ms(history, gone) or 0) * 1000
    return next((us for us in loads_us if abs(us - began_us) < SECOND_US // 2), None)


def _last_alive(history: History, gone: Change) -> str:
    """The last moment at which the member is known to have been alive."""
    at = f"at {gone.time_us / SECOND_US:,.3f} s"
    if gone.alive is not None and gone.is_closed:
        closed_us = int(gone.alive["time_us"])
        waited = lasting(gone.time_us - closed_us)
        return (
            f"{gone.member or gone.member_id}: closed at {closed_us / SECOND_US:,.3f} s, removed {at}: "
            f"what it had waited for {waited} at least."
        )
    timeout_ms = _timeout_ms(history, gone)
    told_us = [one.time_us - gone.time_us for one in went_on(history, [gone])]
    if any(us < _AT_ONCE_US for us in told_us):
        timeout_ms, at = None, f"{at} or before"
    heartbeat_us = None if timeout_ms is None else gone.time_us - timeout_ms * 1000
    known = []
    if (loaded_us := since_load_us(history, gone)) is not None:
        loaded = f"{loaded_us / SECOND_US:,.3f} s"
        known.append(f"no heartbeat of it came after its coordinator loaded the group, at {loaded}")
    # a live run sees the removal later than the coordinator
    elif heartbeat_us is not None and not (gone.alive and _sends_none(gone.alive, heartbeat_us)):
        known.append(f"its last heartbeat came at {heartbeat_us / SECOND_US:,.3f} s")
    if gone.alive is not None:
        known.append(f"the last row of it is of {gone.alive['time_us'] / SECOND_US:,.3f} s")
    if not known:
        known.append("when it was last alive is unknown")
    return f"{gone.member or gone.member_id}: expired {at}; {listed(known)}."
