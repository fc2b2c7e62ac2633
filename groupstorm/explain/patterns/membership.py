"""Members that do not fit together: assignors, protocols, instance ids, subscriptions, zombies, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from groupstorm.explain.findings import Match
from groupstorm.explain.history import History, Incident
from groupstorm.explain.incidents import COMMIT, HEARTBEAT, TIMED_OUT, ZOMBIE_ERRORS
from groupstorm.explain.patterns.selecting import (
    AFTER_US,
    SECOND_US,
    Restart,
    away,
    begins_after,
    begun_by,
    find_restarts,
    has_ended,
    is_within,
    unique,
    unwritten_spans,
    with_changes,
)
from groupstorm.explain.patterns.sessions import refused_starts
from groupstorm.history.rebalances import REPLACED, Absence, ChangeKind, Rebalance
from groupstorm.wording import counted, lasting, listed, seconds, some

#: Two processes with one group.instance.id replace each other: so often within ten minutes is no restart.
REPLACED_MIN: Final = 3
TWINS_US: Final = 600 * SECOND_US
RESTART_US: Final = 120 * SECOND_US
#: For so long in all two members have to work on one partition.
DUAL_MIN_S: Final = 1
#: So many members end with an error that is none of the protocol's.
_NAMED_MAX: Final = 4
_WHY_OUT: Final = (
    "why it was out of the group: add its log from before (it tells whether it did not poll in time), and "
    "the coordinator's (it tells whether a session expired)"
)
_HOW_GONE: Final = (
    "how they went (stopped, session expired, or too slow to poll): add their own logs, or the coordinator's"
)
_WHO_ELSE: Final = (
    "which id it is and who else has it: add the coordinator's log, and those of the other static members"
)
_OR_ONE: Final = "whether it is one process that ends and starts again: add the logs of the consumers"


def mixed_assignors(history: History) -> Match | None:
    """JoinGroup was refused with INCONSISTENT_GROUP_PROTOCOL: a member offers no assignor that all others
    offer."""
    refused = history.of_kind("inconsistent-protocol")
    counts = history.of_kind("inconsistent-protocol-counted")
    if not refused and not counts:
        return None
    members = unique(one.member for one in refused)
    times = len(refused) or sum(int(one.row["count"]) for one in counts)
    who = some(members) or "a member"
    sentence = f"Refused {counted(times, 'time')} in all with INCONSISTENT_GROUP_PROTOCOL: {who}."
    return Match(
        sentence, members, *_since(history, refused, members), [one.row for one in (*refused, *counts)]
    )


def migration_refused(history: History) -> Match | None:
    """A member of group.protocol=consumer was refused by a classic group (GROUP_ID_NOT_FOUND): the group
    may not be upgraded while it lives."""
    refused = history.of_kind("migration-refused")
    if not refused:
        return None
    members = unique(one.member for one in refused)
    times = counted(len(refused), "time")
    sentence = f"Refused {times} in all by a classic group, for the new protocol: {some(members)}."
    return Match(sentence, members, *_since(history, refused, members), [one.row for one in refused])


def fenced_instances(history: History) -> Match | None:
    """A member was fenced (FENCED_INSTANCE_ID), or refused as another one has its group.instance.id
    (UNRELEASED_INSTANCE_ID of KIP-848), or one id was replaced three times within ten minutes: two processes
    have the same group.instance.id, and take the membership from each other. (If the other one had died: see
    static-unreleased.)"""
    of_the_dead = {one.row["seq"] for one in refused_starts(history)}
    fenced = [one for one in history.of_kind("fenced") if one.row["seq"] not in of_the_dead]
    ended = {one.row["seq"] for one in history.went() if has_ended(one)}
    replaced: dict[str, list[Incident]] = {}
    unwritten = unwritten_spans(history, SECOND_US)  # a process joins again and again, until it is written
    for change in history.changes:
        is_back = change.cause == REPLACED and change.kind is ChangeKind.CAME
        is_back = is_back and change.row["seq"] not in ended
        if is_back and change.instance is not None and not is_within(change.time_us, unwritten):
            replaced.setdefault(change.instance, []).append(
                Incident(change.time_us, change.member, change.row)
            )
    twins = {
        instance: ones
        for instance, ones in replaced.items()
        if any(
            third.time_us - first.time_us <= TWINS_US
            for first, third in zip(ones, ones[REPLACED_MIN - 1 :], strict=False)
        )
    }
    if not fenced and not twins:
        return None
    found = sorted([*fenced, *(one for ones in twins.values() for one in ones)], key=lambda one: one.time_us)
    members = unique(one.member for one in found)
    instances = unique(_instance(history, one) for one in found)
    others = unique(
        change.member
        for change in history.changes
        if change.kind is ChangeKind.CAME and change.instance in instances and change.member not in members
    )
    errors = sorted({str(one.row.get("error") or one.row.get("cause")) for one in fenced})
    sentence = (
        f"Members were fenced {counted(len(fenced), 'time')} ({listed(errors)})"
        if fenced
        else f"{counted(sum(map(len, twins.values())), 'time')} a process took a membership from another one"
    )
    named = f" ({listed([*instances[:_NAMED_MAX]])})" if instances else ""
    if others:
        named += f": {listed([*others[:_NAMED_MAX]])} came with the same group.instance.id"
    rebalances = begun_by(history, members, found[0].time_us - SECOND_US, found[-1].time_us + AFTER_US)
    absences = away(history, members, found[0].time_us - AFTER_US, found[-1].time_us + AFTER_US)
    knows_both = instances and (others or twins)
    unknown = _WHO_ELSE if history.is_imported and not knows_both else ""
    logs = history.settings.logs.keys()
    is_heard = history.has_member_rows and not (history.is_imported and logs.isdisjoint(members))
    if not (fenced or others or is_heard):
        unknown = _OR_ONE
    return Match(f"{sentence}{named}.", members, rebalances, absences, [one.row for one in found], unknown)


def _instance(history: History, one: Incident) -> str:
    """The group.instance.id of a member, by the row, its coming or its configuration; "" if unknown."""
    came = (change.instance for change in history.changes if change.member == one.member and change.instance)
    configured = history.settings.of_member.get(one.member, {}).get("group.instance.id", "")
    return str(one.row.get("instance") or next(came, configured))


def gone_unsaid(history: History) -> Match | None:
    """Members went of which no line says how: of two lists of members (the leader's, or of
    kafka-consumer-groups) the second has them no more. Some came back."""
    late = [(one.member, one.time_us) for one in history.of_kind("poll-timeout")]
    came_us = {one.member_id: one.time_us for one in history.came()}
    # under an id that no line saw coming a member goes that was back where lines are missing
    again = [(one.member, one.time_us) for one in history.went() if one.member_id not in came_us]
    went = [
        one
        for one in history.went()
        if one.cause == "unknown"
        and not any(name == one.member and 0 <= one.time_us - us <= AFTER_US for name, us in late)
        and not any(name == one.member and us > came_us.get(one.member_id, us) for name, us in again)
    ]
    if not went:
        return None
    back = {one.went.row["seq"]: one for one in find_restarts(history) if one.up_us >= one.down_us}
    returned = [back[one.row["seq"]] for one in went if one.row["seq"] in back]
    stayed_away = unique(one.member for one in went if one.row["seq"] not in back)
    said = [_was_out(one) for one in returned[:_NAMED_MAX]]
    if len(returned) > _NAMED_MAX:
        said.append(f"{len(returned) - _NAMED_MAX:,} more were out of it for a time")
    if stayed_away:
        said.append(f"{listed(stayed_away[:_NAMED_MAX])} went and did not come back")
    changes = [*went, *(one.came for one in returned)]
    sentence = f"By the lists of members that the logs have: {'; '.join(said)}."
    rows = [one.row for one in (*went[:1], *went[-1:])]
    members = unique(one.member for one in went)
    return Match(sentence, members, with_changes(history, changes), (), rows, _HOW_GONE)


def _was_out(one: Restart) -> str:
    """Lists of two rounds do not say how long a member was out that the second one has again."""
    lasted_us = one.up_us - one.down_us
    lasted = "" if lasted_us < SECOND_US else f"about {lasting(lasted_us)}"
    if len(one.members) > 1:  # perhaps the one in the place of the other: no list says so
        return f"{' went and '.join(one.members)} came {f'{lasted} later' if lasted else 'by the next list'}"
    was = f"out of the group for {lasted}" if lasted else "back by the next list"
    return f"{one.members[0]} was {was}"


def zombies(history: History) -> Match | None:
    """A process worked on after the group had given its partitions away: its commits were refused with an
    error of one that is no member any more, or two members worked on one partition for a second or more
    in all."""
    refused = history.of_kind("commit-refused")
    counts = history.of_kind("commit-refused-counted")
    late = history.of_kind("commit-refused", "out-of-group", "poll-timeout-lost", "fenced")
    late += [one for one in history.of_kind("lost") if one.row.get("cause") in ZOMBIE_ERRORS]
    both_s = (history.figures.dual_owner_seconds if history.figures is not None else None) or 0
    if history.is_imported and not late:
        both_s = 0  # the first of two owners may as well have died: no line shows that it lives
    if not refused and not counts and both_s < DUAL_MIN_S:
        return None
    sentences = []
    told = [one for one in history.refusals if one.api == COMMIT and one.error in ZOMBIE_ERRORS]
    if told:
        sentences += [one.sentence for one in told[:_NAMED_MAX]]
        sentences += ["And more like it."] * (len(told) > _NAMED_MAX)
    elif refused or counts:
        times = len(refused) or sum(int(one.row["count"]) for one in counts)
        errors = listed(sorted({str(one.row.get("error")) for one in (*refused, *counts)}))
        sentences.append(f"{counted(times, 'commit')} of members that were out of the group: {errors}.")
    silent = [one for one in history.refusals if one.api == HEARTBEAT and one.error == TIMED_OUT]
    sentences += [one.sentence for one in silent[:_NAMED_MAX]]
    if both_s >= DUAL_MIN_S:
        most = "at most " if history.is_imported else ""  # no log says when a member stood still
        sentences.append(f"Two members worked on one partition for {most}{seconds(both_s)} in all.")
    rows = [one.row for one in (*late, *counts)]
    slow = {one.member for one in history.of_kind("poll-timeout")}
    unknown = _WHY_OUT if {one.member for one in told} - slow and not history.rebalances else ""
    return Match(" ".join(sentences), unique(one.member for one in late), (), (), rows, unknown)


def subscriptions_differ(history: History) -> Match | None:
    """Members that are in the group at the end have different topics: partitions of a topic can only go to
    those that subscribe to it, and most assignors are then less even and less sticky."""
    last: dict[str, bool] = {}
    for change in history.changes:
        last[change.member] = change.kind is ChangeKind.CAME
    topics = {
        member: (chosen, row)
        for member, (chosen, row) in history.subscriptions.items()
        if chosen and last.get(member, True)
    }
    kinds = Counter(frozenset(chosen) for chosen, _ in topics.values())
    if len(kinds) < 2:
        return None
    common, _ = kinds.most_common(1)[0]
    others = {member: row for member, (chosen, row) in topics.items() if frozenset(chosen) != common}
    sentence = (
        f"{counted(len(others), 'member')} of {len(topics):,} subscribe to other topics than the rest: "
        f"{listed([*others][:_NAMED_MAX])}."
    )
    return Match(sentence, unique(others), (), (), [*others.values()])


def assignment_mismatch(history: History) -> Match | None:
    """A member was assigned topics that it does not subscribe to. Java's consumer joins again then."""
    found = history.of_kind("assignment-mismatch")
    if not found:
        return None
    rebalances = [one for one in history.rebalances if any(begins_after(one, each.time_us) for each in found)]
    sentence = f"{counted(len(found), 'assignment')} had topics that the member does not subscribe to."
    return Match(sentence, unique(one.member for one in found), rebalances, (), [one.row for one in found])


def failing_members(history: History) -> Match | None:
    """Members ended with an error that poll() threw: an assignor's plan, or a fatal error of the
    coordinator."""
    failed = history.of_kind("member-failed")
    if not failed:
        return None
    members = unique(one.member for one in failed)
    errors = listed(sorted({str(one.row.get("error")) for one in failed}))
    sentence = f"{counted(len(failed), 'consumer')} ended with {errors}."
    return Match(sentence, members, *_since(history, failed, members), [one.row for one in failed])


def _since(
    history: History, refused: list[Incident], members: Collection[str]
) -> tuple[list[Rebalance], list[Absence]]:
    """The rebalances and absences of refused members, from two minutes before the first refusal on (the
    restart that led to it) to ten minutes after the last."""
    if not refused:
        return [], []
    from_us, to_us = refused[0].time_us - RESTART_US, refused[-1].time_us + TWINS_US
    return begun_by(history, members, from_us, to_us), away(history, members, from_us, to_us)
