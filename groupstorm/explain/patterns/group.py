"""Patterns of a group as a whole: its coordinator moves, topics change, rounds bring no progress, it starts,
records are processed again, partitions move needlessly."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from groupstorm.explain.findings import Match
from groupstorm.explain.history import COORDINATOR_KINDS, History, Incident
from groupstorm.explain.incidents import COORDINATOR_ERRORS, NOT_AVAILABLE, REBALANCING
from groupstorm.explain.patterns.refused import NAMED_MAX, TRIED_MIN
from groupstorm.explain.patterns.selecting import (
    AFTER_US,
    FORMING_US,
    SECOND_US,
    begins_after,
    is_within,
    rounds_of,
    spans_of,
    under_way,
    under_way_at,
    unique,
    unwritten_spans,
    was_empty,
)
from groupstorm.explain.patterns.sessions import ended_by_itself
from groupstorm.history.causes import process_of
from groupstorm.history.phases import SLOW_US
from groupstorm.history.rebalances import Row
from groupstorm.trace.events.group_states import Cause
from groupstorm.wording import counted, lasting

#: Generations in a row in which no record got processed, or rounds of one rebalance: the group turns in
#: circles.
LIVELOCK_MIN: Final = 5
#: Generations of which none lasts, as far as the log shows them, and how short they are.
ENDLESS_MIN: Final = 10
ENDLESS_US: Final = 10 * SECOND_US
#: Rows about the coordinator so close to each other are about one outage.
OUTAGE_US: Final = 300 * SECOND_US

#: This part of all processed records was given up without a commit: the application does not commit then. (A
#: cooperative member with enable.auto.commit leaves some per cent: it processes on after its last commit.)
UNCOMMITTED_MIN: Final = 0.1
#: So many moves that balance did not need, and at least half of all moves: the assignor keeps nothing.
WASTED_MIN: Final = 10

_ARRIVALS: Final = frozenset({Cause.NEW_MEMBER, Cause.PENDING_MEMBER, Cause.STATIC_MEMBER, Cause.HEARTBEAT})


def coordinator_moved(history: History) -> Match | None:
    """Another broker loaded the group (or the broker unloaded it), or members were answered
    NOT_COORDINATOR (in a client's log three times without a generation, or for 10 s). Meanwhile nobody can
    join, leave or commit. An unload after which the group does nothing more is the end of what the trace
    has seen of it, and no failure; nor is a move of a group that has no members, or its broker's start; nor
    is COORDINATOR_NOT_AVAILABLE of a coordinator that could not write (append-failed). A rebalance is not
    its doing if members left in order, or died by their own logs."""
    unwritten = unwritten_spans(history, SECOND_US)

    def is_unwritten(row: Row, error: str | None) -> bool:
        return error == NOT_AVAILABLE and is_within(row["time_us"], unwritten)

    refused = [
        one
        for one in history.refusals
        if one.error in COORDINATOR_ERRORS
        and ((one.count >= TRIED_MIN and not one.is_over) or one.lasted_us >= SLOW_US)
        and not is_unwritten(one.last, one.error)
    ]
    moved = [
        one
        for one in history.of_kind(*COORDINATOR_KINDS)
        if not is_unwritten(one.row, one.row.get("error") or one.row.get("cause"))
        and (not history.is_after_end(one) or (refused and one.row["source"] == "member"))
        and not any(from_us <= one.time_us <= to_us for from_us, to_us in history.without_members)
        and not (history.began_empty and one.time_us == history.first_us)
    ]
    if not moved and not refused:
        return None
    loads = sum(one.row["event"] in ("group_created", "group_deleted") for one in moved)
    ends = [int(row["time_us"]) for one in refused for row in (one.first, one.last)]
    spans = spans_of([*ends, *(one.time_us for one in moved)], OUTAGE_US)
    sentence = f"The coordinator of the group went away or moved {counted(len(spans), 'time')}"
    sentence += f"; {counted(loads, 'row')} about loads and unloads." if loads else "."
    if refused and history.is_imported:
        sentence = " ".join(one.sentence for one in refused[:NAMED_MAX])
    rebalances = [
        one
        for one in history.rebalances
        if any(
            one.begun_us <= to_us + AFTER_US
            and from_us <= one.until_us(history.to_us)
            and not ended_by_itself(history, one, to_us)
            for from_us, to_us in spans
        )
    ]
    absences = [
        one
        for one in history.absences
        if any(one.from_us <= to_us + AFTER_US and from_us <= one.to_us for from_us, to_us in spans)
    ]
    members = unique(one.member for one in refused)
    rows = [one.row for one in moved] or [row for one in refused for row in (one.first, one.last)]
    return Match(sentence, members, rebalances, absences, rows)


def append_failed(history: History) -> Match | None:
    """The coordinator could not write to __consumer_offsets what the group's members did: a round began anew
    (append-failed), or a join or a removal is undone. Members that get an error try again."""
    failed = [pair for pair in rounds_of(history) if pair[1].cause == Cause.APPEND_FAILED]
    unwritten = history.of_kind("append-failed")
    if not failed and not unwritten:
        return None
    spans = unwritten_spans(history, AFTER_US)
    lasted = lasting(sum(to_us - from_us for from_us, to_us in spans))
    within = f"{counted(len(spans), 'outage')} of {lasted} in all" if len(spans) > 1 else lasted
    what = "the group's records" if unwritten else "the group's assignment"
    times = counted(len(unwritten or failed), "time")
    sentence = f"{times} in {within} the coordinator could not write {what}."
    refused = history.of_kind("append-refused")
    if refused:
        row = refused[-1].row
        sentence += f" {row['cause']} is below min.insync.replicas ({row['detail']})."
    why = "why: add the broker's whole log (kafka.server), which names the replicas in sync"
    rows = [one.row for one in refused or unwritten] or [each.begun for _, each in failed]
    stopped = [one for one, _ in failed]
    if unwritten:
        stopped += under_way(history, spans)
    ended = [one for one in history.absences if is_within(one.to_us, spans)]
    return Match(sentence, (), stopped, ended, rows, "" if refused or unwritten else why)


def metadata_changed(history: History) -> Match | None:
    """A member joined again because the metadata of its topics had changed: partitions or topics were
    created or deleted, or a topic matched its pattern. Seen as metadata-changed, as the reason that it gave
    the coordinator, or as a rebalance of new partitions."""
    found = history.of_kind("metadata-changed", "metadata-changed-told", "topics-changed")
    asked = [one for one in found if one.row["event"] in ("rejoin_requested", "client_reason")]
    # in classic groups also who owns other partitions than before has other metadata
    has_pattern = found and history.is_consumer_group and history.settings.get("topic_pattern")
    rebalances = [
        one
        for one in history.rebalances
        if one.new_partitions
        or any(begins_after(one, two.time_us) for two in (found if one.cause == Cause.HEARTBEAT else asked))
        or (has_pattern and one.cause == Cause.MEMBER_UPDATED)
    ]
    if not rebalances and not found:
        return None
    members = unique(one.member for one in asked)
    changes = len(found) - len(asked)
    sentence = "The topics' metadata changed"
    sentence += f", and {counted(len(rebalances), 'rebalance')} followed" if rebalances else ""
    sentence += f"; the trace has {counted(changes, 'change')} of topics." if changes else "."
    created = {one.time_us for one in found if one.row["event"] == "partitions_created"}
    absences = [
        one
        for one in history.absences
        if not one.member
        and (not created or one.from_us in created)
        # a round of members that had seen the partitions, and gave them to nobody, is another matter
        and not any(one.from_us < each.begun_us < one.to_us for each in rebalances)
    ]
    return Match(sentence, members, rebalances, absences, [one.row for one in found])


def leader_rejoined(history: History) -> Match | None:
    """The leader of the group joined again while the group was Stable, and no row of a member says why:
    only the coordinator is heard, and was given no reason. A leader joins again if the metadata of its topics
    has changed, if it subscribes to other topics, or if its application asks for it."""
    told = [*history.of_kind("metadata-changed-told")]
    rebalances = [
        one
        for one in history.rebalances
        if one.cause == Cause.LEADER_REJOINED and not any(begins_after(one, each.time_us) for each in told)
    ]
    if history.has_member_rows or not rebalances:
        return None
    members = unique(one.culprit for one in rebalances)
    sentence = f"The leader joined again {counted(len(rebalances), 'time')}."
    unknown = "why: add the leader's log, which says so (cached metadata has changed)"
    return Match(sentence, members, rebalances, (), [one.rounds[0].begun for one in rebalances], unknown)


def livelock(history: History) -> Match | None:
    """Rounds without progress: in five generations in a row no record got processed, or one rebalance took
    five rounds that did not come to an end, or ten generations took less than ten seconds each, in which
    members were only told that the next one begins."""
    most = history.figures.generations_without_progress_max if history.figures is not None else None
    circling = [
        one for one in history.rebalances if sum(each.ended is None for each in one.rounds) >= LIVELOCK_MIN
    ]
    generations = history.generations_hidden + sum(len(one.rounds) for one in history.rebalances)
    told = [one for one in history.refusals if one.error == REBALANCING]
    is_endless = (
        generations >= ENDLESS_MIN
        and history.shown_us < generations * ENDLESS_US
        and len(told) > 0
        and not (history.assignments or history.work.is_seen)
    )
    if (most or 0) < LIVELOCK_MIN and not circling and not is_endless:
        return None
    parts = []
    if (most or 0) >= LIVELOCK_MIN:
        parts.append(f"in {counted(most or 0, 'generation')} in a row no record got processed")
    if circling:
        parts.append(
            f"{counted(len(circling), 'rebalance')} took {LIVELOCK_MIN} rounds or more that broke off"
        )
    rows = [each.begun for one in circling for each in one.rounds]
    if is_endless:
        lasted = lasting(history.shown_us)
        parts.append(f"{generations:,} generations within {lasted}, and nobody is seen to be given anything")
        circling, rows = history.rebalances, [row for one in told for row in (one.first, one.last)]
    return Match(f"The group turned in circles: {'; '.join(parts)}.", (), circling, (), rows)


def formation(history: History) -> Match | None:
    """The group formed in several rebalances: its first members came one after the other, each less than
    30 s after the rebalance before it. Only of a trace that begins with the empty group. (A consumer group
    of KIP-848 has no delay to wait for members: see waits-for-heartbeat.)"""
    if history.is_consumer_group:
        return None
    first = next(iter(history.rebalances), None)
    if first is None or not was_empty(first) or history.from_us:
        return None
    forming = [first]
    for one in history.rebalances[1:]:
        ended_us = forming[-1].ended_us
        if ended_us is None or one.begun_us - ended_us > FORMING_US or one.cause not in _ARRIVALS:
            break
        if one.cause == Cause.HEARTBEAT and not any(change.kind == "came" for change in one.changes):
            break
        forming.append(one)
    if len(forming) < 2:
        return None
    lasted_us = forming[-1].until_us(history.to_us) - first.begun_us
    members = unique(one.culprit for one in forming[1:])
    sentence = (
        f"The group formed in {counted(len(forming), 'rebalance')} within {lasting(lasted_us)}: "
        "members came just after a round, and each began the next one."
    )
    return Match(sentence, members, forming, (), [one.rounds[0].begun for one in forming])


def start(history: History) -> Match | None:
    """The group's start: partitions waited a second or more for their first owners, from the start of the
    first process on. Only of a storm whose figures count that."""
    rebalances = [one for one in history.rebalances if one.first_waits_us]
    longest_us = max((one.first_waits_us for one in rebalances), default=0)
    if longest_us < SECOND_US:
        return None
    sentence = f"The group began; partitions waited {lasting(longest_us)} at the longest."
    return Match(sentence, (), rebalances, (), [one.rounds[0].begun for one in rebalances])


def follow_ups(history: History) -> Match | None:
    """Kafka Streams asked for further rebalances: tasks change their owner only when the old one has
    released them or a warm-up has caught up."""
    due = history.of_kind("follow-up")
    if not due:
        return None
    members = unique(one.member for one in due)
    rebalances = [
        one
        for one in history.rebalances
        if any(one.culprit in ("", two.member) and 0 <= one.begun_us - two.time_us <= AFTER_US for two in due)
    ]
    causes = sorted({str(one.row["cause"]) for one in due})
    verb = "was" if len(due) == 1 else "were"
    sentence = f"{counted(len(due), 'follow-up rebalance')} {verb} due ({', '.join(causes)})."
    return Match(sentence, members, rebalances, (), [one.row for one in due])


def state_lost(history: History) -> Match | None:
    """Instances of a Kafka Streams application went, and tasks had to restore their state from nothing. Until
    they were given away, they waited for something else (see session-expired, closed-silently)."""
    gone, lost, moved = _from_nothing(history)
    if not lost:
        return None
    processes = unique(str(one.row["process"]) for one in gone)
    down_us = history.from_scratch_down_us
    more = f"; {counted(len(moved), 'more task')} moved to instances without state" if moved else ""
    sentence = (
        f"{counted(len(processes), 'instance')} went, and {counted(len(lost), 'task')} had to be restored "
        f"from the beginning of a changelog{more}. Their downtime, from the end of their owners on: "
        f"{lasting(down_us)}."
    )
    return Match(sentence, processes, (), (), [one.row for one in (*gone, *lost)], down_us=down_us)


def moved_cold(history: History) -> Match | None:
    """Tasks of a Kafka Streams application were given to instances without their state, although no instance
    went, and nobody processed their partitions until it was restored."""
    _, lost, moved = _from_nothing(history)
    if lost or not moved:
        return None
    down_us = history.from_scratch_down_us
    sentence = (
        f"{counted(len(moved), 'task')} moved to instances that had none of their state, and had to be "
        "restored from the beginning of their changelogs: these tasks were down for "
        f"{lasting(down_us)} until then."
    )
    processes = unique(str(one.row.get("process", "")) for one in moved)
    rebalances = under_way_at(history, (one.time_us for one in moved))
    return Match(sentence, processes, rebalances, (), [one.row for one in moved], down_us=down_us)


def _from_nothing(history: History) -> tuple[list[Incident], list[Incident], list[Incident]]:
    """Restorations from the beginning of a changelog after all tasks had run once: the instances that went
    in the last rebalance before them, or since; the restorations after that, and the other ones."""
    count = 0 if history.figures is None else history.figures.tasks_from_scratch or 0
    found: tuple[list[Incident], list[Incident], list[Incident]] = [], [], []
    for one in history.of_kind("restored-from-nothing")[-count:] if count else ():
        begun = bisect_right(history.rebalances, one.time_us, key=lambda each: each.begun_us)
        last = history.rebalances[max(0, begun - 1) : begun]
        since_us = max((each.begun_us for each in last), default=0)
        ended = {process_of(two.member) for each in last for two in each.changes if two.kind == "went"}
        gone = {
            each.row["process"]: each
            for each in history.of_kind("instance-gone")
            if each.time_us <= one.time_us and (each.time_us >= since_us or each.row["process"] in ended)
        }
        found[0].extend(gone.values())
        found[1 if gone else 2].append(one)
    return found


def uncommitted(history: History) -> Match | None:
    """Members gave up partitions in order (onPartitionsRevoked), and a tenth of all records that the group
    processed had no commit then. The next owner processes them again, or, if nothing at all was committed,
    begins as `auto.offset.reset` says; partitions that were deleted have none. Only of traces with positions:
    logs have none."""
    found = history.uncommitted
    processed = None if history.figures is None else history.figures.records_processed
    gone = [one.row for one in history.of_kind("topics-changed") if one.row["event"] == "partitions_deleted"]
    deleted = {partition for row in gone for partition in row["partitions"]}
    records = sum(count for partition, count in found.records.items() if partition not in deleted)
    if not processed or records < UNCOMMITTED_MIN * processed:
        return None
    # those of before --from or figures_from are not among the processed ones
    share = f" ({records / processed:.0%} of all processed records)" if records <= processed else ""
    sentence = (
        f"{counted(records, 'processed record')} had no commit when the members gave up their "
        f"partitions{share}."
    )
    members = unique(member for member, partitions in found.members.items() if partitions - deleted)
    return Match(sentence, members, (), (), [row for row in found.rows if {*row["partitions"]} - deleted])


def needless_moves(history: History) -> Match | None:
    """At least half of all moves, and ten, were more than any balanced assignment would have needed
    (`moves_wasted`)."""
    figures = history.figures
    if figures is None or figures.moves is None or figures.moves_wasted is None:
        return None
    if figures.moves_wasted < max(WASTED_MIN, figures.moves / 2):
        return None
    sentence = (
        f"{counted(figures.moves, 'partition')} moved to another member; balance needed "
        f"{figures.moves - figures.moves_wasted:,} of these moves."
    )
    return Match(sentence)
